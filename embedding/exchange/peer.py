"""One side of a conversation: with a server, a shard, a leader or an aggregator.

    greet ─▶ hear where I stand there ─▶ send again what it lacks ─▶ ask

A stream that breaks is opened again in this order, so that whatever was started again has what it
lost before anybody asks it. What is said is a `Talk`, which does no input or output itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

import tenacity

from embedding.exchange.channel import Channel
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.wire import Message
from embedding.kernel.errors import ExchangeError, UnavailableError

logger = logging.getLogger(__name__)
T = TypeVar("T")

Talk = Generator[Message, Message, T]
"""Yields what is sent, is given the answer to it, and returns what came of all."""

PARTING_S = 3.0
"""How long a process that is stopping still tries."""


def say(messages: Iterable[Message]) -> Talk[Message]:
    """The answer to the last of these messages."""
    answer = Message({})
    for message in messages:
        answer = yield message
    return answer


def nothing_to_say() -> Talk[None]:
    """The greeting of who keeps nothing that the other side could lack."""
    yield from ()


class Peer:
    """A greeted stream, opened again when it breaks, and short calls beside it.

    What uses the stream holds `lock`, so that any thread may call it. While the other side is away
    a call goes on trying for `connect_timeout_s`, or for a moment once `stop` is set, and then
    raises UnavailableError; `once` and `open` try once.

    greet  what is said first on every new stream. No request can overtake it: a push that a
           restarted server lost is there again before anybody asks for rows
    name   of this side, for the log
    """

    def __init__(
        self,
        location: str,
        config: ExchangeConfig,
        greet: Callable[[], Talk[None]] = nothing_to_say,
        *,
        name: str = "",
        stop: threading.Event | None = None,
    ) -> None:
        self.location = location
        self.config = config
        self.stop = stop or threading.Event()
        self.lock = threading.RLock()
        self._greet, self._name = greet, name
        self._channel: Channel | None = None
        self._control: Channel | None = None
        self._control_lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        return self._channel is not None

    def open(self) -> Channel:
        """The greeted stream, tried once; UnavailableError when the other side is away."""
        with self.lock:
            if self._channel is None:
                self._channel = self._new()
                try:
                    self._channel.open()
                    converse(self._channel, self._greet())
                except BaseException:
                    self.drop()
                    raise
            return self._channel

    def greet(self) -> None:
        """Greet the other side, also on a stream that is open."""
        with self.lock:
            greeted = self._channel is not None
            self.run(lambda channel: converse(channel, self._greet()) if greeted else None)

    def run(self, call: Callable[[Channel], T]) -> T:
        """What `call` returns on the stream; again on a new one while the other side is away."""
        with self.lock:
            try:
                answer: T = self._retrying(self.drop)(self._try, call)
                return answer
            except UnavailableError:
                # Whoever asks again greets: the other side may have been started again meanwhile.
                self.drop()
                raise

    def once(self, call: Callable[[Channel], T]) -> T:
        """As `run`, tried once."""
        with self.lock:
            try:
                return self._try(call)
            except UnavailableError:
                self.drop()
                raise

    def request(self, message: Message, *, patient: bool = True) -> Message:
        """The answer to one message."""
        return (self.run if patient else self.once)(lambda channel: channel.request(message))

    def action(self, name: str, body: dict[str, Any], timeout_s: float | None = None) -> Any:
        """The JSON answer to a control call, which does not wait for the stream."""

        def call() -> Any:
            with self._control_lock:
                if self._control is None:
                    self._control = self._new()
                control = self._control
            return control.action(name, body, timeout_s)

        return self._retrying(self._look_again)(call)

    def _look_again(self) -> None:
        """After a call that failed: a server whose socket is gone is reached by its port."""
        with self._control_lock:
            if self._control is not None and self._control.moved:
                self._control.leave()
                self._control = None

    def drop(self) -> None:
        """End the stream without a goodbye; the next call opens another."""
        with self.lock:
            if self._channel is not None:
                self._channel.close()
                self._channel = None

    def close(self, *goodbye: Message) -> None:
        """Say goodbye, where the stream is open, and close what is."""
        with self.lock, self._control_lock:
            try:
                for message in goodbye:
                    if self._channel is not None:
                        self._channel.request(message, 2.0)
            except ExchangeError:
                logger.debug("%s: %s was gone at goodbye", self._name, self.location)
            self.drop()
            if self._control is not None:
                self._control.close()
                self._control = None

    def _new(self) -> Channel:
        return Channel(self.location, self.config)

    def _try(self, call: Callable[[Channel], T]) -> T:
        return call(self.open())

    def _retrying(self, drop: Callable[[], None]) -> tenacity.Retrying:
        """Runs a call again with back-off, and not much longer than `stop`.

        A process that is stopping must not wait for its server: whoever started both may have ended
        the server too.
        """

        def pause(seconds: float) -> None:
            if self.stop.is_set():
                time.sleep(min(seconds, PARTING_S / 4))
            else:
                self.stop.wait(seconds)

        def reset(state: tenacity.RetryCallState) -> None:
            drop()
            if state.attempt_number == 1 and state.outcome is not None:
                logger.warning("%s: %s Trying again.", self._name, state.outcome.exception())

        config = self.config
        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(UnavailableError),
            wait=tenacity.wait_exponential_jitter(
                initial=config.backoff_s, max=config.max_backoff_s, jitter=config.backoff_s
            ),
            stop=tenacity.stop_any(
                tenacity.stop_after_delay(config.connect_timeout_s), _Parting(self.stop)
            ),
            sleep=pause,
            before_sleep=reset,
            reraise=True,
        )


def converse(channel: Channel, talk: Talk[T]) -> T:
    """Have a talk on an open stream."""
    try:
        message = next(talk)
        while True:
            message = talk.send(channel.request(message))
    except StopIteration as end:
        value: T = end.value
        return value


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
