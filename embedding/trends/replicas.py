"""How chosen words were used in a snapshot, by source.

A replica of a window holds what the contexts of its words say in some of the window's texts
(`snapshots/usage.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.usage import Usage


@dataclass(frozen=True)
class UsedWords:
    """The use of n words in a snapshot: usage, and the row int64 [n] of each word in it."""

    usage: Usage
    rows: IntArray

    def take(self, at: IntArray) -> UsedWords:
        """Some of the words."""
        return replace(self, rows=self.rows[at])

    @property
    def busiest(self) -> UsedWords | None:
        """The same words in what the busiest authors wrote; None where that is not known."""
        busiest = self.usage.busiest
        return None if busiest is None else UsedWords(busiest, self.rows)

    def pairs(self, source: str) -> FloatArray:
        """N float32 [n, r] of a source; 0 where it lacks a word."""
        return self._pairs(*self._of(source))

    def replicas(self, source: str) -> tuple[FloatArray, FloatArray]:
        """N and means float32 [n, r] and [n, r, k · dim] of a source; 0 where it lacks a word."""
        placed, chosen = self._of(source)
        return self._pairs(placed, chosen), self._means(placed, chosen)

    def _pairs(self, placed: IntArray, chosen: IntArray) -> FloatArray:
        pairs = np.zeros((len(self.rows), self.usage.pairs.shape[1]), dtype=np.float32)
        pairs[placed] = self.usage.pairs[chosen]
        return pairs

    def _means(self, placed: IntArray, chosen: IntArray) -> FloatArray:
        means = np.zeros((len(self.rows), *self.usage.means.shape[1:]), dtype=np.float32)
        means[placed] = self.usage.means[chosen]
        return means

    def _of(self, source: str) -> tuple[IntArray, IntArray]:
        """Which of the words a source has, and where in the sums they are."""
        own = self.usage.by_source.get(source)
        if own is None or not len(own):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        at = positions(self.usage.rows[own], self.rows)
        placed = np.flatnonzero(at >= 0)
        return placed, own[at[placed]]
