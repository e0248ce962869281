"""What a node read in the last windows, as row ids in the memory of its process, bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.exchange.payload import UNITS
from embedding.kernel.records import CodeArray, IntArray, TokenBlock, WindowUnit
from embedding.worker.config import NodeConfig
from embedding.worker.corpus.authors import mixed
from embedding.worker.corpus.counting import window_starts


@dataclass(frozen=True)
class PastDocuments:
    """Documents of one source.

    ids        int32 [n], the row id of each token, -1 for none
    sentences  int64 [m + 1], token offsets of sentences
    documents  int64 [d + 1], sentence offsets of documents
    units      int64 [d], the unit (0 to UNITS - 1) that each document belongs to
    voices     int64 [d], alike for documents of one author; below 0 where that is unknown
    """

    source: str
    ids: CodeArray
    sentences: IntArray
    documents: IntArray
    units: IntArray
    voices: IntArray

    def take(self, which: IntArray) -> PastDocuments:
        """Some of the documents, int64 [k], in this order."""
        ends = self.documents[which + 1]
        sentences, documents = _gathered(self.documents[which], ends)
        starts, stops = self.sentences[sentences], self.sentences[sentences + 1]
        tokens, offsets = _gathered(starts, stops)
        return PastDocuments(
            *(self.source, self.ids[tokens], offsets, documents),
            *(self.units[which], self.voices[which]),
        )


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
            whole = PastDocuments(
                block.source,
                table.astype(np.int32)[block.codes] if len(table) else block.codes,
                block.sentences.astype(np.int64),
                block.documents.astype(np.int64),
                self._units(block),
                block.voices if len(block.voices) else np.full(block.n_documents, -1, np.int64),
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

    def _units(self, block: TokenBlock) -> IntArray:
        """int64 [d]: by author where that is known, so that one voice is in one unit."""
        n = block.n_documents
        if len(block.voices):
            marks = block.voices.astype(np.uint64)
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


def joined(parts: Sequence[PastDocuments]) -> PastDocuments:
    """Documents of several stretches (at least one) behind each other, as of the first source."""
    ids = np.concatenate([part.ids for part in parts])
    units, voices = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("units", "voices")
    )
    sentences = _behind([part.sentences for part in parts])
    documents = _behind([part.documents for part in parts])
    return PastDocuments(parts[0].source, ids, sentences, documents, units, voices)


def of_busiest(voices: IntArray, share: float) -> npt.NDArray[np.bool_]:
    """bool [d]: the documents of those authors who wrote most, a `share` of all known ones.

    An author of a single document is never one of them.
    """
    known, documents = np.unique(voices[voices >= 0], return_counts=True)
    order = np.argsort(-documents, kind="stable")[: int(np.ceil(share * len(known)))]
    found: npt.NDArray[np.bool_] = np.isin(voices, known[order[documents[order] > 1]])
    return found


def _behind(offsets: Sequence[IntArray]) -> IntArray:
    """Offsets of several lists as offsets of one."""
    lengths = [np.diff(each) for each in offsets]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))])


def _gathered(starts: IntArray, stops: IntArray) -> tuple[IntArray, IntArray]:
    """The places of several ranges behind each other, int64 [n], and their offsets [k + 1]."""
    lengths = stops - starts
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
    return places, offsets
