"""A greeted stream to one server, opened again when it breaks, and short calls beside it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from embedding.exchange.channel import Channel
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import PROTOCOL_VERSION, Welcome
from embedding.exchange.retrying import patiently
from embedding.exchange.wire import Message
from embedding.kernel.errors import BehindError, ExchangeError, UnavailableError

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Resume(Protocol):
    """What has to be done on a stream that was greeted just now."""

    def __call__(self, channel: Channel, welcome: Welcome, *, first: bool) -> None:
        """Send again what the server lacks; `first`: this process greets for the first time."""


class Requests(Protocol):
    """What takes messages to a server that are neither pull nor push: a session."""

    def request(self, message: Message) -> Message:
        """The server's answer."""


class Session:
    """One node at one server.

    `request` and `stream` belong to one thread at a time, which holds `lock`; `action` may be
    called by any thread. While the server is away each call goes on trying for
    `connect_timeout_s`, or for a moment once `stop` is set, and then raises UnavailableError.

    resume   run on every new stream before the greeting counts. No request can overtake it: a push
             that a restarted server lost is there again before anybody asks for rows
    welcome  the server's last greeting, None before the first
    clock    the highest clock that this node was given; it greets with it
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
        resume: Resume,
    ) -> None:
        self.location = location
        self.node = node
        self.config = config
        self.stop = stop or threading.Event()
        self.welcome: Welcome | None = None
        self.clock = 0
        self.lock = threading.RLock()
        self._digest, self._incarnation = config_digest, incarnation
        self._resume = resume
        self._channel: Channel | None = None
        self._control: Channel | None = None
        self._control_lock = threading.Lock()

    def hello(self) -> Welcome:
        """Greet the server: where this node stands there and what the policy is."""
        return self.retry(self._greet)

    def request(self, message: Message) -> Message:
        """Send a message on the stream and wait for its answer."""
        with self.lock:
            return self.retry(lambda: self.stream().request(message))

    def request_if_open(self, message: Message) -> Message | None:
        """As `request`, tried once and only on a stream that is open."""
        return None if self._channel is None else self._channel.request(message)

    def action(self, name: str, body: dict[str, Any], timeout_s: float | None = None) -> Any:
        """A control call; its JSON answer."""

        def call() -> Any:
            with self._control_lock:
                if self._control is None:
                    self._control = Channel(self.location, self.config)
                control = self._control
            return control.action(name, body, timeout_s)

        return self._patiently(call, drop=lambda: None)

    def retry(self, call: Callable[[], T]) -> T:
        """Run a call that uses the stream, again with back-off while the server is away."""
        try:
            return self._patiently(call, drop=self.drop)
        except UnavailableError:
            # Whoever asks again greets the server: it may have been started again meanwhile.
            self.drop()
            raise

    def stream(self) -> Channel:
        """The open stream; greets the server when there is none."""
        if self._channel is None:
            self._greet()
        if self._channel is None:
            raise UnavailableError(f"server {self.location}: the stream was closed.")
        return self._channel

    def drop(self) -> None:
        """Forget a broken stream."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def reached(self, clock: int) -> None:
        """The server has let this node's clock come so far."""
        self.clock = max(self.clock, clock)

    def close(self) -> None:
        """Say goodbye and close the connections."""
        with self.lock, self._control_lock:
            if self._channel is not None:
                try:
                    self._channel.request(Message({"op": "bye"}), 2.0)
                except ExchangeError:
                    logger.debug("node %s: the server was gone at goodbye", self.node)
            for channel in (self._channel, self._control):
                if channel is not None:
                    channel.close()
            self._channel = self._control = None

    def _greet(self) -> Welcome:
        with self.lock:
            if self._channel is None:
                self._channel = Channel(self.location, self.config)
            try:
                welcome = self._introduce(self._channel)
            except Exception:
                self.drop()
                raise
            self.welcome = welcome
            self.reached(welcome.clock)
            return welcome

    def _introduce(self, channel: Channel) -> Welcome:
        header = {
            "op": "hello",
            "version": PROTOCOL_VERSION,
            "node": self.node,
            "config_digest": self._digest,
            "clock": self.clock,
            "life": self._incarnation,
        }
        channel.open()
        welcome = Welcome.from_dict(channel.request(Message(header)).header)
        known = self.welcome
        if known is not None and welcome.shared is not None and welcome.epoch != known.epoch:
            raise BehindError(
                f"node {self.node}: the server was restarted, and with it the tables that this "
                "node shares went back to its checkpoint; start the node again."
            )
        self._resume(channel, welcome, first=known is None)
        return welcome

    def _patiently(self, call: Callable[[], T], *, drop: Callable[[], None]) -> T:
        def away(error: BaseException | None) -> None:
            logger.warning("node %s: %s Trying again.", self.node, error)

        return patiently(call, config=self.config, stop=self.stop, drop=drop, away=away)
