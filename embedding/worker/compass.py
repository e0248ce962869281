"""The tables as they are when a window begins, held while training goes on (Di Carlo et al. 2019).

A row is the mean of what it was of late (`smoothing.py`). Nothing waits for all rows at once. A
tick moves the rows that it trains and no others: these are kept as they come, before they are
trained for the first time, and the others are asked for in the ticks that follow. For one node this
is what the window begins with to the row; among several nodes a row that comes later holds what the
others pushed in those first ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from embedding.positions import positions
from embedding.records import FloatArray, HalfArray, IntArray, Table
from embedding.worker.smoothing import RowMeans

Tables = Mapping[Table, FloatArray | HalfArray]
"""Rows [n, dim] of `in` and of `out`."""
Pull = Callable[[IntArray, IntArray], Tables]
"""Rows of some ids of `in`, and of some of `out`."""
PULLED = 8_192
"""Rows of a table in one request."""


class Held(NamedTuple):
    """What a compass has of n words: vectors, contexts, around float32 [n, dim], keep [n]."""

    vectors: FloatArray
    contexts: FloatArray
    around: FloatArray
    keep: FloatArray


class Compass:
    """The tables when a window begins.

    ids                int64 [v], increasing
    keep               float32 [v], probability to keep a word
    around             float32 [v, dim], what stands around them (`secondorder.py`)
    vectors, contexts  float32 [v, dim], rows of `in` and `out`; zeros until they are there
    """

    def __init__(self, ids: IntArray, keep: FloatArray, around: FloatArray) -> None:
        self.ids, self.keep, self.around = ids, keep, around
        dim = around.shape[1]
        self.vectors, self.contexts = (np.zeros((len(ids), dim), np.float32) for _ in range(2))
        self._lacks = {table: np.ones(len(ids), np.bool_) for table in (Table.IN, Table.OUT)}

    @property
    def whole(self) -> bool:
        """Whether all rows are there."""
        return not self._lacks

    def see(self, table: Table, at: IntArray, rows: FloatArray | HalfArray) -> None:
        """Keep rows [n, dim] as they are now, at `places`; those that are there stay."""
        lacks = self._lacks.get(table)
        if lacks is None:
            return
        new = np.flatnonzero((at >= 0) & lacks[at])
        kept = self.vectors if table is Table.IN else self.contexts
        kept[at[new]] = rows[new]
        lacks[at[new]] = False
        if not lacks.any():
            del self._lacks[table]

    def ask(self, pull: Pull, most: int, means: RowMeans) -> None:
        """Have rows that are not there yet pulled, about `most` of each table.

        means  theirs, of the words of this compass
        """
        while most > 0 and not self.whole:
            wanted = {
                table: np.flatnonzero(lacks)[: min(most, PULLED)]
                for table, lacks in self._lacks.items()
            }
            none = self.ids[:0]
            rows = pull(*(self.ids[wanted.get(table, none)] for table in (Table.IN, Table.OUT)))
            for table, at in wanted.items():
                self.see(table, at, means.smooth(table, at, rows[table]))
            most -= PULLED

    def places(self, ids: IntArray) -> IntArray:
        """int64 [n], the row of each id; -1 for a word that is younger than the compass."""
        return positions(self.ids, ids)

    def rows(self, ids: IntArray) -> Held:
        """Of some ids; zeros for a younger word."""
        at = self.places(ids)
        there = at >= 0
        found = []
        for table in (self.vectors, self.contexts, self.around, self.keep):
            rows = np.zeros((len(ids), *table.shape[1:]), dtype=np.float32)
            rows[there] = table[at[there]]
            found.append(rows)
        return Held(*found)
