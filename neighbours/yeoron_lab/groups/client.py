"""The line of a group that follows to the leading group's server."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from embedding.exchange.codec import from_message
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import OFFSET
from embedding.exchange.session import RowLinks, Session
from embedding.exchange.wire import Message
from embedding.kernel.fields import IDS
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from yeoron_lab.groups.entry import GroupEntry, encode_entry

Seen = tuple[int, int]
"""The leader's incarnation, and the clock of its changes then."""


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
    nodes     of each node, when the group asked for the first time; fences: incarnations of nodes
              that may not push any more, likewise
    asks      what each node is asked to hand in (`protocol.asks_of`)
    """

    epoch: int
    clock: int
    durable: int
    version: int
    next_id: int
    closed: bool
    groups: int
    ids: Annotated[Mapping[Table, IntArray], IDS]
    nodes: tuple[Reached, ...] = ()
    fences: dict[str, Any] = field(default_factory=dict)
    asks: dict[str, Any] = field(default_factory=dict)

    @property
    def seen(self) -> Seen:
        """What to name the next time."""
        return self.epoch, self.clock


class LeaderClient(Session[GroupEntry]):
    """A group is a node of the leader that never pulls, and sends entries where a node would push.

    log             entries that are in no checkpoint of the leader
    bytes_sent      of rows, ids and counts in entries, and of ids that were asked for
    bytes_received  of rows and ids in answers
    """

    def __init__(
        self,
        location: str,
        *,
        node: str,
        config: ExchangeConfig,
        config_digest: str = "",
        stop: threading.Event | None = None,
    ) -> None:
        self.bytes_sent = self.bytes_received = 0
        super().__init__(
            location,
            node=node,
            config=config,
            config_digest=config_digest,
            stop=stop,
            incarnation="",
            links=lambda _: RowLinks[GroupEntry](),
            encode=self._messages_of,
        )

    def keep(self, entry: GroupEntry) -> None:
        """An entry that is to be sent; from now on it reaches the leader, whatever breaks."""
        with self.lock:
            self.log.add(entry)

    def changes(self, seen: Seen | None, about: dict[str, Any]) -> RemoteChanges:
        """What changed since `seen`, as an earlier answer has it; None: everything."""
        with self.lock:
            epoch, clock = seen or (0, -1)
            header = {"op": "changes", "seen": clock, "epoch": epoch, "told": about}
            answer = self.peer.request(Message(header))
            self.bytes_received += size_of(answer)
            changes = from_message(RemoteChanges, answer)
            self.log.confirm(changes.durable)
            return changes

    def live(self, table: Table, ids: IntArray, *, half: bool) -> FloatArray | HalfArray:
        """Rows [n, dim] as they are now, zeros for words that were evicted."""
        header = {"op": "rows", "table": str(table), "rows": "float16" if half else "float32"}
        asked = Message(header, {"ids": np.asarray(ids, dtype=np.int64)})
        answer = self.peer.request(asked)
        self.bytes_received += size_of(answer)
        self.bytes_sent += ids.nbytes
        return answer.array("rows", "f4 f2", 2)

    def _messages_of(self, entry: GroupEntry) -> Iterator[Message]:
        for message in encode_entry(entry, self.config.max_message_bytes // 4):
            self.bytes_sent += size_of(message)
            yield message


def size_of(message: Message) -> int:
    """Bytes of its words and arrays."""
    words = sum(int(column.nbytes) for column in message.texts.values())
    return words + sum(array.nbytes for array in message.arrays.values())
