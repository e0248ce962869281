"""The aggregator of a group of nodes on one host: pushes come in, one sum leaves.

    node 0 ──push──┐
    node 1 ──push──┤ aggregator ──one message──▶ server
    node 2 ──push──┘                (rows are pulled from the server by each node)

It keeps nothing: what a node gave it is also in that node's own log of pushes. When the server
cannot be reached or refuses a sum, and when the aggregator dies, each node sends its own push to
the server, which books the sequence number of every node with the rows, in one step, and so knows
what it has.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from embedding.exchange.codec import check, from_message, to_message
from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta, WordContexts, summed
from embedding.exchange.peer import Peer
from embedding.exchange.protocol import Ack, Push
from embedding.exchange.relay import RELAYS, TOGETHER
from embedding.exchange.token import read_token
from embedding.exchange.topology import RelaySpec
from embedding.exchange.wire import Message, whole
from embedding.kernel.config import part_of
from embedding.kernel.errors import ExchangeError, PlatformError, RefusedError, YeoronError
from embedding.kernel.fields import Entries
from embedding.kernel.processes import end_process, end_with_parent, stop_on_signals
from embedding.kernel.records import IntArray, Table
from embedding.kernel.registry import NoTraits
from embedding.server.figures.meters import Meters, Parts
from embedding.server.flight.credentials import Credentials
from embedding.server.flight.shell import FlightService, of_kind, received
from embedding.server.policies.base import PendingPush
from embedding.server.state import ServerState
from embedding.worker.process.forking import adopt, processes
from yeoron_lab.requests import check_aggregators
from yeoron_lab.settings import AggregatorSettings, WaitSettings

if TYPE_CHECKING:
    from embedding.training.request import TrainRequest

logger = logging.getLogger(__name__)

GRACE_S = 10.0
"""How much longer than the aggregator waits for the others of a group a node waits for it."""
START_SECONDS = 60.0
_END_SECONDS = 10.0


def add_up(pushes: Sequence[Push]) -> tuple[RowDelta, ...]:
    """The sum of the pushes' deltas, by table; float16 when all of them are, else float32."""
    sums = []
    for table in Table:
        deltas = [delta for push in pushes for delta in push.deltas if delta.table is table]
        if deltas:
            sums.append(_sum(table, deltas))
    return tuple(sums)


def _sum(table: Table, deltas: Sequence[RowDelta]) -> RowDelta:
    if len(deltas) == 1:
        return deltas[0]
    ids: IntArray = np.unique(np.concatenate([delta.ids for delta in deltas]))
    values = np.zeros((len(ids), deltas[0].values.shape[1]), dtype=np.float32)
    for delta in deltas:
        values[np.searchsorted(ids, delta.ids)] += widen(delta.values)
    half = all(delta.values.dtype == np.float16 for delta in deltas)
    return RowDelta(table, ids, narrow(values) if half else values)


@dataclass(frozen=True)
class PushesTogether:
    """Pushes of different nodes.

    deltas, rare  of all of them, added up
    sessions      of each node's own stream: a process that was replaced adds nothing by this way
    """

    op: ClassVar = TOGETHER

    pushes: Annotated[tuple[Push, ...], Entries(4096, least=1)]
    sessions: tuple[int, ...]
    deltas: tuple[RowDelta, ...] = ()
    rare: WordContexts | None = None


def encode_together(pushes: Sequence[Push], sessions: Sequence[int]) -> Message:
    """Pushes of different nodes as one message, their rows added up."""
    rare = summed([push.rare for push in pushes if push.rare is not None])
    plain = tuple(replace(push, deltas=(), rare=None) for push in pushes)
    return to_message(PushesTogether(plain, tuple(sessions), add_up(pushes), rare))


