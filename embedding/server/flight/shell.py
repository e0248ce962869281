"""The Arrow Flight shell around the server's state: streams of nodes, and control calls."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.flight as flight

from embedding.exchange.codec import check, from_message, to_message
from embedding.exchange.protocol import (
    Greeting,
    PulledRows,
    PullRequest,
    Push,
)
from embedding.exchange.relay import TOGETHER, needed_relays
from embedding.exchange.rows import Answering, answering, kept_by_node
from embedding.exchange.token import TokenRequired
from embedding.exchange.wire import (
    COMMAND,
    MESSAGE_SCHEMA,
    Message,
    decode,
    encode,
    read_json,
)
from embedding.kernel.errors import (
    FencedError,
    RefusedError,
    ReplacedError,
    UnavailableError,
    YeoronError,
)
from embedding.server.figures.meters import Meters, Parts
from embedding.server.flight.credentials import Credentials
from embedding.server.state import ServerState
from embedding.server.validation import check_nodes, check_sources

logger = logging.getLogger(__name__)

_MAX_BODY = 8 * 1024 * 1024

OPERATOR_CALLS = frozenset({"configure", "cut", "rollback"})
"""Control calls that change a training or publish; no node makes them."""

ControlCall = Callable[[dict[str, Any]], Any]
"""A control call: JSON object in, JSON-safe value out."""
Call = Callable[[Message], Message]
"""An operation of a stream."""


class Conversation(Protocol):
    """What one stream has said so far."""

    node: str

    @property
    def meters(self) -> Meters:
        """What its bytes are counted in."""

    def handle(self, chunk: Any, size: int, parts: Parts) -> Message:
        """Answer one message, and weigh its parts."""

    def ended(self) -> None:
        """The stream is over."""


class Served(Protocol):
    """What a service counts its messages in."""

    closing: bool

    @property
    def meters(self) -> Meters:
        """Figures."""


class FlightService(flight.FlightServerBase):  # type: ignore[misc]
    """Serves one state. Each connected node has one stream; a bad message harms only its sender.

    address  where clients reach it
    path     of the Unix socket that it listens on; empty: it listens on a port
    beside   the service of a Unix socket that belongs to it
    """

    def __init__(
        self,
        location: str,
        state: Served,
        controls: Mapping[str, ControlCall],
        *,
        credentials: Credentials,
        session: Callable[[], Conversation],
    ) -> None:
        self._state = state
        self._session = session
        self._controls = controls
        token, operator = credentials.token, credentials.operator_token
        super().__init__(
            location,
            tls_certificates=None if credentials.pair is None else [credentials.pair],
            verify_client=credentials.client_ca is not None,
            root_certificates=credentials.client_ca,
            middleware={}
            if token is None
            else {"token": TokenRequired(token, operator, partial(state.meters.refuse, "token"))},
        )
        scheme, _, place = location.partition("://")
        host = place.rpartition(":")[0]
        self.path = place if scheme == "grpc+unix" else ""
        self.address = (
            location if self.path else f"{scheme.removesuffix('+tcp')}://{host}:{self.port}"
        )
        self.beside: FlightService | None = None

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """One node's stream: request, answer, request, answer, …"""
        if descriptor.command != COMMAND:
            raise flight.FlightServerError("this stream is not Yeoron's exchange")
        writer.begin(MESSAGE_SCHEMA)
        session, parts = self._session(), Parts()
        try:
            while not self._state.closing:
                chunk = reader.read_chunk()
                # Not `nbytes`: it follows the offsets of a message that nobody has checked yet.
                size = 0 if chunk.data is None else chunk.data.get_total_buffer_size()
                answer = _answer(lambda: session.handle(chunk, size, parts), self._state)  # noqa: B023
                # Sent first, then added: `+=` reads its left first, and other streams add.
                sent = self._send(writer, answer, parts)
                session.meters.bytes_out += sent
                named = 0 if chunk.app_metadata is None else chunk.app_metadata.size
                session.meters.bytes_in += size + named
                session.meters.parts.add(parts)
        except StopIteration:
            pass
        except (pa.ArrowException, OSError, MemoryError) as error:
            # MemoryError: a claimed length that no machine has.
            logger.info("stream of node %r ended: %s", session.node, type(error).__name__)
            if not isinstance(error, flight.FlightError):
                # The sender's bytes are no message, and its stream cannot go on after them.
                why = "message: its bytes are no Arrow record batch."
                with contextlib.suppress(pa.ArrowException, OSError):
                    refusal = _refused(RefusedError(why, kind="message"), self._state)
                    self._send(writer, refusal, Parts())
        finally:
            session.ended()

    def _send(self, writer: Any, answer: Message, parts: Parts) -> int:
        batch, header = encode(answer)
        writer.write_with_metadata(batch, pa.py_buffer(header))
        parts.sent(answer, batch, len(header))
        size: int = batch.nbytes + len(header)
        return size

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        """A control call."""
        control = self._controls.get(action.type)
        role = context.get_middleware("token")

        def call() -> Message:
            if role is not None and not role.operator and action.type in OPERATOR_CALLS:
                raise RefusedError(
                    f"{action.type}: an operator's token is needed (exchange.operator_token_file); "
                    "a node's was shown.",
                    kind="token",
                )
            if control is None:
                raise RefusedError(
                    f"action {str(action.type)[:40]!r}: one of {', '.join(self._controls)} is "
                    "accepted.",
                    kind="control",
                )
            return Message({"status": "ok", "result": control(_body(action))})

        answer = _answer(call, self._state).header
        yield flight.Result(json.dumps(answer, ensure_ascii=False).encode())

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """Names of the control calls."""
        return [(name, (call.__doc__ or name).strip()) for name, call in self._controls.items()]

    def _unserved(self, *call: Any) -> Any:
        """Say so of calls that a parameter server has no use for, without Python's own words."""
        raise flight.FlightServerError("only do_exchange and do_action are served here")

    do_get = do_put = list_flights = get_flight_info = get_schema = _unserved


