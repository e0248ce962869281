"""One connection to the server: a long-lived `do_exchange` stream and short control calls."""

from __future__ import annotations

import errno
import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.flight as flight

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
