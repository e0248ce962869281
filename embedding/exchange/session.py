"""What a node, or a group that follows, gave a parameter server, and where it stands there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Generic

from embedding.exchange.codec import from_message, to_message
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.contributors import AdmissionRequest, Admitted, Contributors
from embedding.exchange.peer import Channel, Peer, Talk, converse, say
from embedding.exchange.protocol import PROTOCOL_VERSION, Ack, Greeting, VocabularyDelta, Welcome
from embedding.exchange.pushlog import P, PushLog
from embedding.exchange.wire import Message
from embedding.kernel.errors import BehindError, UnavailableError
from embedding.kernel.records import IntArray, SnapshotRef, Window

logger = logging.getLogger(__name__)


class RowLinks(Generic[P]):
    """Brings what is pushed to where its rows lie, and keeps both in step; here they lie with the
    server itself. Under the session's lock, but for `wait_durable` and `close`.
    """

    def spread(self, push: P) -> None:
        """Send a push's rows to where they lie, before the server hears of it.

        The server orders pushes and says to shards when to apply theirs. So it must not hear of one
        whose rows are not there yet: the node could die in between, and nobody could bring them.
        """

    def rest(self, push: P) -> P:
        """What of a push the server itself gets."""
        return push

    def bring(self, welcome: Welcome) -> None:
        """Make whole what lies elsewhere, before the server hears of the pushes again."""

    def tend(self) -> None:
        """Look whether anything that was pushed is lost elsewhere, and send it again."""

    def safe(self, durable: int) -> int:
        """The last push that is in a checkpoint everywhere; `durable`, what the server says."""
        return durable

    def wait_durable(self) -> None:
        """The client is about to close: wait a moment until what it pushed is safe."""

    def close(self) -> None:
        """Close what is open; the session is closed."""


class Session(Generic[P]):
    """What is pushed is kept until it is in a checkpoint, and reaches the server once.

    peer     the conversation with the server. After a restart of the server what it lost of
             `log` is sent again first
    links    brings what is pushed to where its rows lie
    welcome  the server's last greeting, None before the first
    clock    the highest clock that this node was given; it greets with it
    greeted  what else is to be sent when the server has greeted
    encode   how what was pushed is sent
    """

    def __init__(
        self,
        location: str,
        *,
        node: str,
        config: ExchangeConfig,
        config_digest: str,
        stop: threading.Event | None,
        incarnation: str,
        links: Callable[[Session[P]], RowLinks[P]],
        encode: Callable[[P], Iterable[Message]],
    ) -> None:
        self.location, self.node, self.config = location, node, config
        self.peer = Peer(location, config, self._greet, name=f"node {node}", stop=stop)
        self.lock = self.peer.lock
        self.log: PushLog[P] = PushLog(
            max_pushes=config.max_unconfirmed, max_bytes=config.max_unconfirmed_bytes
        )
        self.welcome: Welcome | None = None
        self.clock = 0
        self.greeted: list[Callable[[Welcome], Iterable[Message]]] = []
        self._digest, self._incarnation, self._encode = config_digest, incarnation, encode
        self.links = links(self)

    def hello(self) -> Welcome:
        """The server's answer to a greeting, also on a stream that is open."""
        self.peer.greet()
        if self.welcome is None:
            raise UnavailableError(f"server {self.location}: it did not greet.")
        return self.welcome

    def send(self, push: P, aside: Callable[[P], Message | None] = lambda _: None) -> Ack:
        """Send a push that is in the log: its rows to where they lie, then the rest.

        aside  sends it another way; None: it goes to the server itself
        """

        def sent(channel: Channel) -> Message:
            answer = aside(push)
            if answer is None:
                self.links.spread(push)
                answer = converse(channel, self._messages(push))
            return answer

        with self.lock:
            return self.taken(self.peer.run(sent))

    def taken(self, answer: Message) -> Ack:
        """How far the server is with what was pushed; `durable`: wherever its rows lie."""
        ack = from_message(Ack, answer)
        ack = replace(ack, durable=self.links.safe(ack.durable))
        self.log.confirm(ack.durable)
        self.clock = max(self.clock, ack.clock)
        return ack

    def durable(self) -> int:
        """The last push that is in a checkpoint, wherever its rows lie."""
        with self.lock:
            self.links.tend()
            return self.taken(self.peer.request(Message({"op": "confirm"}))).durable

    def admit(
        self, words: Sequence[str], counts: IntArray, contributors: Contributors | None = None
    ) -> IntArray:
        asked = to_message(AdmissionRequest(words, counts, contributors))
        return from_message(Admitted, self.peer.request(asked)).ids

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        answer = self.peer.request(Message({"op": "vocabulary", "since": since}))
        return from_message(VocabularyDelta, answer)

    def cut(self, window: Window, *, timeout_s: float = 600.0) -> SnapshotRef:
        """Publish the window's snapshot; the same reference when it was cut before."""
        bounds = {"start": window.start.isoformat(), "end": window.end.isoformat()}
        return SnapshotRef.from_dict(self.peer.action("cut", bounds, timeout_s))

    def fence(self, node: str, incarnation: str) -> None:
        """Have the server note that no push of this incarnation of a node is taken any more."""
        self.peer.action("fence", {"node": node, "incarnation": incarnation})

    def checkpoint(self, *, wait: bool = True) -> None:
        """Ask for a checkpoint; with `wait` it is complete on return."""
        self.peer.action("checkpoint", {"wait": wait})

    def drop(self) -> None:
        """End the stream without a goodbye, as a process that dies: this node will be back.

        Windows that it reads for go on waiting for it.
        """
        self.peer.drop()

    def close(self) -> None:
        """Say goodbye, unless the stream was dropped, and close the connections."""
        self.links.wait_durable()
        self.peer.close(Message({"op": "bye"}))
        self.links.close()

    def _greet(self) -> Talk[None]:
        """The server takes a push whose number it knows for a duplicate, and one that leaves a gap
        not at all. So all after the last that it knows are sent, in order, before any new one."""
        greeting = Greeting(
            self.node, PROTOCOL_VERSION, self._digest, self.clock, self._incarnation
        )
        welcome, known = from_message(Welcome, (yield to_message(greeting))), self.welcome
        if known and welcome.shared is not None and welcome.epoch != known.epoch:
            raise BehindError(
                f"node {self.node}: the server was restarted, and with it the tables that "
                "this node shares went back to its checkpoint; start the node again."
            )
        self.links.bring(welcome)
        for also in self.greeted:
            yield from say(also(welcome))
        if known is None:
            self.log.begin(welcome.sequence)
        self.log.confirm(self.links.safe(welcome.durable))
        lost = self.log.after(welcome.sequence)
        if lost:
            logger.info("node %s: sending %d pushes again", self.node, len(lost))
        for push in lost:
            self.taken((yield from self._messages(push)))
        self.welcome = welcome
        self.clock = max(self.clock, welcome.clock)

    def _messages(self, push: P) -> Talk[Message]:
        return say(self._encode(self.links.rest(push)))

    def make_room(self) -> None:
        """Wait for a checkpoint when the log of unconfirmed pushes is full."""
        if self.log.load < 1.0:
            return
        self.checkpoint(wait=True)
        self.durable()
        if self.log.load >= 1.0:
            raise UnavailableError(
                f"node {self.node}: {len(self.log)} pushes ({self.log.nbytes} bytes) are in no "
                "checkpoint and the server's last checkpoint did not confirm one."
            )
