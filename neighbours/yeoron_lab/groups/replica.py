"""Rows of a server that follows: how far they have moved since the leader heard of it, and what the
leader has instead.

Before a row changes for the first time its value is kept (its *base*); what it has moved by is
the difference to that. So it does not matter what changes rows: pushes of any policy, means, or an
optimiser of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Protocol

from embedding.kernel.fields import Column
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.rows.rowmap import RowMap
from embedding.server.rows.tables import Tables, Watcher
from embedding.server.words.vocabulary import Vocabulary


@dataclass(frozen=True)
class Moved:
    """Rows of a table that moved: slots int64 [n], bases and values now float32 [n, dim]."""

    slots: Annotated[IntArray, Column("i8", ("n",))]
    bases: Annotated[FloatArray, Column("f4", ("n", "dim"))]
    now: Annotated[FloatArray, Column("f4", ("n", "dim"))]


class Drift(Watcher):
    """Bases of all tables, by the slot of the row. Not thread-safe: the server's lock guards it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
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
            places = bases.give(moving)
            bases["rows"][places] = rows

    def replaced(self, slots: IntArray) -> None:
        for table, bases in self._bases.items():
            if table is not Table.SUB:
                moved = bases.slots(slots)
                bases.free(moved[moved >= 0])

    def take(self) -> dict[Table, Moved]:
        """What moved since the last call, by table; from now on rows have new bases."""
        taken = {}
        for table, bases in self._bases.items():
            if len(bases):
                used = bases.used()
                slots = bases.ids(used)
                taken[table] = Moved(slots, bases["rows"][used], self._tables.read(table, slots))
        self._bases = self._none()
        return taken

    def adopt(self, table: Table, slots: IntArray, rows: FloatArray) -> None:
        """The leader has these rows; what they have moved by meanwhile stays on top of them."""
        bases, fresh = self._bases[table], rows
        places = bases.slots(slots)
        moved = places >= 0
        if moved.any():
            fresh = rows.copy()
            at = places[moved]
            fresh[moved] += self._tables.read(table, slots[moved]) - bases["rows"][at]
            bases["rows"][at] = rows[moved]
        self._quiet = True
        try:
            self._tables.put(table, slots, fresh)
        finally:
            self._quiet = False


Moves = dict[Table, Moved]
"""By table the rows that moved; `slots` are ids, of n-grams buckets."""
Live = Callable[[Table, IntArray], FloatArray]
"""float32 [n, dim] of rows as the leader has them now."""


class ReplicaRows(Protocol):
    """What a group does with its rows besides training them. Calls take the lock themselves,
    where they do not say that it is held. What only shards need does nothing here."""

    @property
    def moved(self) -> int:
        """Rows that moved since the leader heard last."""

    @property
    def lacking(self) -> bool:
        """Whether rows cannot be reached, or have to be fetched from the leader again."""
        return False

    def when_lacking(self, call: Callable[[], None]) -> None:
        """Have `call` called when rows have to be fetched from the leader again."""
        return

    def begin(self, applied: Mapping[str, int]) -> None:
        """The leader's tables hold each node's pushes up to these."""
        return

    def take_moves(self) -> Callable[[], Moves]:
        """What rows have moved by now (under the lock); the call fetches it, without the lock.

        It raises UnavailableError while some rows cannot be reached; then it is called again.
        """

    def merged(self) -> None:
        """The leader has applied the entry that was taken last."""
        return

    def all_merged(self) -> None:
        """The leader has all that was pushed (under the lock)."""
        return

    def mend(self, live: Live) -> tuple[int, ...]:
        """Give rows that were lost their values at the leader again; the shards that had them.

        To be called while the leader has all that was taken.
        """
        return ()

    def adopt(self, table: Table, ids: IntArray, rows: FloatArray) -> int:
        """The leader has these rows; how many of their words have a row here."""


class LocalReplica(ReplicaRows):
    """See ReplicaRows: rows in this server's tables."""

    def __init__(self, tables: Tables, vocabulary: Vocabulary, lock: threading.RLock) -> None:
        self._vocabulary, self._lock = vocabulary, lock
        self.drift = Drift(tables)

    @property
    def moved(self) -> int:
        return len(self.drift)

    def take_moves(self) -> Callable[[], Moves]:
        moves = {
            table: Moved(self._ids(table, each.slots), each.bases, each.now)
            for table, each in self.drift.take().items()
        }
        return lambda: moves

    def adopt(self, table: Table, ids: IntArray, rows: FloatArray) -> int:
        with self._lock:
            slots = ids if table is Table.SUB else self._vocabulary.slots(ids, "adopt")
            alive = slots >= 0
            self.drift.adopt(table, slots[alive], rows[alive])
            return int(alive.sum())

    def _ids(self, table: Table, slots: IntArray) -> IntArray:
        return slots if table is Table.SUB else self._vocabulary.slot_map.ids(slots)
