"""The line of a group that follows to a leading group whose rows lie on shards.

Rows go to and come from the shards, as a node's do (`exchange/shards/client.py`); what was read
goes to the primary, which says to all shards when an entry's rows are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from embedding.exchange.channel import Channel
from embedding.exchange.codec import position, whole
from embedding.exchange.groups.client import Changes, LeaderClient, Seen
from embedding.exchange.groups.entry import Entry, encode_rows
from embedding.exchange.protocol import Ack, Push, Welcome
from embedding.exchange.rowcache import NAMES
from embedding.exchange.shards.client import ShardedClient
from embedding.exchange.shards.split import joined, places
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table

_NONE: IntArray = np.empty(0, dtype=np.int64)


class ShardedLeaderClient(LeaderClient, ShardedClient):
    """A LeaderClient whose rows go to and come from all shards at the same time."""

    _at: tuple[int, int] = (0, 0)

    def merge(self, entry: Entry) -> Ack:
        """See LeaderClient.merge."""
        with self._stream_lock:
            ack = self._retry(lambda: self._brought(entry))
            self._taken(ack)
            return ack

    def _brought(self, entry: Entry) -> Ack:
        self._stream()  # the first greeting tells where the shards are
        parts = self._split(rows_of(entry), len(self._shards))
        self._each(
            [
                partial(self._push_part, shard, part)
                for shard, part in zip(self._shards, parts, strict=True)
            ]
        )
        return self._deliver(self._stream(), entry)

    def live(self, table: Table, ids: IntArray, *, half: bool) -> FloatArray | HalfArray:
        """See LeaderClient.live; as they were when the group asked for changes, or later."""
        header = {"op": "pull", "at": list(self._at), "rows": "float16" if half else "float32"}
        with self._stream_lock:
            self._stream()
            where = places(ids, len(self._shards))
            wanted = [{Table.IN: _NONE, Table.OUT: _NONE, table: ids[own]} for own in where]
            answers = self._answers(
                [
                    partial(shard.pull, header, own)
                    for shard, own in zip(self._shards, wanted, strict=True)
                ]
            )
        self.sent += ids.nbytes
        return joined(where, [answer.array(NAMES[table], "f4 f2", 2) for answer in answers])

    def _changed(self, answer: Message, seen: Seen) -> Changes:
        """What the shards say has changed, at the position that the primary has named."""
        found = super()._changed(answer, seen)
        at = position(answer.header.get("at"))
        if at is None:
            raise RefusedError("changes: the leader did not say what its shards have to hold.")
        self._at = at
        known = seen if len(seen) == len(self._shards) else ((0, -1),) * len(self._shards)
        asked = [
            Message({"op": "changes", "at": list(at), "epoch": epoch, "seen": clock})
            for epoch, clock in known
        ]
        answers = self._answers(
            [partial(shard.ask, each) for shard, each in zip(self._shards, asked, strict=True)]
        )
        told = {t: [a.array(t, "i8", 1) for a in answers if str(t) in a.arrays] for t in Table}
        ids = {table: np.concatenate(parts) for table, parts in told.items() if parts}
        # Words may have come between the primary's answer and the shards'.
        newest = max((int(ids[t].max(initial=-1)) for t in ids if t is not Table.SUB), default=-1)
        return replace(
            found,
            seen=tuple((whole(a.header, "epoch"), whole(a.header, "clock")) for a in answers),
            durable=self._safe(found.durable),
            next_id=max(found.next_id, newest + 1),
            ids=ids,
        )

    def _answers(self, calls: Sequence[Callable[[], Message]]) -> list[Message]:
        """Each shard's; UnavailableError when one is not where the primary says that it is."""
        answers = self._each(calls)
        if any(answer.header["status"] != "ok" for answer in answers):
            raise UnavailableError("the leader's shards have not caught up with its primary.")
        self.received += sum(e.nbytes for answer in answers for e in answer.arrays.values())
        return answers

    def _deliver(self, channel: Channel, entry: Entry) -> Ack:
        """Tell the primary; the shards get the rows before, or when they are greeted again."""
        return super()._deliver(channel, replace(entry, rows=()))

    def _resend(self, channel: Channel, welcome: Welcome) -> None:
        self._bring(welcome)
        super()._resend(channel, replace(welcome, durable=self._safe(welcome.durable)))

    def _taken(self, ack: Ack) -> None:
        self.entries.confirm(self._safe(ack.durable))
        super()._taken(ack)

    def _safe(self, durable: int) -> int:
        """The last entry that is in a checkpoint of the primary and of every shard."""
        return min([durable, *(shard.durable for shard in self._shards)])

    @property
    def _unsafe(self) -> bool:
        return len(self.entries) > 0

    # -- what a shard gets -----------------------------------------------------------------------

    def _held(self) -> tuple[int, int]:
        kept = self.entries
        return kept.forgotten + 1, kept.forgotten + len(kept)

    def _parts(self, index: int, count: int, sequence: int) -> list[Push]:
        entries = self.entries.since(sequence)
        return [self._split(rows_of(entry), count)[index] for entry in entries]

    def _messages(self, part: Push) -> list[Message]:
        """A shard's part of an entry, as messages that each stay small."""
        return encode_rows(part, self.config.max_message_bytes // 4)


def rows_of(entry: Entry) -> Push:
    """The rows of an entry as the push of a node that has added them itself."""
    return Push(entry.node, entry.sequence, 0, entry.rows, keeps=True)