def decode_together(message: Message) -> tuple[list[Push], list[int]]:
    """The pushes, the first of them with all rows, and their sessions; RefusedError otherwise."""
    record = from_message(PushesTogether, message)
    if len(record.sessions) != len(record.pushes):
        raise RefusedError(
            f"{TOGETHER}: `sessions` must be a list of {len(record.pushes)} numbers."
        )
    if len({push.node for push in record.pushes}) < len(record.pushes):
        raise RefusedError(f"{TOGETHER}: a node is named twice.")
    first = replace(record.pushes[0], deltas=record.deltas, rare=record.rare)
    return [first, *record.pushes[1:]], list(record.sessions)


@dataclass(frozen=True)
class NodePush:
    """A push and the session of its node.

    The nodes of a group work synchronously: pushes of one clock leave when every node that takes
    part has pushed at that clock. A node takes part from its first push until it falls idle or
    leaves.
    """

    push: Push
    session: int

    @property
    def node(self) -> str:
        return self.push.node

    @property
    def clock(self) -> int:
        return self.push.clock


@dataclass
class Gathering:
    """Holds parts until those of their clock are all there.

    done  by node that takes part: the clock of its last push
    """

    done: dict[str, int] = field(default_factory=dict)
    waiting_pushes: list[NodePush] = field(default_factory=list)

    def push(self, part: NodePush) -> list[list[NodePush]]:
        """A node pushed; the sums that are due now, each a list of parts of different nodes."""
        # A node that sends again, because it heard no answer, is held once.
        self.waiting_pushes = [each for each in self.waiting_pushes if each.node != part.node]
        self.waiting_pushes.append(part)
        self.done[part.node] = max(part.clock, self.done.get(part.node, part.clock))
        return self._due()

    def leave(self, node: str) -> list[list[NodePush]]:
        """A node has nothing to push for now, or is gone; what it gave stays."""
        self.done.pop(node, None)
        return self._due()

    def expire(self) -> list[list[NodePush]]:
        """Whoever keeps the others waiting takes part no longer; all that is held is due."""
        waiting = {part.node for part in self.waiting_pushes}
        self.done = {node: clock for node, clock in self.done.items() if node in waiting}
        return self._due(everything=True)

    def _due(self, *, everything: bool = False) -> list[list[NodePush]]:
        sums = []
        for clock in sorted({part.clock for part in self.waiting_pushes}):
            if not everything and any(done < clock for done in self.done.values()):
                break
            # By name, so that a sum does not depend on who came first.
            ready = sorted(
                (p for p in self.waiting_pushes if p.clock == clock), key=lambda p: p.node
            )
            sums.append(ready)
        done = [part for ready in sums for part in ready]
        self.waiting_pushes = [part for part in self.waiting_pushes if part not in done]
        return sums


