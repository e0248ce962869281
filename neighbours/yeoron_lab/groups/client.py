"""The line of a group that follows to the leading group's server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Protocol

import numpy as np

from embedding.exchange.codec import from_message
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import OFFSET
from embedding.exchange.session import RowLinks, Session
from embedding.exchange.wire import Message
from embedding.kernel.fields import IDS, NotSent
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from embedding.server.rowstore import LogPosition
from yeoron_lab.groups.entry import GroupEntry, encode_entry

Seen = tuple[tuple[int, int], ...]
"""Of the leader, or of each of its shards: its incarnation, and the clock of its changes then."""


@dataclass(frozen=True)
class Reached:
    """How far a node's pushes are in the leader's tables, and how far in a checkpoint of it."""

    node: str
    sequence: int
    offset: Annotated[str, OFFSET]
    tokens: int
    durable: int


@dataclass(frozen=True)
class RemoteChanges:
    """What others changed since the group looked last.

    epoch, clock  the leader's incarnation, and the clock of its changes
    durable   last entry that is in a checkpoint
    version   of the vocabulary; next_id: the id that the next word gets; closed: no word gets one
    groups    groups whose rows are added up
    ids       int64 [n] by table, rows that the group lacks
    at        what the leader's shards have to hold, which say which rows those are
    nodes     of each node, when the group asked for the first time; fences: incarnations of nodes
              that may not push any more, likewise
    asks      what each node is asked to hand in (`protocol.asks_of`)
    seen      what to name the next time
    """

    epoch: int
    clock: int
    durable: int
    version: int
    next_id: int
    closed: bool
    groups: int
    ids: Annotated[Mapping[Table, IntArray], IDS]
    at: LogPosition | None = None
    nodes: tuple[Reached, ...] = ()
    fences: dict[str, Any] = field(default_factory=dict)
    asks: dict[str, Any] = field(default_factory=dict)
    seen: Annotated[Seen, NotSent()] = ()


class LeaderRows(Protocol):
    """A group's rows, wherever they lie with the leader."""

    @property
    def links(self) -> RowLinks[GroupEntry]:
        """Bring entries there."""

    def changed(self, changes: RemoteChanges, seen: Seen) -> RemoteChanges:
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


LeaderSession = Session[GroupEntry]

MakeLeaderRows = Callable[[LeaderSession, LeaderBytes], LeaderRows]


class RowsAtLeader:
    """Rows lie with the leader: they travel on the session's own stream."""

    def __init__(self, session: LeaderSession, nbytes: LeaderBytes) -> None:
        self._session, self._bytes = session, nbytes
        self.links = RowLinks[GroupEntry]()

    def changed(self, changes: RemoteChanges, seen: Seen) -> RemoteChanges:
        return replace(changes, seen=((changes.epoch, changes.clock),))

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

        def links(session: LeaderSession) -> RowLinks[GroupEntry]:
            self.rows = rows(session, self.bytes)
            return self.rows.links

        super().__init__(
            location,
            node=node,
            config=config,
            config_digest=config_digest,
            stop=stop,
            incarnation="",
            links=links,
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
            changes = self.rows.changed(from_message(RemoteChanges, answer), seen)
            self.log.confirm(changes.durable)
            return changes

    def live(self, table: Table, ids: IntArray, *, half: bool) -> FloatArray | HalfArray:
        """Rows [n, dim] as they are now, zeros for words that were evicted.

        On shards: as they were when the group asked for changes, or later.
        """
        rows = self.rows.live(table, ids, half=half)
        self.bytes.sent += ids.nbytes
        return rows

    def _messages_of(self, entry: GroupEntry) -> Iterator[Message]:
        for message in encode_entry(entry, self.config.max_message_bytes // 4):
            self.bytes.sent += size_of(message)
            yield message


def size_of(message: Message) -> int:
    """Bytes of its words and arrays."""
    words = sum(int(each.nbytes) for each in message.texts.values())
    return words + sum(each.nbytes for each in message.arrays.values())
