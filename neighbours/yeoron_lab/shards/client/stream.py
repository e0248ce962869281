"""A node's stream to one shard; when it breaks, the shard gets what it lost first."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence

from embedding.exchange.codec import to_message
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.peer import Channel, Peer, Talk, converse
from embedding.exchange.protocol import PROTOCOL_VERSION, PullRequest, Push
from embedding.exchange.rows import KeptRows
from embedding.exchange.wire import Message, whole
from embedding.kernel.errors import BehindError
from embedding.kernel.records import IntArray, Table

logger = logging.getLogger(__name__)


class ShardStream:
    """Used by one thread at a time.

    unconfirmed  (sequence) → this shard's parts of the pushes after it that the node still has
    held         the first push that the node still has or will make, and the last it has made
    encode       how a part is sent
    stop         set when the process was told to stop: then nothing is tried for long
    kept         what the node keeps of this shard's rows
    durable      last push of this node that is in a checkpoint of this shard
    """

    def __init__(
        self,
        location: str,
        *,
        node: str,
        config: ExchangeConfig,
        unconfirmed: Callable[[int], Sequence[Push]],
        held: Callable[[], tuple[int, int]],
        kept: KeptRows,
        encode: Callable[[Push], Message],
        stop: threading.Event | None = None,
    ) -> None:
        self.location = location
        self.durable = 0
        self.kept = kept
        self.peer = Peer(location, config, self._greet, name=f"node {node}", stop=stop)
        self._greeted = False
        self._node = node
        self._unconfirmed, self._held, self._encode = unconfirmed, held, encode

    def push(self, push: Push) -> None:
        self._taken(self.peer.request(self._encode(push)))

    def pull(self, at: tuple[int, int], asked: Mapping[Table, IntArray], *, half: bool) -> Message:
        """Ask for rows as they are at this position of the log or later, with what is kept of
        them."""
        message = to_message(PullRequest(asked, 0, half=half), at=list(at))
        # On a new stream nothing is kept: what is asked depends on it.
        return self.peer.run(lambda channel: channel.request(self.kept.asking(message, asked)))

    def ask(self, message: Message) -> Message:
        """Send a message; where it is answered, how far this node's pushes are as well."""
        answer = self.peer.request(message)
        if answer.header["status"] == "ok":
            self._taken(answer)
        return answer

    def confirm(self, *, patient: bool = True) -> None:
        """Ask how far this node's pushes are; after a restart of the shard send what it lost.

        Not `patient`, it is tried once.
        """

        def confirmed(channel: Channel) -> Message:
            answer = channel.request(Message({"op": "confirm"}))
            return converse(channel, self._resend(answer))

        self._taken((self.peer.run if patient else self.peer.once)(confirmed))

    def _greet(self) -> Talk[None]:
        # Pushes before `first` are with nobody any more: the shard does not wait for them. Those
        # that it applied beyond `last` came from a process that died with the primary; their
        # numbers are given again.
        first, last = self._held()
        header = {"op": "hello", "version": PROTOCOL_VERSION, "node": self._node}
        answer = yield Message({**header, "first": first, "last": last})
        if whole(answer.header, "durable") < self.durable:
            raise BehindError(
                f"shard {self.location}: it knows this node's pushes up to "
                f"{answer.header['durable']}, but had those up to {self.durable} in a checkpoint: "
                "it lost its state folder; start the node again."
            )
        accepted, epoch = whole(answer.header, "accepted"), whole(answer.header, "epoch")
        self.kept.greeted(epoch, accepted, first=not self._greeted)
        self._greeted = True
        self._taken((yield from self._resend(answer)))

    def _resend(self, answer: Message) -> Talk[Message]:
        """Send what the shard says it lacks of the pushes that are here; its last answer."""
        lost = self._unconfirmed(whole(answer.header, "accepted"))
        if lost:
            logger.info(
                "node %s: sending %d pushes to %s again", self._node, len(lost), self.location
            )
        for push in lost:
            answer = yield self._encode(push)
        return answer

    def _taken(self, answer: Message) -> None:
        self.durable = max(self.durable, whole(answer.header, "durable"))
