"""What a node read in the last windows, as row ids in the memory of its process, bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.records import CodeArray, IntArray, TokenBlock, WindowUnit
from embedding.worker.config import NodeConfig
from embedding.worker.counting import window_starts

PARTS = 8
"""Documents are dealt out to so many parts: how far these differ says how sure the past is."""


@dataclass(frozen=True)
class Stretch:
    """Sentences of one source and part: row ids int64 [n], -1 for none, and offsets [m + 1]."""

    source: str
    part: int
    ids: IntArray
    sentences: IntArray


class PastTexts:
    """The texts of the last windows as row ids; `most` tokens, the oldest leave first."""

    def __init__(self, unit: WindowUnit, most: int, windows: int) -> None:
        self.most = most
        self.windows = windows
        self.tokens = 0
        self._unit = unit
        self._held: dict[int, deque[Stretch]] = {}
        self._documents = 0

    @classmethod
    def of(cls, config: NodeConfig, unit: WindowUnit) -> PastTexts | None:
        """As a node's settings say; None when nothing is to be remembered."""
        most = config.past_tokens
        return cls(unit, most, config.past_windows) if most else None

    def add(self, blocks: Sequence[TokenBlock], ids: Sequence[IntArray]) -> None:
        """Remember blocks; ids: for each block int64 [n], the row id of each token."""
        for block, tokens in zip(blocks, ids, strict=True):
            lengths = np.diff(block.document_tokens())
            parts = (self._documents + np.arange(len(lengths))) % PARTS
            self._documents += len(lengths)
            owner = np.repeat(np.arange(len(lengths)), lengths)
            sentence = np.repeat(np.arange(len(block.sentences) - 1), np.diff(block.sentences))
            keys = window_starts(block, self._unit) * PARTS + parts
            for key in np.unique(keys).tolist():
                at = np.flatnonzero((keys == key)[owner])
                if not len(at):
                    continue
                _, firsts = np.unique(sentence[at], return_index=True)
                ends = np.append(firsts, len(at))
                stretch = Stretch(block.source, key % PARTS, tokens[at], ends)
                self._held.setdefault(key // PARTS, deque()).append(stretch)
                self.tokens += len(at)
        self._shorten()

    def before(self, window: int) -> dict[tuple[str, int], list[Stretch]]:
        """What is remembered of the windows before one, by source and part."""
        found: dict[tuple[str, int], list[Stretch]] = {}
        for start in sorted(start for start in self._held if start < window)[-self.windows :]:
            for stretch in self._held[start]:
                found.setdefault((stretch.source, stretch.part), []).append(stretch)
        return found

    def _shorten(self) -> None:
        while self.tokens > self.most or len(self._held) > self.windows + 1:
            oldest = min(self._held)
            self.tokens -= len(self._held[oldest].popleft().ids)
            if not self._held[oldest]:
                del self._held[oldest]


class Sentences:
    """Sentences of some stretches, taken one after another."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self.tokens = sum(len(stretch.ids) for stretch in stretches)
        self._left = deque(stretches)
        self._at = 0

    def take(self, most: int) -> tuple[IntArray, CodeArray]:
        """The next ones, with at most so many tokens or one sentence: ids [n], offsets [m + 1]."""
        ids: list[IntArray] = []
        lengths: list[IntArray] = []
        while self._left and most > 0:
            offsets = self._left[0].sentences[self._at :]
            fit = int(np.searchsorted(offsets, offsets[0] + most, side="right")) - 1
            if not fit and ids:
                break
            fit = max(fit, 1)
            ids.append(self._left[0].ids[offsets[0] : offsets[fit]])
            lengths.append(np.diff(offsets[: fit + 1]))
            most -= len(ids[-1])
            self._at += fit
            if fit == len(offsets) - 1:
                self._left.popleft()
                self._at = 0
        none = np.zeros(1, dtype=np.int64)
        taken = np.concatenate([none[:0], *ids])
        self.tokens -= len(taken)
        return taken, np.cumsum(np.concatenate([none, *lengths])).astype(np.int32)
