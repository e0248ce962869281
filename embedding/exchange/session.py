"""What a node, or a group that follows, gave a parameter server, and where it stands there.

Pushes that the server has taken but that are in no checkpoint yet are kept and sent again after it
was restarted, so that nothing that was acknowledged is lost.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from embedding.exchange.codec import from_message, to_message
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.contributors import AdmissionRequest, Admitted, Contributors
from embedding.exchange.peer import Channel, Peer, Talk, converse, say
from embedding.exchange.protocol import PROTOCOL_VERSION, Ack, Greeting, VocabularyDelta, Welcome
from embedding.exchange.wire import Message
from embedding.kernel.errors import BehindError, RefusedError, UnavailableError
from embedding.kernel.records import IntArray, SnapshotRef, Window

logger = logging.getLogger(__name__)


class Numbered(Protocol):
    """What is kept: a push of a node, or of a server group, of so many bytes.

    sequence  1, 2, 3, … by node, without a gap
    """

    @property
    def node(self) -> str: ...

    @property
    def sequence(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


P = TypeVar("P", bound=Numbered)


class PushLog(Generic[P]):
    """A bounded list of a node's unconfirmed pushes, in the order of their sequence numbers.

    nbytes     of all of them
    confirmed  the last push that a checkpoint is known to hold
    """

    def __init__(self, *, max_pushes: int, max_bytes: int) -> None:
        self.max_pushes = max_pushes
        self.max_bytes = max_bytes
        self._pushes: deque[P] = deque()
        self.nbytes = 0
        self.confirmed = 0
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._pushes)

    @property
    def load(self) -> float:
        """How full it is: 0 empty, 1 full."""
        return max(len(self._pushes) / self.max_pushes, self.nbytes / self.max_bytes)

    def add(self, push: P) -> None:
        """Keep a push; RefusedError when its sequence number does not follow the last one's."""
        if self._pushes and push.sequence != self._pushes[-1].sequence + 1:
            raise RefusedError(
                f"push {push.sequence} of node {push.node}: "
                f"{self._pushes[-1].sequence + 1} is the next sequence number."
            )
        self._forgotten = max(self._forgotten, push.sequence - 1 - len(self._pushes))
        self._pushes.append(push)
        self.nbytes += push.nbytes

    def confirm(self, durable: int) -> int:
        """Forget pushes up to `durable`; returns how many were forgotten."""
        forgotten = 0
        while self._pushes and self._pushes[0].sequence <= durable:
            self.nbytes -= self._pushes.popleft().nbytes
            forgotten += 1
        self._forgotten = max(self._forgotten, durable)
        self.confirmed = max(self.confirmed, durable)
        return forgotten

    @property
    def held(self) -> tuple[int, int]:
        """The first push that is still here or will be made, and the last that was made."""
        return self._forgotten + 1, self._forgotten + len(self._pushes)

    def since(self, sequence: int) -> list[P]:
        """Pushes after `sequence` that are still here."""
        return [push for push in self._pushes if push.sequence > sequence]

    def begin(self, sequence: int) -> None:
        """A process begins behind push `sequence`, which an earlier one sent."""
        self._forgotten = sequence

    def drop_last(self, push: P) -> None:
        """Forget this push, the newest, if it is here: the server refused it."""
        if self._pushes and self._pushes[-1] is push:
            self.nbytes -= self._pushes.pop().nbytes

    def after(self, sequence: int) -> list[P]:
        """Pushes that the server has to get again when `sequence` is the last that it knows.

        BehindError when some that it does not know are no longer here: they were confirmed and the
        server lost its state folder, or an earlier process of this node sent them and they came
        into no checkpoint. This process's work since then cannot be put together with the server's.
        """
        if sequence < self._forgotten:
            raise BehindError(
                f"the server knows this node's pushes up to {sequence}, but those up to "
                f"{self._forgotten} are kept no longer: it lost them, or was started with another "
                "or an emptied state folder; start the node again."
            )
        return self.since(sequence)


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
