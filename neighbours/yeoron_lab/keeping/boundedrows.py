"""Rows that a node keeps, by table and id, in bounded memory: those used longest ago go first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from embedding.exchange.compression.halves import widen
from embedding.exchange.payload import RowDelta
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.models.jit import kernel
from embedding.server.rows.rowmap import RowMap

_BESIDE_ROW = 64
"""Bytes that a row takes besides its numbers: id, slot, last use and what there is room for."""
RowsById = tuple[IntArray, FloatArray]
"""Increasing ids int64 [n] and rows float32 [n, dim]."""


@kernel()
def _add_some(rows: Any, slots: Any, values: Any) -> None:
    """values[i] += rows[slots[i]], wherever slots[i] is not -1."""
    for i in range(len(slots)):
        if slots[i] >= 0:
            for j in range(values.shape[1]):
                values[i, j] += rows[slots[i], j]


@kernel()
def _add_where(rows: Any, slots: Any, values: Any) -> None:
    """rows[slots[i]] += values[i], wherever slots[i] is not -1."""
    for i in range(len(slots)):
        if slots[i] >= 0:
            for j in range(values.shape[1]):
                rows[slots[i], j] += values[i, j]


class BoundedRows:
    """float32 rows in at most `memory` bytes, all tables together. Not thread-safe.

    clock  of the last `put`
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.clock = 0
        self._maps: dict[Table, RowMap] = {}

    def __len__(self) -> int:
        return sum(len(rows) for rows in list(self._maps.values()))

    @property
    def nbytes(self) -> int:
        return sum(rows.nbytes for rows in list(self._maps.values()) if len(rows))

    @property
    def tables(self) -> list[Table]:
        """Those of which there are rows."""
        return [table for table, rows in self._maps.items() if len(rows)]

    def limit(self, dim: int) -> int:
        """Rows of so many columns that there may be of each table."""
        return max(1, self.memory // (len(Table) * (4 * dim + _BESIDE_ROW)))

    def used(self, table: Table, ids: IntArray) -> IntArray:
        """The clock of the last `put` of each id, int64 [n]; -1 for one that is not here."""
        rows = self._maps.get(table)
        if rows is None:
            return np.full(len(ids), -1, dtype=np.int64)
        slots = rows.slots(ids)
        return np.where(slots >= 0, rows["used"][slots], -1)

    def add_to(self, table: Table, ids: IntArray, values: FloatArray) -> None:
        """Add to values float32 [n, dim] what is here of their ids; RefusedError for other rows."""
        rows = self._maps.get(table)
        if rows is None:
            return
        dim = rows["rows"].shape[1]
        if dim != values.shape[1]:
            raise RefusedError(f"rows of {values.shape[1]} columns; those before had {dim}.")
        _add_some(rows["rows"], rows.slots(ids), values)

    def move(self, deltas: Iterable[RowDelta]) -> None:
        """Add to those of these rows that are here."""
        for delta in deltas:
            rows = self._maps.get(delta.table)
            if rows is not None and len(delta.ids):
                _add_where(rows["rows"], rows.slots(delta.ids), widen(delta.values))

    def make_room(self, table: Table, ids: IntArray, dim: int) -> RowsById:
        """Take out the rows used longest ago, as many as `ids` need room; none of `ids` itself.

        ids  distinct, at most `limit`
        """
        return self._take(table, self._map(table, dim).oldest(ids))

    def put(
        self, table: Table, ids: IntArray, values: FloatArray, clock: int | None = None
    ) -> None:
        """Keep these rows (distinct ids) from now on, after `make_room`."""
        self.clock = self.clock + 1 if clock is None else clock
        rows = self._map(table, values.shape[1])
        slots = rows.give(ids)
        rows["rows"][slots], rows["used"][slots] = values, self.clock

    def take(self, table: Table, ids: IntArray) -> RowsById:
        """Take out those of `ids` that are here."""
        if table not in self._maps:
            return ids[:0], np.empty((0, 0), dtype=np.float32)
        slots = self._maps[table].slots(ids)
        return self._take(table, slots[slots >= 0])

    def take_some(self, table: Table, most_bytes: int) -> RowsById:
        """Take out those with the lowest ids, as many as float16 rows and ids of so many bytes."""
        rows = self._maps[table]
        most = max(1, most_bytes // (2 * rows["rows"].shape[1] + 8))
        taken = self._take(table, rows.used()[:most])
        if not len(rows):  # its memory goes with the last of them
            del self._maps[table]
        return taken

    def keep(self, alive: IntArray) -> None:
        """Forget words that are not among `alive` (increasing): they were evicted."""
        for table in (Table.IN, Table.OUT):
            if table in self._maps:
                self._maps[table].keep(alive)

    def clear(self) -> None:
        self._maps.clear()

    def _map(self, table: Table, dim: int) -> RowMap:
        if table not in self._maps:
            columns = {"rows": ("f4", (dim,)), "used": "i8"}
            self._maps[table] = RowMap(columns, limit=self.limit(dim))
        return self._maps[table]

    def _take(self, table: Table, slots: IntArray) -> RowsById:
        rows = self._maps[table]
        ids = rows.ids(slots)
        order = np.argsort(ids, kind="stable")
        taken = ids[order], rows["rows"][slots[order]]
        rows.free(slots)
        return taken
