"""A shard of a group that follows: a part of a replica, which the leading group has whole.

It writes no checkpoint; the leader is its checkpoint. Started again it gets the rows that the
leader has, and the log from the entry on up to which they hold what the group's nodes have pushed;
the nodes send the rows of what comes after (docs/adr/0015-server-groups.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from embedding.exchange.codec import position, whole
from embedding.exchange.wire import Array, Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.groups.drift import Drift, Moved
from embedding.server.rows.changing import Step
from embedding.server.shards.fields import at_of, table_of
from embedding.server.shards.log import Admit, Entry, TakeMoves
from embedding.server.shards.spec import ShardSpec
from embedding.server.shards.state import At, ShardState

UNBOUND = 2**62 - 1
"""What of a node's pushes is safe is the leader's checkpoint to say, not this shard's."""


class FollowingShard(ShardState):
    """Rows, and how far they have moved since the group told its leader last."""

    def __init__(self, spec: ShardSpec) -> None:
        # Each life is another: the primary tells by it that the rows are gone.
        super().__init__(spec, epoch=time.time_ns())
        self.drift = Drift(self.tables)
        self._stood = 0
        self._aside: tuple[int, dict[Table, Moved]] = (-1, {})

    @property
    def moved_rows(self) -> int:
        """Rows that moved since the last entry was taken."""
        return len(self.drift)

    def durable(self, node: str) -> int:
        """See ShardState.durable."""
        del node
        return UNBOUND

    def moves(self, table: Table, at: At, first: int, most: int) -> Moved | None:
        """Some of the rows that had moved at the entry `at`, by id; None: not there yet."""
        with self.changed:
            if not self.reach(at):
                return None
            number, found = self._aside
            if number != at[1]:
                raise RefusedError(
                    f"moves: shard {self.spec.index} has those of entry {number}, not {at[1]}."
                )
            held = found.get(table)
            if held is None:
                none = np.empty((0, self.tables.dim), dtype=np.float32)
                return Moved(np.empty(0, dtype=np.int64), none, none)
            part = slice(first, first + most)
            return Moved(held.slots[part], held.bases[part], held.now[part])

    def adopt(self, table: Table, ids: IntArray, rows: FloatArray, at: At | None) -> int | None:
        """The leader has these rows; how many of their words have a row here.

        at  where in the log all of their words have been given; None there: not there yet.
            Without it words without a row here get one
        """
        if rows.shape != (len(ids), self.tables.dim):
            raise RefusedError(f"adopt: rows of shape {rows.shape} for {len(ids)} ids.")
        with self.changed:
            if at is not None and not self.reach(at):
                return None
            if table is Table.SUB:
                self.drift.adopt(table, self.grams.places(ids, "adopt"), rows)
                return len(ids)
            self._own(ids, "adopt")
            if at is None:
                self._give(ids[self.map.slots(ids) < 0])
            slots = self.map.slots(ids)
            alive = slots >= 0
            self.drift.adopt(table, slots[alive], rows[alive])
            return int(alive.sum())

    def stand(self, life: int, at: At, applied: Mapping[str, int], next_id: int) -> None:
        """The rows here are those of position `at`, with each node's pushes up to `applied`.

        Said again, as when the answer was lost, the later place counts, until the log goes on.
        """
        with self.changed:
            known = life == self.epoch and at[0] == self.log_number
            if not known or self.position not in (0, self._stood):
                raise RefusedError(
                    f"stand: shard {self.spec.index} is not the one whose rows were given."
                )
            self.position = self._stood = at[1]
            self.next_id = max(self.next_id, next_id)
            for node, sequence in applied.items():
                entry = self.ledger.of(node)
                entry.applied = sequence
                entry.accepted = max(entry.accepted, sequence)
            self._waiting = {key: push for key, push in self._waiting.items() if self._fresh(key)}
            self.changed.notify_all()

    def _planned(self, entry: Entry) -> Iterable[Step]:
        return [self._set_aside] if isinstance(entry, TakeMoves) else super()._planned(entry)

    def _set_aside(self) -> None:
        """Keep what has moved until the group has fetched it."""
        taken = self.drift.take()
        self._aside = (
            self.position + 1,
            {t: Moved(self._ids(t, m.slots), m.bases, m.now) for t, m in taken.items()},
        )

    def _fresh_ids(self, entry: Admit) -> IntArray:
        """The leader gives ids in order, but the group hears of them in any."""
        ids = np.arange(entry.first, entry.first + entry.count, dtype=np.int64)
        return ids[self.map.slots(ids) < 0]

    def _replaced(self, slots: IntArray) -> None:
        self.drift.forget(slots)

    def _ids(self, table: Table, slots: IntArray) -> IntArray:
        if table is Table.SUB:
            return slots * self.spec.count + self.spec.index
        return self.map.ids(slots)


def following_calls(state: ShardState) -> dict[str, Callable[[Message], Message]]:
    """What the primary of a group may ask of a shard besides; nothing where no group follows."""
    if not isinstance(state, FollowingShard):
        return {}

    def moves(message: Message) -> Message:
        at, table = at_of(message), table_of(message)
        header = message.header
        found = state.moves(table, at, whole(header, "first"), whole(header, "most", least=1))
        if found is None:
            return Message({"status": "waiting", "waits_for": state.waits_for})
        arrays: dict[str, Array] = {"ids": found.slots, "bases": found.bases, "now": found.now}
        return Message({"status": "ok"}, arrays)

    def adopt(message: Message) -> Message:
        ids, rows = message.array("ids", "i8", 1), message.array("rows", "f4", 2)
        at = position(message.header.get("at"))
        adopted = state.adopt(table_of(message), ids, rows, at)
        if adopted is None:
            return Message({"status": "waiting", "waits_for": state.waits_for})
        return Message({"status": "ok", "rows": adopted})

    def stand(message: Message) -> Message:
        header = message.header
        applied = header.get("applied")
        if not isinstance(applied, dict):
            raise RefusedError("stand: `applied` must be an object.")
        told = {str(node): whole(applied, node) for node in applied}
        state.stand(whole(header, "life"), at_of(message), told, whole(header, "next_id"))
        return Message({"status": "ok"})

    return {"moves": moves, "adopt": adopt, "stand": stand}