class Aggregator:
    """Adds pushes up and sends the sums; used by a thread for each node.

    wait_s  how long pushes wait for a node of the group that does not come
    """

    def __init__(self, server: str, config: ExchangeConfig, *, wait_s: float) -> None:
        self.sums = 0
        self._server = Peer(server, config)
        self._wait_s = wait_s
        self._gathering = Gathering()
        self._answers: dict[tuple[str, int], dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._upstream = threading.Lock()
        self.closing = False
        self.meters = Meters()

    def push(self, given: NodePush) -> dict[str, Any]:
        """The server's answer to this push, once its sum has left; `direct`: send it yourself."""
        key = (given.node, given.push.sequence)
        with self._changed:
            due = self._gathering.push(given)
        self._send(due)
        with self._changed:
            self._changed.wait_for(
                lambda: key in self._answers or self.closing, timeout=self._wait_s
            )
            due = [] if key in self._answers or self.closing else self._gathering.expire()
        self._send(due)
        with self._changed:
            return self._answers.pop(key, {"direct": True})

    def leave(self, node: str) -> None:
        """The group waits for this node no longer."""
        with self._changed:
            due = self._gathering.leave(node)
        self._send(due)

    def close(self) -> None:
        """Send everybody to the server."""
        with self._changed:
            self.closing = True
            self._changed.notify_all()
        with self._upstream:
            self._server.close()

    def _send(self, sums: list[list[NodePush]]) -> None:
        for parts in sums:
            with self._upstream:
                answers = self._ask(parts)
            with self._changed:
                for part, answer in zip(parts, answers, strict=True):
                    self._answers[part.node, part.push.sequence] = answer
                self.sums += 1
                self._changed.notify_all()

    def _ask(self, parts: list[NodePush]) -> list[dict[str, Any]]:
        """The server's answers in order; `direct` to all when it has none."""
        try:
            pushes, sessions = zip(*((part.push, part.session) for part in parts), strict=True)
            answer = self._server.request(encode_together(pushes, sessions), patient=False)
            return list(answer.header["acks"])
        except RefusedError as error:
            logger.info("a sum of %d pushes was refused: %s", len(parts), error)
        except YeoronError as error:
            logger.info("a sum of %d pushes could not be sent: %s", len(parts), error)
            self._server.close()
        except Exception:
            logger.exception("a sum of %d pushes could not be made", len(parts))
            self._server.close()
        return [{"direct": True}] * len(parts)


class AggregatorStream:
    """What one node's stream has said so far; the nodes on it are in `nodes`.

    limit  bytes of a push
    """

    node = ""

    def __init__(self, aggregator: Aggregator, limit: int) -> None:
        self.meters = Meters()
        self._aggregator, self._limit = aggregator, limit
        self._nodes: set[str] = set()

    def handle(self, chunk: Any, size: int, parts: Parts) -> Message:
        message = received(chunk, size, parts, self._limit)
        if message.header.get("op") == "idle":
            self.ended()
            return Message({"status": "ok"})
        push = from_message(Push, message)
        check(push, "push")
        self._nodes.add(push.node)
        given = NodePush(push, whole(message.header, "session"))
        return Message({"status": "ok", **self._aggregator.push(given)})

    def ended(self) -> None:
        for node in self._nodes:
            self._aggregator.leave(node)


def served(aggregator: Aggregator, limit: int, token: str | None = None) -> FlightService:
    """The service of an aggregator, on loopback.

    limit  bytes of a push
    token  that nodes show; None: everybody on this machine may push
    """
    return FlightService(
        "grpc+tcp://127.0.0.1:0",
        aggregator,
        {"ping": lambda _: True},
        credentials=Credentials(token),
        session=lambda: AggregatorStream(aggregator, limit),
    )


@contextmanager
def running_aggregator(
    server: str, config: ExchangeConfig, *, group: str, wait_s: float
) -> Iterator[str]:
    """The address of an aggregator in a process of its own, for the length of a `with` block."""
    context = processes([__name__])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=aggregate_forever,
        args=(server, config.model_dump_json(), wait_s, theirs, dict(os.environ)),
        name=f"{group}-aggregator",
    )
    process.start()
    theirs.close()
    try:
        if not ours.poll(START_SECONDS):
            raise PlatformError(f"{group}: its aggregator did not start in {START_SECONDS:.0f} s.")
        yield f"grpc://127.0.0.1:{int(ours.recv_bytes())}"
    except EOFError as error:
        raise PlatformError(f"{group}: its aggregator ended before it listened.") from error
    finally:
        ours.close()
        end_process(process, _END_SECONDS)


def aggregate_forever(
    server: str, config: str, wait_s: float, ready: Connection, environment: dict[str, str]
) -> None:
    """Target of the aggregator's process: serve until told to stop."""
    adopt(environment)
    end_with_parent()
    stop = stop_on_signals()
    exchange = ExchangeConfig.model_validate_json(config)
    aggregator = Aggregator(server, exchange, wait_s=wait_s)
    token = None if exchange.token_file is None else read_token(exchange.token_file)
    service = served(aggregator, exchange.max_message_bytes, token)
    ready.send_bytes(str(service.port).encode())
    ready.close()
    stop.wait()
    aggregator.close()
    service.shutdown()


