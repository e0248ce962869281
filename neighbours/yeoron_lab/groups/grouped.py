"""What a group that follows asks of the leading group's shards: they take the rows of its entries,
and say which rows others have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from embedding.exchange.protocol import Push
from embedding.exchange.wire import Message, whole
from embedding.kernel.records import IntArray, Table
from yeoron_lab.groups.entry import PIECE, Pieces, completed, decode_piece
from yeoron_lab.keeping.versions import versions_of
from yeoron_lab.shards.log import at_of
from yeoron_lab.shards.state import ShardState


class GroupStream:
    """The calls of one group's stream; `who` says which group greeted on it."""

    def __init__(self, state: ShardState, who: Callable[[], str]) -> None:
        self._state = state
        self._who = who
        self._pieces = Pieces()
        self.speaks = False
        """Whether this is a group's stream: its bytes are not those of nodes."""

    def calls(self) -> dict[str, Callable[[Message], Message]]:
        return {PIECE: self._piece, "changes": self._changes}

    def received(self, push: Push, message: Message) -> Push:
        """A push as it came, or the rows of an entry with those that came before it in pieces."""
        if "pieces" not in message.header:
            return push
        state, self.speaks = self._state, True
        expected = whole(message.header, "pieces")
        rows = completed(self._pieces, push.sequence, expected, push.deltas)
        with state.lock:
            if push.sequence <= state.inbox.ledger.of(push.node).applied:
                # It may have been another one, if the group died together with the primary: the
                # group is told what the rows are.
                state.tables.lost([push.node])
        return replace(push, deltas=rows)

    def _piece(self, message: Message) -> Message:
        tables = self._state.tables
        most = 4 * self._state.spec.server.max_words + tables.buckets + 1
        decode_piece(message, self._pieces, dim=tables.dim, most_rows=most)
        return Message({"status": "ok"})

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
            header = {
                "status": "ok",
                "clock": versions_of(state.tables).clock,
                "epoch": state.epoch,
                "accepted": state.inbox.accepted(group),
                "durable": state.durable(group),
            }
        return Message(header, {str(table): each for table, each in ids.items()})

    def _lacks(self, group: str, table: Table, seen: int) -> IntArray:
        state = self._state
        grams = table is Table.SUB
        slots = np.arange(state.tables.buckets, dtype=np.int64) if grams else state.held.map.used()
        ids = state.held.ids(table, slots)
        found: IntArray = ids[versions_of(state.tables).unknown(group, table, slots, seen)]
        return found
