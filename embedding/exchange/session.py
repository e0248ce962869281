"""A greeted stream to one server, opened again when it breaks, and short calls beside it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import tenacity

from embedding.exchange.channel import Channel
from embedding.exchange.codec import acknowledged, decode_vocabulary
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.contributors import Contributors
from embedding.exchange.protocol import PROTOCOL_VERSION, Ack, VocabularyDelta, Welcome
from embedding.exchange.wire import Message, text_array
from embedding.kernel.errors import BehindError, ExchangeError, UnavailableError
from embedding.kernel.records import IntArray, SnapshotRef, Window

PARTING_S = 3.0
"""How long a process that was told to stop still tries."""


def patiently(
    call: Callable[[], T],
    *,
    config: ExchangeConfig,
    stop: threading.Event,
    drop: Callable[[], None],
    away: Callable[[BaseException | None], None],
) -> T:
    """Run `call` again, with back-off, for `connect_timeout_s`, and not much longer than `stop`.

    Nobody may be left of those who started a process that is told to stop: it must not wait for a
    server that went with them.

    drop  forgets the connection, before each further try
    away  hears why the first try failed
    """

    def pause(seconds: float) -> None:
        if stop.is_set():
            time.sleep(min(seconds, PARTING_S / 4))
        else:
            stop.wait(seconds)

    def reset(state: tenacity.RetryCallState) -> None:
        drop()
        if state.attempt_number == 1:
            away(state.outcome.exception() if state.outcome is not None else None)

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(UnavailableError),
        wait=tenacity.wait_exponential_jitter(
            initial=config.backoff_s, max=config.max_backoff_s, jitter=config.backoff_s
        ),
        stop=tenacity.stop_any(tenacity.stop_after_delay(config.connect_timeout_s), _Parting(stop)),
        sleep=pause,
        before_sleep=reset,
        reraise=True,
    )(call)


class _Parting(tenacity.stop.stop_base):
    """Whether `stop` has been set for `PARTING_S` seconds, as far as was looked."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._since: float | None = None

    def __call__(self, state: tenacity.RetryCallState) -> bool:
        del state
        if not self._stop.is_set():
            return False
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        return now - self._since >= PARTING_S


logger = logging.getLogger(__name__)
T = TypeVar("T")


class Session:
    """One node at one server.

    `request` and `stream` belong to one thread at a time, which holds `lock`; `action` may be
    called by any thread. While the server is away each call goes on trying for
    `connect_timeout_s`, or for a moment once `stop` is set, and then raises UnavailableError.

    resume   run on every new stream before the greeting counts, and told whether this process
             greets for the first time. No request can overtake it: a push that a restarted server
             lost is there again before anybody asks for rows
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
        resume: Callable[[Channel, Welcome, bool], None],
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
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def reached(self, clock: int) -> None:
        """The server has let this node's clock come so far."""
        self.clock = max(self.clock, clock)

    def close(self) -> None:
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
            header = {
                "op": "hello",
                "version": PROTOCOL_VERSION,
                "node": self.node,
                "config_digest": self._digest,
                "clock": self.clock,
                "life": self._incarnation,
            }
            known = self.welcome
            try:
                self._channel.open()
                welcome = Welcome.from_dict(self._channel.request(Message(header)).header)
                if known and welcome.shared is not None and welcome.epoch != known.epoch:
                    raise BehindError(
                        f"node {self.node}: the server was restarted, and with it the tables that "
                        "this node shares went back to its checkpoint; start the node again."
                    )
                self._resume(self._channel, welcome, known is None)
            except Exception:
                self.drop()
                raise
            self.welcome = welcome
            self.reached(welcome.clock)
            return welcome

    def _patiently(self, call: Callable[[], T], *, drop: Callable[[], None]) -> T:
        def away(error: BaseException | None) -> None:
            logger.warning("node %s: %s Trying again.", self.node, error)

        return patiently(call, config=self.config, stop=self.stop, drop=drop, away=away)


class ServerCalls:
    """Over one session; admit, vocabulary and confirm use its stream, the others do not."""

    session: Session

    def admit(
        self, words: Sequence[str], counts: IntArray, contributors: Contributors | None = None
    ) -> IntArray:
        arrays = {"counts": counts} | ({} if contributors is None else contributors.arrays())
        message = Message({"op": "admit"}, arrays, {"words": text_array(words)})
        return self.session.request(message).array("ids", "i8", 1)

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        return decode_vocabulary(
            self.session.request(Message({"op": "vocabulary", "since": since}))
        )

    def confirm(self) -> Ack:
        """How far the server is with this client's pushes."""
        return acknowledged(self.session.request(Message({"op": "confirm"})))

    def cut(self, window: Window, *, timeout_s: float = 600.0) -> SnapshotRef:
        """Publish the window's snapshot; the same reference when it was cut before."""
        bounds = {"start": window.start.isoformat(), "end": window.end.isoformat()}
        return SnapshotRef.from_dict(self.session.action("cut", bounds, timeout_s))

    def fence(self, node: str, incarnation: str) -> None:
        """Have the server note that no push of this incarnation of a node is taken any more."""
        self.session.action("fence", {"node": node, "life": incarnation})

    def checkpoint(self, *, wait: bool = True) -> None:
        """Ask for a checkpoint; with `wait` it is complete on return."""
        self.session.action("checkpoint", {"wait": wait})
