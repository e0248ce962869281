"""One side of a conversation: with a server, a shard, a leader or an aggregator.

    greet ─▶ hear where I stand there ─▶ send again what it lacks ─▶ ask

A `Channel` is one connection: a long-lived `do_exchange` stream and short control calls. A `Peer`
opens a stream that breaks again in this order, so that whatever was started again has what it lost
before anybody asks it. What is said is a `Talk`, which does no input or output itself.
"""

from __future__ import annotations

import errno
import json
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.flight as flight
import tenacity

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.localsocket import local_location
from embedding.exchange.token import read_file, read_token
from embedding.exchange.wire import COMMAND, MESSAGE_SCHEMA, Message, decode, encode
from embedding.kernel.errors import (
    ConfigError,
    ExchangeError,
    FencedError,
    RefusedError,
    ReplacedError,
    UnavailableError,
)

logger = logging.getLogger(__name__)
T = TypeVar("T")

_CLOSE_TIMEOUT_S = 2.0
_AWAY = (
    flight.FlightUnavailableError,
    flight.FlightTimedOutError,
    flight.FlightInternalError,
    flight.FlightCancelledError,
    flight.FlightServerError,
    StopIteration,
    EOFError,
    OSError,
)


_KNOWN = (
    ("not in peer certificate", "its certificate is not for this address (subjectAltName)"),
    ("certificate has expired", "its certificate has expired"),
    ("certificate verify failed", "its certificate is not signed by the authority in tls_ca"),
    ("wrong version number", "it does not speak TLS there; try grpc://"),
    ("certificate required", "it asks for a client's certificate (tls_cert, tls_key)"),
    ("Connection refused", "nothing listens there"),
    ("address lookup failed", "no machine of that name is known"),
    ("Could not default verify", "tls_ca is needed for grpc+tls://"),
    ("Deadline Exceeded", "it did not answer in time"),
    ("Socket closed", "it closed the connection, as a server with TLS does to grpc://"),
)


def why_away(error: BaseException) -> str:
    """A short reason; the kind of the error where nothing better is known."""
    text = str(error)
    for sign, reason in _KNOWN:
        if sign in text:
            return reason
    if isinstance(error, OSError) and error.errno in errno.errorcode:
        return str(error.strerror)
    return type(error).__name__


class Channel:
    """A connection that is opened once; after an UnavailableError it is closed and not used again.

    `request` is used by one thread at a time; `action` by any thread.
    """

    def __init__(self, location: str, config: ExchangeConfig) -> None:
        self.location = location
        self.config = config
        self._headers = _headers(config)
        self._reached = local_location(location)
        self._client = _connect(self._reached, config)
        self._writer: Any = None
        self._reader: Any = None
        self._watch = _Watchdog(self._cancel)

    def open(self) -> None:
        """Open the stream, unless it is open."""
        if self._writer is not None:
            return
        # A short call first: unlike a stream it has a time limit while it connects.
        self.action("ping", {})
        descriptor = flight.FlightDescriptor.for_command(COMMAND)
        options = flight.FlightCallOptions(headers=self._headers)

        def begin() -> None:
            self._writer, self._reader = self._client.do_exchange(descriptor, options)
            self._writer.begin(MESSAGE_SCHEMA)

        self._guard(begin, self.config.request_timeout_s)

    def request(self, message: Message, timeout_s: float | None = None) -> Message:
        """Send one message and wait for its answer."""
        batch, header = encode(message)
        size = batch.nbytes + len(header)
        if size > self.config.max_message_bytes:
            raise RefusedError(
                f"{message.kind}: {size} bytes; max_message_bytes allows "
                f"{self.config.max_message_bytes}: use smaller blocks."
            )

        def exchange() -> Message:
            self._writer.write_with_metadata(batch, pa.py_buffer(header))
            chunk = self._reader.read_chunk()
            return decode(chunk.data, chunk.app_metadata)

        answer = self._guard(exchange, timeout_s or self.config.request_timeout_s)
        _check(answer.header)
        return answer

    def action(self, name: str, body: dict[str, Any], timeout_s: float | None = None) -> Any:
        """A control call; returns the JSON answer."""
        options = flight.FlightCallOptions(
            headers=self._headers, timeout=timeout_s or self.config.request_timeout_s
        )
        action = flight.Action(name, json.dumps(body, ensure_ascii=False).encode())

        def call() -> Any:
            results = list(self._client.do_action(action, options))
            return json.loads(results[0].body.to_pybytes())

        answer = self._translate(call)
        _check(answer)
        return answer["result"]

    @property
    def moved(self) -> bool:
        """Whether the server left the Unix socket by which it was reached."""
        return self._reached not in (self.location, local_location(self.location))

    def leave(self) -> None:
        """Not used again; others may be in a call on it still."""
        self._watch.close()

    def close(self) -> None:
        try:
            if self._writer is not None:
                with self._watch.limit(_CLOSE_TIMEOUT_S):
                    self._writer.done_writing()
                    self._writer.close()
        except (*_AWAY, pa.ArrowException) as error:
            logger.debug("closing the stream to %s: %s", self.location, type(error).__name__)
        finally:
            self._watch.close()
            self._client.close()

    def _cancel(self) -> None:
        if self._reader is not None:
            self._reader.cancel()

    def _guard(self, call: Callable[[], T], timeout_s: float) -> T:
        """Run `call`, cancelling the stream when it takes too long."""
        with self._watch.limit(timeout_s):
            return self._translate(call)

    def _translate(self, call: Callable[[], T]) -> T:
        """Run `call` with the transport's errors as errors of ours."""
        try:
            return call()
        except flight.FlightUnauthenticatedError as error:
            raise RefusedError(
                f"server {self.location}: the token is missing or wrong (token_file)."
            ) from error
        except flight.FlightUnauthorizedError as error:
            raise RefusedError(f"server {self.location}: not allowed.") from error
        except _AWAY as error:
            raise UnavailableError(
                f"server {self.location} cannot be reached: {why_away(error)}."
            ) from error
        except pa.ArrowException as error:
            raise UnavailableError(
                f"server {self.location}: the stream broke ({type(error).__name__})."
            ) from error


