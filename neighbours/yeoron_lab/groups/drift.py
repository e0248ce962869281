"""How far the rows of a replica have moved since the leader heard of it.

Before a row changes for the first time its value is kept (its *base*); what it has moved by is
the difference to that. So it does not matter what changes rows: pushes of any policy, means, or an
optimiser of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.rows.tables import Tables

_LEAST = 1024

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Moved:
    """Rows of a table that moved: slots int64 [n], bases and values now float32 [n, dim]."""

    slots: IntArray
    bases: FloatArray
    now: FloatArray


class _Bases:
    """Bases of one table: `at` int64 by slot, -1 where the row has not moved."""

    def __init__(self, dim: int) -> None:
        self.at: IntArray = np.full(_LEAST, -1, dtype=np.int64)
        self.slots: IntArray = np.empty(_LEAST, dtype=np.int64)
        self.rows: FloatArray = np.empty((_LEAST, dim), dtype=np.float32)
        self.n = 0

    def places(self, slots: IntArray) -> IntArray:
        """Where the bases of slots are, -1 for one that there is none of."""
        lacking = int(slots.max(initial=-1)) + 1 - len(self.at)
        if lacking > 0:
            more = np.full(max(lacking, len(self.at)), -1, dtype=np.int64)
            self.at = np.concatenate([self.at, more])
        offsets: IntArray = self.at[slots]
        return offsets

    def keep(self, slots: IntArray, rows: FloatArray) -> None:
        """Keep the bases of slots that have none."""
        end = self.n + len(slots)
        self.slots, self.rows = grown(self.slots, end), grown(self.rows, end)
        self.slots[self.n : end], self.rows[self.n : end] = slots, rows
        self.at[slots] = np.arange(self.n, end)
        self.n = end

    def forget(self, slots: IntArray) -> None:
        """These slots have got other rows."""
        places = self.places(slots)
        self.slots[places[places >= 0]] = -1
        self.at[slots] = -1


def grown(array: npt.NDArray[T], size: int) -> npt.NDArray[T]:
    """The array with room for so many rows; if it grows it has at least twice as many as before."""
    if size <= len(array):
        return array
    fresh = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
    fresh[: len(array)] = array
    return fresh


class Drift:
    """Bases of all tables. Not thread-safe: the server's lock guards it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._bases = {table: _Bases(tables.dim) for table in tables.kinds}
        self._quiet = False
        tables.watchers.append(self)

    def __len__(self) -> int:
        return sum(bases.n for bases in self._bases.values())

    def save(self, table: Table, slots: IntArray, writer: str | None) -> None:
        """These rows are about to change."""
        del writer
        if self._quiet:
            return
        bases = self._bases[table]
        fresh = slots[bases.places(slots) < 0]
        if len(fresh):
            bases.keep(fresh, self._tables.read(table, fresh))

    def replaced(self, slots: IntArray) -> None:
        for table, bases in self._bases.items():
            if table is not Table.SUB:
                bases.forget(slots)

    def lost(self, nodes: Collection[str]) -> None:
        """See Watcher; no node keeps these."""

    def take(self) -> dict[Table, Moved]:
        """What moved since the last call, by table; from now on rows have new bases."""
        moved = {}
        for table, bases in self._bases.items():
            held = np.flatnonzero(bases.slots[: bases.n] >= 0)
            slots = bases.slots[held]
            if len(slots):
                moved[table] = Moved(slots, bases.rows[held], self._tables.read(table, slots))
        self._bases = {table: _Bases(self._tables.dim) for table in self._bases}
        return moved

    def adopt(self, table: Table, slots: IntArray, rows: FloatArray) -> None:
        """The leader has these rows; what they have moved by meanwhile stays on top of them."""
        bases, fresh = self._bases[table], rows
        places = bases.places(slots)
        held = places >= 0
        if held.any():
            fresh = rows.copy()
            at = places[held]
            fresh[held] += self._tables.read(table, slots[held]) - bases.rows[at]
            bases.rows[at] = rows[held]
        self._quiet = True
        try:
            self._tables.put(table, slots, fresh)
        finally:
            self._quiet = False
