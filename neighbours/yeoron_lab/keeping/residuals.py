"""What a node has learnt and not sent yet, by row: bounded, and lost with the node only."""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray
from embedding.models.jit import kernel


@kernel()
def _add_some(rows: Any, at: Any, values: Any) -> None:
    """values[i] += rows[at[i]], wherever at[i] is not -1."""
    for i in range(len(at)):
        if at[i] >= 0:
            for j in range(values.shape[1]):
                values[i, j] += rows[at[i], j]


@kernel()
def _add_where(rows: Any, at: Any, values: Any) -> None:
    """rows[at[i]] += values[i], wherever at[i] is not -1."""
    for i in range(len(at)):
        if at[i] >= 0:
            for j in range(values.shape[1]):
                rows[at[i], j] += values[i, j]


class Residuals:
    """float32 rows of one table by id, at most `limit` of them.

    Ids are kept in order beside the places of their rows: a look-up is a binary search, and new
    ids are merged in, whole arrays at a time.
    """

    def __init__(self, dim: int, limit: int) -> None:
        self.dim = dim
        self.limit = limit
        self._ids: IntArray = np.empty(0, dtype=np.int64)
        self._places: IntArray = np.empty(0, dtype=np.int64)
        self._rows: FloatArray = np.zeros((0, dim), dtype=np.float32)
        self._used: IntArray = np.empty(0, dtype=np.int64)
        self._free: IntArray = np.empty(0, dtype=np.int64)
        self._clock = 0

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def nbytes(self) -> int:
        held = (self._rows, self._ids, self._places, self._used, self._free)
        return sum(each.nbytes for each in held)

    def add_to(self, ids: IntArray, values: FloatArray) -> None:
        """Add to values float32 [n, dim] what is held of their ids."""
        if len(self._ids):
            _add_some(self._rows, self._find(ids), values)

    def move(self, ids: IntArray, deltas: FloatArray) -> None:
        """Add deltas float32 [n, dim] to those of these rows (distinct) that are held."""
        if len(self._ids):
            _add_where(self._rows, self._find(ids), deltas)

    def used(self, ids: IntArray) -> IntArray:
        """The clock of the last `put` of each id, int64 [n]; -1 for one that is not held."""
        places = self._find(ids)
        if not len(self._used):
            return places
        found: IntArray = np.where(places >= 0, self._used[places], -1)
        return found

    def put(self, ids: IntArray, values: FloatArray, clock: int | None = None) -> None:
        """Hold these rows (increasing ids) from now on; there must be room (`make_room`)."""
        self._clock = self._clock + 1 if clock is None else clock
        places = self._find(ids)
        fresh = places < 0
        if fresh.any():
            places[fresh] = self._insert(ids[fresh])
        self._rows[places] = values
        self._used[places] = self._clock

    def make_room(self, ids: IntArray) -> tuple[IntArray, FloatArray]:
        """Take out the rows used longest ago, as many as `ids` need room; none of `ids` itself.

        ids  at most `limit`
        """
        known = self._find(ids)
        excess = len(self._ids) + int((known < 0).sum()) - self.limit
        if excess <= 0:
            return self.take(self._ids[:0])
        used = self._used[self._places].copy()
        used[np.searchsorted(self._ids, ids[known >= 0])] = np.iinfo(np.int64).max
        oldest = np.argpartition(used, excess - 1)[:excess]
        return self.take(np.sort(self._ids[oldest]))

    def take(self, ids: IntArray) -> tuple[IntArray, FloatArray]:
        """Take out those of `ids` (increasing) that are held: their ids and rows."""
        places = self._find(ids)
        ids = ids[places >= 0]
        rows = self._rows[places[places >= 0]]
        self._drop(np.searchsorted(self._ids, ids))
        return ids, rows

    def take_all(self) -> tuple[IntArray, FloatArray]:
        """Take out all rows that hold anything; the store is empty then and takes no memory."""
        rows = self._rows[self._places]
        some = rows.any(axis=1)
        found = self._ids[some], rows[some]
        self.__init__(self.dim, self.limit)  # type: ignore[misc]
        return found

    def keep(self, alive: IntArray) -> None:
        """Forget rows whose ids are not among `alive` (increasing): they were evicted."""
        self._drop(np.flatnonzero(positions(alive, self._ids) < 0))

    def _find(self, ids: IntArray) -> IntArray:
        """Places of ids, -1 for one that is not held."""
        at = positions(self._ids, ids)
        at[at >= 0] = self._places[at[at >= 0]]
        return at

    def _insert(self, ids: IntArray) -> IntArray:
        """Places for new ids (increasing)."""
        lacking = len(ids) - len(self._free)
        if lacking > 0:
            self._grow(len(self._rows) + lacking)
        places, self._free = self._free[: len(ids)], self._free[len(ids) :]
        at = np.searchsorted(self._ids, ids)
        self._ids = np.insert(self._ids, at, ids)
        self._places = np.insert(self._places, at, places)
        return places

    def _grow(self, least: int) -> None:
        had = len(self._rows)
        size = max(least, min(2 * had, self.limit))
        rows = np.zeros((size, self.dim), dtype=np.float32)
        rows[:had] = self._rows
        self._rows = rows
        self._used = np.concatenate([self._used, np.zeros(size - had, dtype=np.int64)])
        self._free = np.concatenate([self._free, np.arange(had, size)])

    def _drop(self, at: IntArray) -> None:
        if len(at):
            self._free = np.concatenate([self._free, self._places[at]])
            self._ids = np.delete(self._ids, at)
            self._places = np.delete(self._places, at)
