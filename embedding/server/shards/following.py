"""A shard of a group that follows: a part of a replica, which the leading group has whole.

It writes no checkpoint; the leader is its checkpoint. Started again it gets the rows that the
leader has, and the log from the entry on up to which they hold what the group's nodes have pushed;
the nodes send the rows of what comes after (docs/adr/0015-server-groups.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from embedding.exchange.headers import position, whole
from embedding.exchange.wire import Array, Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.rows.drift import Moved
from embedding.server.rowstore.interface import LogPosition
from embedding.server.shards.fields import at_of, not_yet, table_of
from embedding.server.shards.moved import MovedRows
from embedding.server.shards.spec import ShardSpec
from embedding.server.shards.state import ShardState


def following_shard(spec: ShardSpec) -> ShardState:
    """A shard without rows. Each incarnation is another: the primary tells by it that rows are
    gone.
    """
    return ShardState(spec, epoch=time.time_ns(), moved=MovedRows)


class FollowingShard:
    """What the primary of a group asks of a shard's rows, in the order of the log."""

    def __init__(self, state: ShardState, moved: MovedRows) -> None:
        self._state = state
        self._moved = moved

    def moves(self, table: Table, at: LogPosition, first: int, most: int) -> Moved | None:
        """Some of the rows that had moved at the entry `at`, by id; None: not there yet."""
        with self._state.changed:
            if not self._state.reach(at):
                return None
            return self._moved.fetched(table, at[1], first, most)

    def adopt(
        self, table: Table, ids: IntArray, rows: FloatArray, at: LogPosition | None
    ) -> int | None:
        """The leader has these rows; how many of their words have a row here.

        at  where in the log all of their words have been given; None there: not there yet.
            Without it words without a row here get one
        """
        with self._state.changed:
            if at is not None and not self._state.reach(at):
                return None
            return self._moved.adopt(table, ids, rows, give=at is None)


def following_calls(state: ShardState) -> dict[str, Callable[[Message], Message]]:
    """What the primary of a group may ask of a shard besides; nothing where no group follows."""
    if state.moved is None:
        return {}
    follower = FollowingShard(state, state.moved)

    def moves(message: Message) -> Message:
        at, table = at_of(message), table_of(message)
        header = message.header
        found = follower.moves(table, at, whole(header, "first"), whole(header, "most", least=1))
        if found is None:
            return not_yet(state)
        arrays: dict[str, Array] = {"ids": found.slots, "bases": found.bases, "now": found.now}
        return Message({"status": "ok"}, arrays)

    def adopt(message: Message) -> Message:
        ids, rows = message.array("ids", "i8", 1), message.array("rows", "f4", 2)
        at = position(message.header.get("at"))
        adopted = follower.adopt(table_of(message), ids, rows, at)
        if adopted is None:
            return not_yet(state)
        return Message({"status": "ok", "rows": adopted})

    def stand(message: Message) -> Message:
        header = message.header
        applied = header.get("applied")
        if not isinstance(applied, dict):
            raise RefusedError("stand: `applied` must be an object.")
        sequences = {str(node): whole(applied, node) for node in applied}
        state.stand(whole(header, "life"), at_of(message), sequences, whole(header, "next_id"))
        return Message({"status": "ok"})

    return {"moves": moves, "adopt": adopt, "stand": stand}
