"""The line of a group that follows to the leading group's server."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from embedding.exchange.channel import Channel
from embedding.exchange.client import ParameterClient
from embedding.exchange.codec import acknowledged, whole
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.groups.entry import Entry, encode_entry
from embedding.exchange.protocol import Ack, Welcome
from embedding.exchange.pushlog import PushLog
from embedding.exchange.together import PLACES, split_texts
from embedding.exchange.wire import Message
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table

Seen = tuple[tuple[int, int], ...]
"""Of the leader, or of each of its shards: its life, and the clock of its changes then."""


class Reached(NamedTuple):
    """How far a node's pushes are in the leader's tables, and how far in a checkpoint of it."""

    sequence: int
    place: str
    tokens: int
    durable: int


@dataclass(frozen=True)
class Changes:
    """What others changed since the group looked last.

    seen      what to name the next time
    durable   last entry that is in a checkpoint
    version   of the vocabulary; next_id: the id that the next word gets; closed: no word gets one
    groups    groups whose rows are added up
    ids       int64 [n] by table, rows that the group lacks
    nodes     of each node, when the group asked for the first time; fences: lives of nodes that
              may not push any more, likewise
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


class LeaderClient(ParameterClient):
    """A group is a node of the leader that never pulls, and merges where a node would push.

    sent, received  bytes of rows, ids and counts in entries, and of rows in answers
    """

    def __init__(
        self,
        location: str,
        *,
        node: str,
        config: ExchangeConfig,
        config_digest: str = "",
        stop: threading.Event | None = None,
        life: str = "",
    ) -> None:
        super().__init__(
            location, node=node, config=config, config_digest=config_digest, stop=stop, life=life
        )
        self.sent = 0
        self.received = 0
        self.entries: PushLog[Entry] = PushLog(
            max_pushes=config.max_unconfirmed, max_bytes=config.max_unconfirmed_bytes
        )
        """Entries that are in no checkpoint of the leader."""

    def keep(self, entry: Entry) -> None:
        """An entry that is to be sent; from now on it reaches the leader, whatever breaks."""
        with self._stream_lock:
            self.entries.add(entry)

    def merge(self, entry: Entry) -> Ack:
        """Send an entry that is kept; it is applied once, however often it is sent."""
        with self._stream_lock:
            ack = self._retry(lambda: self._deliver(self._stream(), entry))
            self.entries.confirm(ack.durable)
            return ack

    def changes(self, seen: Seen, told: dict[str, Any]) -> Changes:
        """What changed since `seen`, as an earlier answer has it; (): everything."""
        with self._stream_lock:
            epoch, clock = seen[0] if seen else (0, -1)
            header = {"op": "changes", "seen": clock, "epoch": epoch, "told": told}
            answer = self._request(Message(header))
            self.received += _size(answer)
            found = self._changed(answer, seen)
            self.entries.confirm(found.durable)
            return found

    def _changed(self, answer: Message, seen: Seen) -> Changes:
        del seen
        head = answer.header
        nodes = {name: Reached(*each) for name, each in head.get("nodes", {}).items()}
        places = split_texts(answer, PLACES, len(nodes))
        told = zip(nodes.items(), places, strict=True)
        return Changes(
            seen=((whole(head, "epoch"), whole(head, "clock")),),
            durable=whole(head, "durable"),
            version=whole(head, "version"),
            next_id=whole(head, "next_id"),
            closed=head.get("closed") is True,
            groups=whole(head, "groups"),
            ids={t: answer.array(t, "i8", 1) for t in Table if str(t) in answer.arrays},
            nodes={name: reached._replace(place=place) for (name, reached), place in told},
            fences={name: tuple(each) for name, each in head.get("fences", {}).items()},
        )

    def live(self, table: Table, ids: IntArray, *, half: bool) -> FloatArray | HalfArray:
        """Rows [n, dim] as they are now, zeros for words that were evicted."""
        header = {"op": "rows", "table": str(table), "rows": "float16" if half else "float32"}
        answer = self._request(Message(header, {"ids": np.asarray(ids, dtype=np.int64)}))
        self.received += _size(answer)
        self.sent += ids.nbytes
        rows: FloatArray | HalfArray = answer.array("rows", "f4 f2", 2)
        return rows

    def fence(self, node: str, life: str) -> None:
        """Have the leader note that no push of this life of a node is taken any more."""
        self._action("fence", {"node": node, "life": life})

    def _deliver(self, channel: Channel, entry: Entry) -> Ack:
        answer = Message({})
        for message in encode_entry(entry, self.config.max_message_bytes // 4):
            answer = channel.request(message)
            self.sent += _size(message)
        return acknowledged(answer)

    def _resend(self, channel: Channel, welcome: Welcome) -> None:
        """Send again what the leader does not know: it was restarted, or the stream broke."""
        if self.welcome is None:
            self.entries.begin(welcome.sequence)
        self.entries.confirm(welcome.durable)
        for entry in self.entries.after(welcome.sequence):
            self._deliver(channel, entry)


def _size(message: Message) -> int:
    words = sum(int(each.nbytes) for each in message.texts.values())
    return words + sum(each.nbytes for each in message.arrays.values())
