"""The line of a group that follows to the leading group's server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.session import Path, Session, ShardSync
from embedding.exchange.wire import Message, whole
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from yeoron_lab.groups.entry import GroupEntry, encode_entry
from yeoron_lab.together import OFFSETS, split_texts

Seen = tuple[tuple[int, int], ...]
"""Of the leader, or of each of its shards: its incarnation, and the clock of its changes then."""


class Reached(NamedTuple):
    """How far a node's pushes are in the leader's tables, and how far in a checkpoint of it."""

    sequence: int
    offset: str
    tokens: int
    durable: int


@dataclass(frozen=True)
class RemoteChanges:
    """What others changed since the group looked last.

    seen      what to name the next time
    durable   last entry that is in a checkpoint
    version   of the vocabulary; next_id: the id that the next word gets; closed: no word gets one
    groups    groups whose rows are added up
    ids       int64 [n] by table, rows that the group lacks
    nodes     of each node, when the group asked for the first time; fences: incarnations of nodes
              that may not push any more, likewise
    asks      what each node is asked to hand in (`protocol.asks_of`)
    """

    seen: Seen
    durable: int
    version: int
    next_id: int
    closed: bool
    groups: int
    ids: dict[Table, IntArray]
    nodes: dict[str, Reached]
    fences: dict[str, tuple[str, ...]]
    asks: dict[str, Any] = field(default_factory=dict)


class LeaderRows(Path[GroupEntry], Protocol):
    """How a group's rows reach the place where they lie with the leader."""

    def changed(self, found: RemoteChanges, answer: Message, seen: Seen) -> RemoteChanges:
        """The leader's answer, completed by what is said elsewhere."""

    def live(self, table: Table, ids: IntArray, *, half: bool) -> FloatArray | HalfArray:
        """Rows [n, dim] as they are now, zeros for words that were evicted."""


@dataclass
class LeaderBytes:
    """What went to the leader, and what came from it.

    sent      of rows, ids and counts in entries, and of ids that were asked for
    received  of rows and ids in answers
    """

    sent: int = 0
    received: int = 0


LeaderSession = Session[GroupEntry, LeaderRows]

MakeLeaderRows = Callable[[LeaderSession, LeaderBytes], LeaderRows]


class RowsAtLeader:
    """Rows lie with the leader: they travel on the session's own stream."""

    def __init__(self, session: LeaderSession, nbytes: LeaderBytes) -> None:
        self._session, self._bytes = session, nbytes
        self.links = ShardSync()

    def spread(self, entry: GroupEntry) -> None:
        """The rows go with the entry."""

    def rest(self, entry: GroupEntry) -> GroupEntry:
        return entry

    def changed(self, found: RemoteChanges, answer: Message, seen: Seen) -> RemoteChanges:
        del answer, seen
        return found

    def live(self, table: Table, ids: IntArray, *, half: bool) -> FloatArray | HalfArray:
        header = {"op": "rows", "table": str(table), "rows": "float16" if half else "float32"}
        asked = Message(header, {"ids": np.asarray(ids, dtype=np.int64)})
        answer = self._session.peer.request(asked)
        self._bytes.received += size_of(answer)
        rows: FloatArray | HalfArray = answer.array("rows", "f4 f2", 2)
        return rows


class LeaderClient(LeaderSession):
    """A group is a node of the leader that never pulls, and sends entries where a node would push.

    log    entries that are in no checkpoint of the leader
    bytes  that went between them
    """

    def __init__(
        self,
        location: str,
        *,
        node: str,
        config: ExchangeConfig,
        config_digest: str = "",
        stop: threading.Event | None = None,
        rows: MakeLeaderRows = RowsAtLeader,
    ) -> None:
        self.bytes = LeaderBytes()
        super().__init__(
            location,
            node=node,
            config=config,
            config_digest=config_digest,
            stop=stop,
            incarnation="",
            path=lambda session: rows(session, self.bytes),
            encode=self._messages_of,
        )

    def keep(self, entry: GroupEntry) -> None:
        """An entry that is to be sent; from now on it reaches the leader, whatever breaks."""
        with self.lock:
            self.log.add(entry)

    def changes(self, seen: Seen, about: dict[str, Any]) -> RemoteChanges:
        """What changed since `seen`, as an earlier answer has it; (): everything."""
        with self.lock:
            epoch, clock = seen[0] if seen else (0, -1)
            header = {"op": "changes", "seen": clock, "epoch": epoch, "told": about}
            answer = self.peer.request(Message(header))
            self.bytes.received += size_of(answer)
            found = self.path.changed(_changes_of(answer), answer, seen)
            self.log.confirm(found.durable)
            return found

    def live(self, table: Table, ids: IntArray, *, half: bool) -> FloatArray | HalfArray:
        """Rows [n, dim] as they are now, zeros for words that were evicted.

        On shards: as they were when the group asked for changes, or later.
        """
        rows = self.path.live(table, ids, half=half)
        self.bytes.sent += ids.nbytes
        return rows

    def _messages_of(self, entry: GroupEntry) -> Iterator[Message]:
        for message in encode_entry(entry, self.config.max_message_bytes // 4):
            self.bytes.sent += size_of(message)
            yield message


def _changes_of(answer: Message) -> RemoteChanges:
    head = answer.header
    nodes = {name: Reached(*each) for name, each in head.get("nodes", {}).items()}
    offsets = split_texts(answer, OFFSETS, len(nodes))
    return RemoteChanges(
        seen=((whole(head, "epoch"), whole(head, "clock")),),
        durable=whole(head, "durable"),
        version=whole(head, "version"),
        next_id=whole(head, "next_id"),
        closed=head.get("closed") is True,
        groups=whole(head, "groups"),
        ids={t: answer.array(t, "i8", 1) for t in Table if str(t) in answer.arrays},
        nodes={
            name: reached._replace(offset=offset)
            for (name, reached), offset in zip(nodes.items(), offsets, strict=True)
        },
        fences={name: tuple(each) for name, each in head.get("fences", {}).items()},
        asks=dict(head.get("asks", {})),
    )


def size_of(message: Message) -> int:
    """Bytes of its words and arrays."""
    words = sum(int(each.nbytes) for each in message.texts.values())
    return words + sum(each.nbytes for each in message.arrays.values())
