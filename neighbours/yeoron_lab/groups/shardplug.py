"""Where server groups are plugged into a shard, which needs little of them: it takes the rows of a
group's entries, and says which rows others have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from embedding.exchange.codec import from_message
from embedding.exchange.protocol import Push
from embedding.exchange.wire import Message, whole
from embedding.kernel.records import IntArray, Table
from embedding.kernel.registry import NoTraits
from yeoron_lab.groups.entry import MERGE, PIECE, Pieces
from yeoron_lab.groups.following import FollowingCalls, MovedRows, following_shard
from yeoron_lab.keeping.versions import versions_of
from yeoron_lab.shards.log import at_of
from yeoron_lab.shards.service import acknowledged
from yeoron_lab.shards.spec import ShardSpec
from yeoron_lab.shards.state import SHARD_GROUPS, ShardState


@SHARD_GROUPS.register("groups", NoTraits())
class ReplicatedShards:
    """See ShardGroups."""

    @staticmethod
    def following(spec: ShardSpec) -> ShardState:
        return following_shard(spec)

    @staticmethod
    def primary_calls(shard: ShardState) -> Mapping[str, Callable[[Message], Message]]:
        moved = shard.moved
        return FollowingCalls(shard, moved).calls() if isinstance(moved, MovedRows) else {}

    @staticmethod
    def conversation(shard: ShardState, who: Callable[[], str]) -> GroupStream:
        return GroupStream(shard, who)


class GroupStream:
    """The calls of one group's stream; `who` says which group greeted on it."""

    def __init__(self, state: ShardState, who: Callable[[], str]) -> None:
        self._state = state
        self._who = who
        self._pieces = Pieces()
        self.speaks = False
        """Whether this is a group's stream: its bytes are not those of nodes."""

    def calls(self) -> dict[str, Callable[[Message], Message]]:
        return {PIECE: self._piece, MERGE: self._merge, "changes": self._changes}

    def _piece(self, message: Message) -> Message:
        server, tables = self._state.spec.server, self._state.tables
        rows = 4 * server.max_words + tables.buckets + 1
        return self._pieces.add(message, server.max_message_bytes + rows * (4 * tables.dim + 8))

    def _merge(self, message: Message) -> Message:
        """The rows of an entry, as the push of a node that has added them itself."""
        state, group, self.speaks = self._state, self._who(), True
        push = from_message(Push, self._pieces.whole(message))
        with state.lock:
            if push.sequence <= state.inbox.ledger.of(group).applied:
                # It may have been another one, if the group died together with the primary: the
                # group is told what the rows are.
                state.tables.lost([group])
        state.push(replace(push, node=group))
        return acknowledged(state, group)

    def _changes(self, message: Message) -> Message:
        """Ids of rows here that others have changed since the group looked last."""
        state, group = self._state, self._who()
        at = at_of(message)
        seen, self.speaks = whole(message.header, "seen", least=-1), True
        with state.changed:
            state.reach(at)
            if whole(message.header, "epoch") != state.epoch:
                seen = -1
            ids = {table: self._lacks(group, table, seen) for table in state.tables.kinds}
            clock, answer = versions_of(state.tables).clock, acknowledged(state, group)
        header = {**answer.header, "clock": clock}
        return Message(header, {str(table): unknown for table, unknown in ids.items()})

    def _lacks(self, group: str, table: Table, seen: int) -> IntArray:
        state = self._state
        grams = table is Table.SUB
        slots = np.arange(state.tables.buckets, dtype=np.int64) if grams else state.held.map.used()
        ids = state.held.ids(table, slots)
        unknown: IntArray = ids[versions_of(state.tables).unknown(group, table, slots, seen)]
        return unknown
