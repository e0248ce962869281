"""The rows of a group that follows, where those of the leading group lie on shards.

Rows go to and come from the shards, as a node's do (`exchange/shards/rows.py`); what was read
goes to the primary, which says to all shards when an entry's rows are added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from embedding.exchange.compression.feedback import Feedback
from embedding.exchange.headers import position, whole
from embedding.exchange.ownrows import ShardedView
from embedding.exchange.protocol import NAMES, Push
from embedding.exchange.rowpath import PathSetup
from embedding.exchange.shards.links import ShardLinks
from embedding.exchange.shards.split import joined, places, split_push
from embedding.exchange.shards.stream import ShardStream
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from yeoron_lab.groups.client import LeaderBytes, RemoteChanges, Seen
from yeoron_lab.groups.entry import GroupEntry, encode_rows

_NONE: IntArray = np.empty(0, dtype=np.int64)


class RowsOnLeadersShards:
    """LeaderRows that go to and come from all shards at the same time."""

    def __init__(self, setup: PathSetup[GroupEntry], nbytes: LeaderBytes) -> None:
        self._session, self._bytes = setup.session, nbytes
        config = setup.session.config
        view, most = ShardedView(config, Feedback(config)), config.max_message_bytes // 4
        self.links = ShardLinks(setup, view, _split, lambda part: encode_rows(part, most))
        self._at = (0, 0)

    def spread(self, entry: GroupEntry) -> None:
        self.links.push(entry)

    def rest(self, entry: GroupEntry) -> GroupEntry:
        return replace(entry, rows=())

    def live(self, table: Table, ids: IntArray, *, half: bool) -> FloatArray | HalfArray:
        """See LeaderRows; as they were when the group asked for changes, or later."""
        header = {"op": "pull", "at": list(self._at), "rows": "float16" if half else "float32"}
        with self._session.lock:
            self._session.stream()
            where = places(ids, len(self.links))
            wanted = [{Table.IN: _NONE, Table.OUT: _NONE, table: ids[own]} for own in where]
            answers = self.answers(lambda shard, own: shard.pull(header, own), wanted)
        return joined(where, [answer.array(NAMES[table], "f4 f2", 2) for answer in answers])

    def changed(self, found: RemoteChanges, answer: Message, seen: Seen) -> RemoteChanges:
        """What the shards say has changed, at the position that the primary has named."""
        at = position(answer.header.get("at"))
        if at is None:
            raise RefusedError("changes: the leader did not say what its shards have to hold.")
        self._at = at
        known = seen if len(seen) == len(self.links) else ((0, -1),) * len(self.links)
        asked = [
            Message({"op": "changes", "at": list(at), "epoch": epoch, "seen": clock})
            for epoch, clock in known
        ]
        answers = self.answers(ShardStream.ask, asked)
        moved_ids = {t: [a.array(t, "i8", 1) for a in answers if str(t) in a.arrays] for t in Table}
        ids = {table: np.concatenate(parts) for table, parts in moved_ids.items() if parts}
        # Words may have come between the primary's answer and the shards'.
        newest = max((int(ids[t].max(initial=-1)) for t in ids if t is not Table.SUB), default=-1)
        return replace(
            found,
            seen=tuple((whole(a.header, "epoch"), whole(a.header, "clock")) for a in answers),
            durable=self.links.safe(found.durable),
            next_id=max(found.next_id, newest + 1),
            ids=ids,
        )

    def answers(self, call: Callable[..., Message], parts: Sequence[object]) -> list[Message]:
        """As `ShardLinks.each`; UnavailableError when a shard is not where the primary says."""
        answers = self.links.each(call, parts)
        if any(answer.header["status"] != "ok" for answer in answers):
            raise UnavailableError("the leader's shards have not caught up with its primary.")
        self._bytes.received += sum(e.nbytes for answer in answers for e in answer.arrays.values())
        return answers


def _split(entry: GroupEntry, shards: int) -> list[Push]:
    """Each shard's part of an entry's rows, as the push of a node that has added them itself."""
    push = Push(entry.node, entry.sequence, 0, entry.rows, keeps=True)
    return split_push(push, shards)
