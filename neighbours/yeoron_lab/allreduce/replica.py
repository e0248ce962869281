"""Rows of one table that every node holds a copy of."""

from __future__ import annotations

import numpy as np

from embedding.exchange.compression.halves import widen
from embedding.exchange.payload import RowDelta
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table


class Replica:
    """Some rows of a table, the same on all nodes after the same sums.

    ids   int64 [m], increasing
    rows  float32 [m, dim]
    tells  whether this node brings them to the server, and so remembers what it has sent
    """

    def __init__(self, table: Table, dim: int, *, tells: bool) -> None:
        self.table = table
        self._tells = tells
        self.ids = np.empty(0, dtype=np.int64)
        self.rows: FloatArray = np.empty((0, dim), dtype=np.float32)
        self._brought: FloatArray = self.rows
        self._offset = np.empty(0, dtype=np.int32)

    def __len__(self) -> int:
        return len(self.ids)

    def places(self, ids: IntArray) -> IntArray:
        """Where ids lie, int64 [n]; -1 for rows that are not held."""
        offsets = np.full(len(ids), -1, dtype=np.int64)
        known = ids < len(self._offset)
        offsets[known] = self._offset[ids[known]]
        return offsets

    def together(self, offsets: IntArray, pulled: FloatArray | HalfArray | None) -> FloatArray:
        """Held rows, and pulled ones where `places` is -1; float32 in the order of `places`."""
        rows: FloatArray = np.empty((len(offsets), self.rows.shape[1]), dtype=np.float32)
        here = offsets >= 0
        rows[here] = self.rows[offsets[here]]
        if pulled is not None:
            rows[~here] = widen(pulled)
        return rows

    def spread(self, deltas: list[RowDelta]) -> FloatArray:
        """Deltas of held rows as one for all rows, float32 [m, dim]."""
        whole = np.zeros_like(self.rows)
        for delta in deltas:
            whole[self.places(delta.ids)] = delta.values
        return whole

    def add(self, moved: FloatArray) -> None:
        """What all nodes moved the rows by, float32 [m, dim]."""
        self.rows += moved

    def become(self, ids: IntArray, rows: FloatArray) -> None:
        """Hold another node's ids and rows; what the server has of them is not known."""
        self._tells = False
        self.ids, self.rows, self._brought = ids, rows, rows[:0]
        self._index()

    def written_back(self, rows: FloatArray) -> None:
        """The server has these rows, float32 [m, dim], of all that are held: this node tells it."""
        self._tells, self._brought = True, rows

    def owed(self, ids: IntArray | None = None) -> RowDelta:
        """How far rows moved since they were sent to the server; of all of them, or of some ids.

        The rows count as sent from now on.
        """
        offsets = np.arange(len(self.ids)) if ids is None else self.places(ids)
        offsets = offsets[(self.rows[offsets] != self._brought[offsets]).any(axis=1)]
        values = self.rows[offsets] - self._brought[offsets]
        # As the server adds it up, so that what is sent next starts from what it has.
        self._brought[offsets] += values
        return RowDelta(self.table, self.ids[offsets], values)

    def change(self, ids: IntArray, fresh: FloatArray) -> None:
        """Hold these ids from now on.

        fresh  float32 [n, dim]: the server's rows of those that were not held, in order of id
        """
        offsets = self.places(ids)
        known = offsets >= 0
        for name in ("rows", "_brought") if self._tells else ("rows",):
            before = getattr(self, name)
            rows = np.empty((len(ids), before.shape[1]), dtype=np.float32)
            rows[known] = before[offsets[known]]
            rows[~known] = fresh
            setattr(self, name, rows)
        self.ids = ids
        self._index()

    def _index(self) -> None:
        ids = self.ids
        self._offset = np.full(int(ids[-1]) + 1 if len(ids) else 0, -1, dtype=np.int32)
        self._offset[ids] = np.arange(len(ids), dtype=np.int32)
