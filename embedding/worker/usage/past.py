"""What a node read in the last windows, as row ids in the memory of its process, bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embedding.exchange.pasttexts import PastDocuments, PastWindows, of_corpus
from embedding.exchange.payload import UNITS
from embedding.kernel.records import IntArray, TokenBlock, WindowUnit
from embedding.worker.config import NodeConfig
from embedding.worker.corpus.authors import mixed
from embedding.worker.corpus.corpus import line_numbers
from embedding.worker.corpus.counting import window_starts

_STRETCH = 16
"""Documents of a corpus that are forgotten at a time."""


class PastTexts:
    """The texts of the last windows as row ids; `most` tokens, the oldest leave first."""

    def __init__(self, unit: WindowUnit, most: int, windows: int) -> None:
        self.most = most
        self.windows = windows
        self.tokens = 0
        self._unit = unit
        self._held: dict[int, deque[PastDocuments]] = {}
        self._documents = 0

    @classmethod
    def of(cls, config: NodeConfig, unit: WindowUnit) -> PastTexts | None:
        """As a node's settings say; None when nothing is to be remembered."""
        most = config.past_tokens
        return cls(unit, most, config.past_windows) if most else None

    def add(self, blocks: Sequence[TokenBlock], tables: Sequence[IntArray]) -> None:
        """Remember blocks; tables: for each block int64 [W], the row id of each of its words."""
        for block, table in zip(blocks, tables, strict=True):
            numbers = line_numbers(block.keys)
            whole = PastDocuments(
                block.source,
                table.astype(np.int32)[block.codes] if len(table) else block.codes,
                block.sentences.astype(np.int64),
                block.documents.astype(np.int64),
                self._units(block, numbers),
                block.voices if len(block.voices) else np.full(block.n_documents, -1, np.int64),
                numbers,
            )
            starts = window_starts(block, self._unit)
            for start in np.unique(starts).tolist():
                which = np.flatnonzero(starts == start)
                one = whole if len(which) == len(starts) else whole.take(which)
                self._held.setdefault(start, deque()).append(one)
                self.tokens += len(one.ids)
        self._shorten()

    def of_window(self, window: int) -> list[PastDocuments]:
        """What is remembered of a window (Unix seconds of its start), as it was read."""
        return list(self._held.get(window, ()))

    def before(self, window: int) -> list[int]:
        """The remembered windows before one, the latest first."""
        return sorted((start for start in self._held if start < window), reverse=True)[
            : self.windows
        ]

    def of_all(self, windows: PastWindows) -> PastTexts:
        """What one node would remember that had read all these documents."""
        found = PastTexts(self._unit, self.most, self.windows)
        for window, parts in sorted(windows.items()):
            found._held[window] = deque(
                part.take(np.arange(first, min(first + _STRETCH, len(part.units))))
                for part in of_corpus(parts)
                for first in range(0, len(part.units), _STRETCH)
            )
            found.tokens += sum(len(part.ids) for part in parts)
        found._shorten()
        return found

    def held(self, most: int) -> PastWindows:
        """What is remembered by window, the latest ones, of at most `most` tokens."""
        found: dict[int, list[PastDocuments]] = {}
        tokens = 0
        for window in sorted(self._held, reverse=True):
            found[window] = of_corpus(self._held[window])
            tokens += sum(len(part.ids) for part in found[window])
            if tokens > most:
                del found[window]
                break
        return found

    def _units(self, block: TokenBlock, numbers: IntArray) -> IntArray:
        """int64 [d]: by author where that is known, so that one voice is in one unit.

        Else by line of the corpus, whichever node reads it; else by turns.
        """
        n = block.n_documents
        if len(block.voices):
            marks = block.voices.astype(np.uint64)
        elif n and numbers.min() >= 0:
            marks = numbers.astype(np.uint64)
        else:
            marks = (self._documents + np.arange(n)).astype(np.uint64)
        self._documents += n
        units: IntArray = (mixed(marks) % np.uint64(UNITS)).astype(np.int64)
        return units

    def _shorten(self) -> None:
        while self.tokens > self.most or len(self._held) > self.windows + 1:
            oldest = min(self._held)
            self.tokens -= len(self._held[oldest].popleft().ids)
            if not self._held[oldest]:
                del self._held[oldest]


def of_busiest(voices: IntArray, share: float) -> npt.NDArray[np.bool_]:
    """bool [d]: the documents of those authors who wrote most, a `share` of all known ones.

    An author of a single document is never one of them.
    """
    known, documents = np.unique(voices[voices >= 0], return_counts=True)
    order = np.argsort(-documents, kind="stable")[: int(np.ceil(share * len(known)))]
    found: npt.NDArray[np.bool_] = np.isin(voices, known[order[documents[order] > 1]])
    return found
