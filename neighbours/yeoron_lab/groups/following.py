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
from embedding.server.shards.log import at_of, table_of
from embedding.server.shards.spec import ShardSpec
from embedding.server.shards.state import ShardState
from yeoron_lab.groups.moved import MovedRows


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
            found = self._moved.fetched(table_of(message), at[1], first, most)
        arrays: dict[str, Array] = {"ids": found.slots, "bases": found.bases, "now": found.now}
        return Message({"status": "ok"}, arrays)

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
        self._state.stand(whole(header, "life"), at_of(message), sequences, next_id)
        return Message({"status": "ok"})
