"""Which way a node's rows travel, as its specification says."""

from __future__ import annotations

import os
import threading

from embedding.exchange.protocol import Welcome
from embedding.exchange.relay import Relay
from embedding.exchange.topologies.base import JoiningNode
from embedding.exchange.topologies.traits import TOPOLOGIES
from embedding.exchange.transport import Transport
from embedding.worker.corpus.offset import Offset
from embedding.worker.spec import NodeSpec


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
    node = JoiningNode(
        name=spec.name,
        incarnation=str(os.getpid()),
        config=spec.topology,
        exchange=spec.exchange,
        meeting=spec.ring,
        welcome=welcome,
        buckets=spec.model.gram_rows,
        tokens=lambda offset: Offset.of(offset).tokens,
        stop=stop,
    )
    return TOPOLOGIES.get(spec.topology.kind)(server, node)
