"""The aggregator of a group of nodes on one host: pushes come in, one sum leaves.

    node 0 ──push──┐
    node 1 ──push──┤ aggregator ──one message──▶ server
    node 2 ──push──┘                (rows are pulled from the server by each node)

It keeps nothing: what a node gave it is also in that node's own log of pushes. When the server
cannot be reached or refuses a sum, and when the aggregator dies, each node sends its own push to
the server, which knows by node and sequence number what it has.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as flight

from embedding.exchange.codec import decode_push
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.headers import whole
from embedding.exchange.relay import RELAYS
from embedding.exchange.token import TokenRequired, read_token
from embedding.exchange.wire import MESSAGE_SCHEMA, Message, decode, encode
from embedding.kernel.errors import ExchangeError, PlatformError, RefusedError, YeoronError
from embedding.kernel.registry import NoTraits
from embedding.kernel.stopping import stop_on_signals
from embedding.worker.lifetime import end_process, end_with_parent
from embedding.worker.process.forking import adopt, current_environment, processes
from yeoron_lab.aggregating.gathering import Gathering, NodePush
from yeoron_lab.aggregating.relay import AggregatorLine
from yeoron_lab.aggregating.upstreams import Upstreams

if TYPE_CHECKING:
    from embedding.server.shards.state import ShardState
    from embedding.server.state import ServerState

logger = logging.getLogger(__name__)

START_SECONDS = 60.0
_END_SECONDS = 10.0


class Aggregator:
    """Adds pushes up and sends the sums; used by a thread for each node.

    wait_s  how long pushes wait for a node of the group that does not come
    """

    def __init__(self, server: str, config: ExchangeConfig, *, wait_s: float) -> None:
        self.sums = 0
        self._server = server
        self._config = config
        self._wait_s = wait_s
        self._gathering = Gathering()
        self._answers: dict[tuple[str, int], dict[str, Any]] = {}
        self._changed = threading.Condition()
        self._upstream = threading.Lock()
        self._upstreams: Upstreams | None = None
        self._closing = False

    def push(self, given: NodePush) -> dict[str, Any]:
        """The server's answer to this push, once its sum has left; `direct`: send it yourself."""
        key = (given.node, given.push.sequence)
        with self._changed:
            due = self._gathering.push(given)
        self._send(due)
        with self._changed:
            self._changed.wait_for(
                lambda: key in self._answers or self._closing, timeout=self._wait_s
            )
            due = [] if key in self._answers or self._closing else self._gathering.expire()
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
            self._closing = True
            self._changed.notify_all()
        with self._upstream:
            self._drop()

    def _drop(self) -> None:
        if self._upstreams is not None:
            self._upstreams.close()
            self._upstreams = None

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
            pushes = [part.push for part in parts]
            if self._upstreams is None:
                self._upstreams = Upstreams(self._server, self._config)
            answers = self._upstreams.send(pushes, [part.session for part in parts])
        except RefusedError as error:
            logger.info("a sum of %d pushes was refused: %s", len(parts), error)
        except YeoronError as error:
            logger.info("a sum of %d pushes could not be sent: %s", len(parts), error)
            self._drop()
        else:
            return answers
        return [{"direct": True}] * len(parts)


class AggregatorService(flight.FlightServerBase):  # type: ignore[misc]
    """The Arrow Flight shell around an aggregator, on loopback.

    limit  bytes of a push
    token  that nodes show; None: everybody on this machine may push
    """

    def __init__(self, aggregator: Aggregator, limit: int, token: str | None = None) -> None:
        self._aggregator = aggregator
        self._limit = limit
        middleware = {} if token is None else {"token": TokenRequired(token)}
        super().__init__("grpc+tcp://127.0.0.1:0", middleware=middleware)

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """One node's stream: push, answer, push, answer, …"""
        del context, descriptor
        writer.begin(MESSAGE_SCHEMA)
        nodes: set[str] = set()
        try:
            while True:
                chunk = reader.read_chunk()
                answer = self._answer(chunk, nodes)
                batch, header = encode(answer)
                writer.write_with_metadata(batch, pa.py_buffer(header))
        except (StopIteration, pa.ArrowException, OSError):
            pass
        finally:
            for node in nodes:
                self._aggregator.leave(node)

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        """A heartbeat, asked for before a stream is opened."""
        del context, action
        yield flight.Result(json.dumps({"status": "ok", "result": True}).encode())

    def _answer(self, chunk: Any, nodes: set[str]) -> Message:
        try:
            size = 0 if chunk.data is None else chunk.data.get_total_buffer_size()
            if size > self._limit:
                raise RefusedError(f"a push of {size} bytes; {self._limit} are accepted.")
            message = decode(chunk.data, chunk.app_metadata)
            if message.header.get("op") == "idle":
                for node in nodes:
                    self._aggregator.leave(node)
                return Message({"status": "ok"})
            push = decode_push(message)
            nodes.add(push.node)
            given = NodePush(push, whole(message.header, "session"))
            return Message({"status": "ok", **self._aggregator.push(given)})
        except ExchangeError as error:
            return Message({"status": "refused", "reason": str(error)})
        except Exception as error:
            logger.exception("a push could not be added up")
            return Message({"status": "ok", "direct": True, "reason": type(error).__name__})


@contextmanager
def running_aggregator(
    server: str, config: ExchangeConfig, *, group: str, wait_s: float
) -> Iterator[str]:
    """The address of an aggregator in a process of its own, for the length of a `with` block."""
    context = processes([__name__])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=aggregate_forever,
        args=(server, config.model_dump_json(), wait_s, theirs, current_environment()),
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
    service = AggregatorService(aggregator, exchange.max_message_bytes, token)
    ready.send_bytes(str(service.port).encode())
    ready.close()
    stop.wait()
    aggregator.close()
    service.shutdown()


@RELAYS.register("aggregators", NoTraits())
class Aggregators:
    """See Aggregation."""

    running = staticmethod(running_aggregator)
    line = staticmethod(AggregatorLine)

    @staticmethod
    def taken(state: ServerState, message: Message) -> Message:
        from yeoron_lab.aggregating.taking import taken  # an aggregator has no server's rows

        return taken(state, message)

    @staticmethod
    def taken_by_shard(state: ShardState, message: Message) -> Message:
        from yeoron_lab.aggregating.taking import taken_by_shard

        return taken_by_shard(state, message)
