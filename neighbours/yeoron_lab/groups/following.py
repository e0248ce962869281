"""A shard of a group that follows: a part of a replica, which the leading group has whole.

It writes no checkpoint; the leader is its checkpoint. Started again it gets the rows that the
leader has, and the log from the entry on up to which they hold what the group's nodes have pushed;
the nodes send the rows of what comes after (docs/adr/0015-server-groups.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from embedding.exchange.codec import to_message
from embedding.exchange.wire import Message, whole
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, IntArray, Table
from yeoron_lab.groups.replica import Drift, Moved
from yeoron_lab.shards.heldrows import HeldRows
from yeoron_lab.shards.log import at_of, position, table_of
from yeoron_lab.shards.spec import ShardSpec
from yeoron_lab.shards.state import ShardState


class MovedRows:
    """The shard's lock guards it."""

    def __init__(self, held: HeldRows) -> None:
        self._held = held
        self._drift = Drift(held.tables)
        self._aside: tuple[int, dict[Table, Moved]] = (-1, {})

    def __len__(self) -> int:
        return len(self._drift)

    def set_aside(self, position: int) -> None:
        """Keep what has moved until this position of the log, until the group has fetched it."""
        taken, ids = self._drift.take(), self._held.ids
        self._aside = (
            position,
            {table: Moved(ids(table, m.slots), m.bases, m.now) for table, m in taken.items()},
        )

    def fetched(self, table: Table, position: int, first: int, most: int) -> Moved:
        """Some of the rows that had moved at a position, by id."""
        number, moved = self._aside
        if number != position:
            raise RefusedError(
                f"moves: shard {self._held.spec.index} has those of entry {number}, not {position}."
            )
        held = moved.get(table)
        if held is None:
            none = np.empty((0, self._held.tables.dim), dtype=np.float32)
            return Moved(np.empty(0, dtype=np.int64), none, none)
        part = slice(first, first + most)
        return Moved(held.slots[part], held.bases[part], held.now[part])

    def adopt(self, table: Table, ids: IntArray, rows: FloatArray, *, give: bool) -> int:
        """The leader has these rows; how many of their words have a row here.

        give  words without a row here get one
        """
        held = self._held
        if rows.shape != (len(ids), held.tables.dim):
            raise RefusedError(f"adopt: rows of shape {rows.shape} for {len(ids)} ids.")
        if table is Table.SUB:
            self._drift.adopt(table, held.gram_places(ids, "adopt"), rows)
            return len(ids)
        held.own(ids, "adopt")
        if give:
            held.give(ids[held.map.slots(ids) < 0])
        slots = held.map.slots(ids)
        alive = slots >= 0
        self._drift.adopt(table, slots[alive], rows[alive])
        return int(alive.sum())


def following_shard(spec: ShardSpec) -> ShardState:
    """A shard without rows. Each incarnation is another: the primary tells by it that rows are
    gone.
    """
    return ShardState(spec, epoch=time.time_ns(), moved=MovedRows)


class FollowingCalls:
    """What the primary of a group asks of a shard besides, in the order of the log."""

    def __init__(self, state: ShardState, moved: MovedRows) -> None:
        self._state = state
        self._moved = moved

    def calls(self) -> dict[str, Callable[[Message], Message]]:
        return {"moves": self._moves, "adopt": self._adopt, "stand": self._stand}

    def _moves(self, message: Message) -> Message:
        """Some of the rows that had moved at the entry `at`, by id."""
        at, header = at_of(message), message.header
        first, most = whole(header, "first"), whole(header, "most", least=1)
        with self._state.changed:
            self._state.reach(at)
            moved = self._moved.fetched(table_of(message), at[1], first, most)
        return to_message(moved, status="ok")

    def _adopt(self, message: Message) -> Message:
        """The leader has these rows; how many of their words have a row here.

        at  where in the log all of their words have been given. Without it words without a row
            here get one
        """
        ids, rows = message.array("ids", "i8", 1), message.array("rows", "f4", 2)
        at, table = position(message.header.get("at")), table_of(message)
        with self._state.changed:
            if at is not None:
                self._state.reach(at)
            adopted = self._moved.adopt(table, ids, rows, give=at is None)
        return Message({"status": "ok", "rows": adopted})

    def _stand(self, message: Message) -> Message:
        header = message.header
        applied = header.get("applied")
        if not isinstance(applied, dict):
            raise RefusedError("stand: `applied` must be an object.")
        sequences = {str(node): whole(applied, node) for node in applied}
        next_id = whole(header, "next_id")
        self._state.stand(whole(header, "incarnation"), at_of(message), sequences, next_id)
        return Message({"status": "ok"})