class AggregatorLine:
    """A `Relay` that hands pushes to an aggregator.

    sent, direct  pushes that went by it, and those that it sent back or never answered
    """

    def __init__(
        self, location: str, *, group: str, config: ExchangeConfig, timeout_s: float
    ) -> None:
        self.group = group
        self.sent = 0
        self.direct = 0
        self.rows = 0
        self.nbytes = 0
        self.lost = False
        self._timeout_s = timeout_s + GRACE_S
        self._peer = Peer(location, config)

    def push(self, push: Push, session: int) -> Message | None:
        """The server's answer; None: the push has to go to the server itself.

        That is safe also when the aggregator had sent it: the server takes a push once.
        """
        message = to_message(push, session=session)
        answer = None if self.lost else self._ask(message, self._timeout_s)
        if answer is None or answer.header.get("direct"):
            self.direct += 1
            return None
        self.sent += 1
        self.rows += sum(len(delta.ids) for delta in push.deltas)
        self.nbytes += push.nbytes
        return answer

    def leave(self) -> None:
        if self._peer.is_open:
            self._ask(Message({"op": "idle"}))

    def figures(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "aggregated_pushes": self.sent,
            "direct_pushes": self.direct,
            "rows": {"host": self.rows},
            "bytes": {"host": self.nbytes},
        }

    def close(self) -> None:
        self._peer.close()

    def _ask(self, message: Message, timeout_s: float | None = None) -> Message | None:
        """None: the aggregator is gone or failed, and is given up."""
        try:
            return self._peer.once(lambda channel: channel.request(message, timeout_s))
        except RefusedError:
            raise
        except ExchangeError as error:
            logger.warning(
                "the aggregator of %s is given up; its nodes push to the server themselves: %s",
                *(self.group, error),
            )
            self.lost = True
            self.close()
            return None


@RELAYS.register("aggregators", NoTraits())
class Aggregators:
    """See Aggregation."""

    check_request = staticmethod(check_aggregators)

    @staticmethod
    @contextmanager
    def trained(request: TrainRequest, server: str) -> Iterator[list[RelaySpec]]:
        wait_s = part_of(request.topology, WaitSettings).peer_timeout_s
        relays = []
        with ExitStack() as stack:
            for index in range(part_of(request.topology, AggregatorSettings).aggregators):
                group = f"group-{index}"
                running = running_aggregator(server, request.exchange, group=group, wait_s=wait_s)
                location = stack.enter_context(running)
                relays.append(RelaySpec(location=location, group=group, wait_s=wait_s))
            yield relays

    @staticmethod
    def line(relay: RelaySpec, config: ExchangeConfig) -> AggregatorLine:
        return AggregatorLine(
            relay.location, group=relay.group, config=config, timeout_s=relay.wait_s
        )

    @staticmethod
    def taken(state: ServerState, message: Message) -> Message:
        with of_kind("message"):
            pushes, sessions = decode_together(message)
        acks = push_together(state, pushes, sessions)
        return Message({"status": "ok", "acks": [to_message(ack).header for ack in acks]})


def push_together(state: ServerState, pushes: Sequence[Push], sessions: Sequence[int]) -> list[Ack]:
    """Have a server take pushes of different nodes, the first of which has everybody's rows.

    RefusedError, with nothing taken, when one of them cannot be: its node sent it by itself
    meanwhile, for instance. Then each node sends its own.
    """
    arrivals = [state.arrival(push) for push in pushes]
    with state.changed:
        for push, session in zip((each.push for each in arrivals), sessions, strict=True):
            if state.was_taken(push, session):
                raise RefusedError(
                    f"push {push.sequence} of node {push.node} among others: it was taken before."
                )
            state.machine.check(PendingPush(push.node, push.clock, push.sequence))
        return [state.take(arrival) for arrival in arrivals]