class NodeSession:
    """What one stream has said so far.

    node, number     who greeted on it, and its session
    meters           count its bytes: those of nodes, unless a part that answers it has others
    asks             what a node is asked to hand in
    want_checkpoint  called when the node is gone and pushes of it are in no checkpoint
    """

    def __init__(
        self,
        state: ServerState,
        *,
        asks: Callable[[str], list[Any]] = lambda _: [],
        want_checkpoint: Callable[[], None] = lambda: None,
    ) -> None:
        self.state = state
        self.node = ""
        self.number = 0
        self.meters = state.meters
        self.asks = asks
        self._want_checkpoint = want_checkpoint
        self._kept = kept_by_node(state.tables.seed) if state.rows.local else []
        self._calls: dict[str, Call] = {
            "pull": self._pull,
            "push": self._push,
            "confirm": lambda _: to_message(state.confirm(self.node), status="ok"),
            "bye": self._bye,
        }
        for part in state.parts.values():
            self._calls.update(part.calls(self))

    def handle(self, chunk: Any, size: int, parts: Parts) -> Message:
        message = received(chunk, size, parts, self.state.config.max_message_bytes)
        operation = message.header.get("op")
        if operation == "hello":
            return self._hello(message)
        if operation == TOGETHER:
            return needed_relays().taken(self.state, message)
        if not self.node:
            raise RefusedError("the first message of a stream must be `hello`.")
        call = called(self._calls, operation)
        self.state.ledger.check(self.node, self.number)
        return call(message)

    def _hello(self, message: Message) -> Message:
        greeting = from_message(Greeting, message)
        check_nodes(self.state.machine.board.members, [greeting.node])
        welcome = self.state.hello(
            greeting.node,
            version=greeting.version,
            digest=greeting.config_digest,
            clock=greeting.clock,
            incarnation=greeting.incarnation,
        )
        self.node, self.number = greeting.node, welcome.session
        self.meters = self.state.reports.servers.get(self.node, self.state.meters)
        return to_message(welcome, status="ok")

    def _pull(self, message: Message) -> Message:
        with of_kind("message"):
            request = from_message(PullRequest, message)
            for pairs in request.score:
                check(pairs, "pull: pairs to score")
        state, dim, most_bytes = self.state, self.state.dim, self.state.config.max_message_bytes
        ids, half = request.ids, request.half
        check_rows(sum(map(len, ids.values())), dim, most_bytes, half=half)
        if score := request.score:
            # They are gathered of one source at a time.
            gathered = max(2 * len(pairs.centres) + pairs.negatives.size for pairs in score)
            check_rows(gathered, dim, most_bytes, what="rows to score")
            check_sources({pairs.source for pairs in score}, state.scores.sources)
        kept = answering(self._kept, message, ids)
        whole_rows = kept is None or kept.whole
        # Which rows the node lacks is looked up among the rows as they were read.
        with state.lock if kept is not None and kept.whole else nullcontext():
            rows = state.pull(self.node, request, half=half and whole_rows)
            if isinstance(rows, list):
                return Message({"status": "waiting", "waiting_for": rows})
            if kept is not None:
                incarnation = state.epoch, rows.sequence
                state.meters.rows_spared += kept.read(
                    state.tables, state.rows.slots, self.node, incarnation
                )
        return rows_answered(rows, kept)

    def _push(self, message: Message) -> Message:
        with of_kind("message"):
            push = from_message(Push, message)
        if push.node != self.node:
            raise RefusedError(f"push of node {push.node}: this stream is node {self.node}'s.")
        ack = self.state.push(push, self.number)
        for kept in () if ack.duplicate else self._kept:
            kept.learnt(push)
        return to_message(ack, status="ok")

    def _bye(self, message: Message) -> Message:
        self.state.leave(self.node, self.number)
        self.node = ""
        return Message({"status": "ok"})

    def ended(self) -> None:
        if self.node and self.state.lost(self.node, self.number):
            self._want_checkpoint()