def ask(
    location: str,
    config: ExchangeConfig,
    name: str,
    body: dict[str, Any] | None = None,
    timeout_s: float | None = None,
) -> Any:
    """One control call over a connection of its own; returns the JSON answer.

    Raises UnavailableError while the server is away, and RefusedError where it refuses.
    """
    with closing(Channel(location, config)) as channel:
        return channel.action(name, body or {}, timeout_s)


class _Watchdog:
    """Calls `cancel` when a request outlives its limit: Flight has no time limit by message."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        self._deadline: float | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="exchange-watchdog", daemon=True)
        self._thread.start()

    def limit(self, seconds: float) -> _Watchdog:
        self._deadline = time.monotonic() + seconds
        return self

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        self._deadline = None

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(0.25):
            deadline = self._deadline
            if deadline is not None and time.monotonic() > deadline:
                self._deadline = None
                self._cancel()


def _check(answer: Any) -> None:
    """Raise what an answer says that went wrong."""
    status = answer.get("status")
    if status == "refused":
        kind = ReplacedError if answer.get("replaced") else RefusedError
        kind = FencedError if answer.get("fenced") else kind
        raise kind(str(answer.get("reason")))
    if status == "unavailable":
        raise UnavailableError(str(answer.get("reason")))
    if status not in ("ok", "waiting"):
        raise ExchangeError(f"the server failed: {answer.get('reason', 'no reason given')}")


def _headers(config: ExchangeConfig) -> list[tuple[bytes, bytes]]:
    if config.token_file is None:
        return []
    token = read_token(config.token_file)
    return [(b"authorization", f"Bearer {token}".encode())]


def _connect(location: str, config: ExchangeConfig) -> Any:
    if not location.startswith(("grpc://", "grpc+tcp://", "grpc+tls://", "grpc+unix://")):
        raise ConfigError(
            f"server {location!r}: grpc://host:port or grpc+tls://host:port is accepted."
        )
    files = {
        "tls_root_certs": ("tls_ca", config.tls_ca),
        "cert_chain": ("tls_cert", config.tls_cert),
        "private_key": ("tls_key", config.tls_key),
    }
    options: dict[str, Any] = {
        option: read_file(path, setting)
        for option, (setting, path) in files.items()
        if path is not None
    }
    # Its own pauses grow to two minutes: a call would wait for long for a server that is back.
    longest = ("grpc.max_reconnect_backoff_ms", round(config.max_backoff_s * 1000))
    try:
        return flight.connect(location, generic_options=[longest], **options)
    except (pa.ArrowException, ValueError) as error:
        raise ConfigError(f"server {location!r}: not a valid address: {error}.") from error


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
