"""Which way a node's rows travel, as its specification says."""

from __future__ import annotations

import os
import threading

from embedding.exchange.allreduce.density import threshold
from embedding.exchange.allreduce.meeting import Meeting
from embedding.exchange.allreduce.reducing import ReducingStart, ReducingTransport
from embedding.exchange.compression.whole import entry_type
from embedding.exchange.protocol import Welcome
from embedding.exchange.relay import Relay
from embedding.exchange.transport import Transport
from embedding.worker.corpus.offset import Offset
from embedding.worker.spec import NodeSpec

ROW_BYTES = {"float16": 2, "float32": 4}


def relay_of(spec: NodeSpec) -> Relay | None:
    """The node's line to the aggregator of its group; None where it pushes by itself."""
    if spec.ring is not None or not spec.aggregator:
        return None
    return Relay(
        spec.aggregator,
        group=spec.group,
        config=spec.exchange,
        timeout_s=spec.topology.peer_timeout_s,
    )


def make_transport(
    spec: NodeSpec, server: Transport, welcome: Welcome, stop: threading.Event
) -> Transport:
    """The transport over `server`; waits for the other nodes when rows are all-reduced."""
    if spec.ring is None:
        return server
    topology = spec.topology
    least = topology.dense_share
    if least is None:
        least = threshold(spec.ring.size, ROW_BYTES[spec.exchange.rows])
    return ReducingTransport(
        server,
        Meeting(
            spec.ring,
            name=spec.name,
            incarnation=str(os.getpid()),
            timeout_s=topology.peer_timeout_s,
            stop=stop,
        ),
        topology,
        ReducingStart(welcome.dim, spec.model.gram_rows, welcome.sequence, welcome.offset),
        tokens=lambda offset: Offset.of(offset).tokens,
        half=entry_type(spec.exchange) == "float16",
        least=least,
    )
