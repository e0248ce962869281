"""Means of rows over their last ticks: what chance did to them in the last steps goes out.

A row that goes on learning at a constant rate moves about the place where it would come to rest,
by the words that happened to be drawn; the mean of where it was lies nearer to that place (Polyak
and Juditsky 1992). Two trainings of other seeds so give tables that agree more. A mean takes its
row as often as a tick of this node reads it, before it is trained; the later, the more it counts
(Shamir and Zhang 2013, section 4, with η = 3), and in the long run the last 1 / `LEAST` count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.models.jit import kernel
from embedding.positions import positions
from embedding.records import FloatArray, HalfArray, IntArray, Table

LATER = 3.0
"""η: how much more later rows count."""
LEAST = 1.0 / 16.0
"""Weight of the newest row when there were many."""
MANY = 1.0 / 32.0
"""Younger words are taken up together, when they are such a part of those that have means."""
TABLES = (Table.IN, Table.OUT)


class RowMeans:
    """Means of the rows of `in` and `out` of all words but the youngest."""

    def __init__(self, dim: int) -> None:
        self.ids: IntArray = np.empty(0, dtype=np.int64)
        self._younger = self.ids
        self.dim = dim
        self._means = {table: np.empty((0, dim), dtype=np.float32) for table in TABLES}
        self._times = {table: np.empty(0, dtype=np.int32) for table in TABLES}

    def begin(self, ids: IntArray) -> None:
        """From now on these words, int64, increasing; means of those that stay are kept."""
        at = positions(self.ids, ids)
        there = np.flatnonzero(at >= 0)
        for table in TABLES:
            means = np.zeros((len(ids), self.dim), dtype=np.float32)
            times = np.zeros(len(ids), dtype=np.int32)
            means[there] = self._means[table][at[there]]
            times[there] = self._times[table][at[there]]
            self._means[table], self._times[table] = means, times
        self.ids, self._younger = ids, ids[:0]

    def meet(self, ids: IntArray) -> None:
        """A tick holds these words, int64 [n]: younger ones have means too when they are many.

        When a stream begins no word is there; without this its first window would have no means.
        """
        younger = ids[positions(self.ids, ids) < 0]
        if not len(younger):
            return
        self._younger = np.union1d(self._younger, younger)
        if len(self._younger) > MANY * len(self.ids):
            self.begin(np.union1d(self.ids, self._younger))

    def places(self, ids: IntArray) -> IntArray:
        """int64 [n], the place of each id; -1 for a word that was not there when it began."""
        return positions(self.ids, ids)

    def smooth(self, table: Table, at: IntArray, rows: FloatArray | HalfArray) -> FloatArray:
        """Take rows [n, dim] into the means at `places`, and give these, float32; others as are."""
        found: FloatArray = rows.astype(np.float32)
        take_rows(at, found, self._means[table], self._times[table])
        return found


@kernel()
def take_rows(at: Any, rows: Any, means: Any, times: Any) -> None:
    """Take `rows` into `means` at places `at`, and write these over `rows`; -1: left as it is."""
    for i in range(len(at)):
        place = at[i]
        if place < 0:
            continue
        times[place] += 1
        weight = np.float32(max((1.0 + LATER) / (times[place] + LATER), LEAST))
        for d in range(rows.shape[1]):
            means[place, d] += weight * (rows[i, d] - means[place, d])
            rows[i, d] = means[place, d]
