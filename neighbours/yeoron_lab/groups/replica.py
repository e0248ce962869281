"""Rows of a server that follows: how far they have moved since the leader heard of it, and what the
leader has instead.

Before a row changes for the first time its value is kept (its *base*); what it has moved by is
the difference to that. So it does not matter what changes rows: pushes of any policy, means, or an
optimiser of its own.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.rows.rowmap import RowMap
from embedding.server.rows.tables import Tables, Watcher
from embedding.server.words.vocabulary import Vocabulary


@dataclass(frozen=True)
class Moved:
    """Rows of a table that moved: ids int64 [n], of n-grams buckets; bases and values now
    float32 [n, dim]."""

    ids: IntArray
    bases: FloatArray
    now: FloatArray


Moves = dict[Table, Moved]


class ReplicaRows(Watcher):
    """Bases of all tables, by the slot of the row. The server's lock guards it."""

    def __init__(self, tables: Tables, vocabulary: Vocabulary, lock: threading.RLock) -> None:
        self._tables, self._vocabulary, self._lock = tables, vocabulary, lock
        self._bases = self._none()
        self._quiet = False
        tables.watchers.append(self)

    def __len__(self) -> int:
        return sum(map(len, self._bases.values()))

    def _none(self) -> dict[Table, RowMap]:
        return {
            table: RowMap({"rows": ("f4", (self._tables.dim,))}) for table in self._tables.kinds
        }

    def save(self, table: Table, slots: IntArray, writer: str | None) -> None:
        """These rows are about to change."""
        del writer
        if self._quiet:
            return
        bases = self._bases[table]
        moving = slots[bases.slots(slots) < 0]
        if len(moving):
            rows = self._tables.read(table, moving)
            base_slots = bases.give(moving)
            bases["rows"][base_slots] = rows

    def replaced(self, slots: IntArray) -> None:
        for table, bases in self._bases.items():
            if table is not Table.SUB:
                moved = bases.slots(slots)
                bases.free(moved[moved >= 0])

    def take(self) -> Moves:
        """What moved since the last call, by table; from now on rows have new bases."""
        taken = {}
        for table, bases in self._bases.items():
            if len(bases):
                used = bases.used()
                slots = bases.ids(used)
                ids = slots if table is Table.SUB else self._vocabulary.slot_map.ids(slots)
                taken[table] = Moved(ids, bases["rows"][used], self._tables.read(table, slots))
        self._bases = self._none()
        return taken

    def adopt(self, table: Table, ids: IntArray, rows: FloatArray) -> int:
        """The leader has these rows; what they have moved by meanwhile stays on top of them.

        It takes the lock itself. How many of the words have a row here.
        """
        with self._lock:
            slots = ids if table is Table.SUB else self._vocabulary.slots(ids, "adopt")
            alive = slots >= 0
            self._adopt(table, slots[alive], rows[alive])
            return int(alive.sum())

    def _adopt(self, table: Table, slots: IntArray, rows: FloatArray) -> None:
        bases, fresh = self._bases[table], rows
        base_slots = bases.slots(slots)
        moved = base_slots >= 0
        if moved.any():
            fresh = rows.copy()
            at = base_slots[moved]
            fresh[moved] += self._tables.read(table, slots[moved]) - bases["rows"][at]
            bases["rows"][at] = rows[moved]
        self._quiet = True
        try:
            self._tables.put(table, slots, fresh)
        finally:
            self._quiet = False
