"""A node's stream to one shard; when it breaks, the shard gets what it lost first."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from embedding.exchange.channel import Channel
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.headers import whole
from embedding.exchange.ownrows import OwnRows
from embedding.exchange.protocol import NAMES, PROTOCOL_VERSION, Push
from embedding.exchange.session import patiently
from embedding.exchange.wire import Message
from embedding.kernel.errors import BehindError, UnavailableError
from embedding.kernel.records import IntArray, Table

logger = logging.getLogger(__name__)


class ShardStream:
    """Used by one thread at a time.

    unconfirmed  (sequence) → this shard's parts of the pushes after it that the node still has
    held         the first push that the node still has or will make, and the last it has made
    messages     how a part is sent
    stop         set when the process was told to stop: then nothing is tried for long
    rows         what the node keeps of this shard's rows
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
        rows: OwnRows,
        messages: Callable[[Push], Sequence[Message]],
        stop: threading.Event | None = None,
    ) -> None:
        self.location = location
        self.durable = 0
        self.rows = rows
        self._greeted = False
        self._node = node
        self._config = config
        self._unconfirmed = unconfirmed
        self._held = held
        self._messages = messages
        self._stop = stop or threading.Event()
        self._channel: Channel | None = None

    def push(self, push: Push) -> None:
        self._taken(self._patiently(lambda: self._sent(self._open(), push)))

    def pull(self, header: Mapping[str, Any], asked: Mapping[Table, IntArray]) -> Message:
        """Ask for rows, with what is kept of them; `rows.read` reads the answer."""
        named = {NAMES[table]: ids for table, ids in asked.items()}
        message = Message(header, named)

        def call() -> Message:
            channel = self._open()  # which may have begun a new stream, for which nothing is kept
            return channel.request(self.rows.asking(message, asked))

        return self._patiently(call)

    def ask(self, message: Message) -> Message:
        """Send a message; where it is answered, how far this node's pushes are as well."""
        answer = self.request(message)
        if answer.header["status"] == "ok":
            self._taken(answer)
        return answer

    def confirm(self, *, patient: bool = True) -> None:
        """Ask how far this node's pushes are; after a restart of the shard send what it lost.

        Not `patient`, it is tried once.
        """
        if patient:
            self._patiently(lambda: self._confirmed(self._open()))
            return
        try:
            self._confirmed(self._open())
        except UnavailableError:
            self.close()
            raise

    def request(self, message: Message) -> Message:
        """Send a message and wait for the answer, again with back-off while the shard is away."""
        return self._patiently(lambda: self._open().request(message))

    def _patiently(self, call: Callable[[], Message]) -> Message:
        def away(error: BaseException | None) -> None:
            del error
            logger.warning("node %s: shard %s is away; trying again", self._node, self.location)

        return patiently(call, config=self._config, stop=self._stop, drop=self.close, away=away)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _open(self) -> Channel:
        if self._channel is None:
            channel = Channel(self.location, self._config)
            try:
                self._introduce(channel)
            except Exception:
                channel.close()
                raise
            self._channel = channel
        return self._channel

    def _introduce(self, channel: Channel) -> None:
        channel.open()
        # Pushes before `first` are with nobody any more: the shard does not wait for them. Those
        # that it applied beyond `last` came from a process that died with the primary; their
        # numbers are given again.
        first, last = self._held()
        header = {"op": "hello", "version": PROTOCOL_VERSION, "node": self._node}
        header |= {"first": first, "last": last}
        answer = channel.request(Message(header))
        if whole(answer.header, "durable") < self.durable:
            raise BehindError(
                f"shard {self.location}: it knows this node's pushes up to "
                f"{answer.header['durable']}, but had those up to {self.durable} in a checkpoint: "
                "it lost its state folder; start the node again."
            )
        accepted, epoch = whole(answer.header, "accepted"), whole(answer.header, "epoch")
        self.rows.greeted(epoch, accepted, direct=True, first=not self._greeted)
        self._greeted = True
        self._taken(self._resend(channel, answer))

    def _confirmed(self, channel: Channel) -> Message:
        answer = self._resend(channel, channel.request(Message({"op": "confirm"})))
        self._taken(answer)
        return answer

    def _resend(self, channel: Channel, answer: Message) -> Message:
        """Send what the shard says it lacks of the pushes that are here; its last answer."""
        lost = self._unconfirmed(whole(answer.header, "accepted"))
        if lost:
            logger.info(
                "node %s: sending %d pushes to %s again", self._node, len(lost), self.location
            )
        for push in lost:
            answer = self._sent(channel, push)
        return answer

    def _sent(self, channel: Channel, push: Push) -> Message:
        """Send a push; the answer to its last message."""
        *first, last = self._messages(push)
        for message in first:
            channel.request(message)
        return channel.request(last)

    def _taken(self, answer: Message) -> None:
        header: Any = answer.header
        self.durable = max(self.durable, whole(header, "durable"))
