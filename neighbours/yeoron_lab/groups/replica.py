"""Rows of a server that follows: how far they have moved, and what the leader has instead."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.rows.tables import Tables
from embedding.server.words.vocabulary import Vocabulary
from yeoron_lab.groups.drift import Drift, Moved
from yeoron_lab.groups.taking import Moves

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
        del call

    def begin(self, applied: Mapping[str, int]) -> None:
        """The leader's tables hold each node's pushes up to these."""
        del applied

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
        del live
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