def rows_answered(rows: PulledRows, kept: Answering | None) -> Message:
    """The answer to a pull, of a server and of a shard alike."""
    answer = None if kept is None else kept.message(rows)
    return answer or to_message(rows, status="ok")


def received(chunk: Any, size: int, parts: Parts, most_bytes: int) -> Message:
    """One message of a stream, read and weighed; RefusedError when it is larger than allowed."""
    if size > most_bytes:
        raise RefusedError(
            f"message of {size} bytes; max_message_bytes of the server allows {most_bytes}.",
            kind="size",
        )
    with of_kind("message"):
        message = decode(chunk.data, chunk.app_metadata)
    parts.received(message, chunk.data, chunk.app_metadata.size, size)
    return message


def called(calls: Mapping[str, Call], operation: object) -> Call:
    """The call that a message asks for; RefusedError when there is none of that name."""
    if not isinstance(operation, str) or operation not in calls:
        raise RefusedError(f"operation {str(operation)[:40]!r}: not known.")
    return calls[operation]


def _answer(call: Callable[[], Message], state: Served) -> Message:
    """The call's answer, or its error as an answer."""
    try:
        return call()
    except UnavailableError as error:
        return Message({"status": "unavailable", "reason": str(error)})
    except YeoronError as error:
        return _refused(error, state)
    except Exception as error:
        logger.exception("a request failed")
        return Message({"status": "failed", "reason": type(error).__name__})


def _refused(error: YeoronError, state: Served) -> Message:
    state.meters.refuse(error.kind if isinstance(error, RefusedError) else "request")
    named = {"replaced": isinstance(error, ReplacedError), "fenced": isinstance(error, FencedError)}
    return Message({"status": "refused", "reason": str(error), **named})


@contextmanager
def of_kind(kind: str) -> Iterator[None]:
    """Refusals in here are counted as of this kind."""
    try:
        yield
    except RefusedError as error:
        error.kind = kind
        raise


def _body(action: Any) -> dict[str, Any]:
    """The JSON object of a control call."""
    name = f"action {action.type}"
    if action.body.size > _MAX_BODY:
        raise RefusedError(
            f"{name}: {action.body.size} bytes; at most {_MAX_BODY} are accepted.", kind="size"
        )
    try:
        body = read_json(action.body.to_pybytes() or b"{}")
    except ValueError as error:
        raise RefusedError(f"{name}: the body is not JSON.", kind="control") from error
    if not isinstance(body, dict):
        raise RefusedError(f"{name}: the body is not a JSON object.", kind="control")
    return body


def check_rows(
    rows: int, dim: int, most_bytes: int, *, half: bool = False, what: str = "rows"
) -> None:
    """RefusedError when so many rows do not fit into one message."""
    size = rows * dim * (2 if half else 4)
    if size > most_bytes:
        raise RefusedError(
            f"pull: {rows} {what} make {size} bytes; max_message_bytes of the server allows "
            f"{most_bytes}.",
            kind="size",
        )
