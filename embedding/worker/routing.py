"""Which way a node's rows go, as its specification says."""

from __future__ import annotations

import os
import threading

from embedding.exchange.allreduce.density import threshold
from embedding.exchange.allreduce.meeting import Meeting
from embedding.exchange.allreduce.reducing import ReducingRoute
from embedding.exchange.client import ParameterClient
from embedding.exchange.compression.whole import entry_type
from embedding.exchange.protocol import Welcome
from embedding.exchange.relay import Relay
from embedding.exchange.route import Route
from embedding.worker.place import Place
from embedding.worker.spec import NodeSpec

ROW_BYTES = {"float16": 2, "float32": 4}


def make_route(
    spec: NodeSpec, client: ParameterClient, welcome: Welcome, stop: threading.Event
) -> Route:
    """The node's way to its rows; waits for the other nodes when rows are all-reduced."""
    topology = spec.topology
    if spec.ring is None:
        if spec.aggregator:
            client.relay = Relay(
                spec.aggregator,
                group=spec.group,
                config=spec.exchange,
                timeout_s=topology.peer_timeout_s,
            )
        return Route(client)
    least = topology.dense_share
    if least is None:
        least = threshold(spec.ring.size, ROW_BYTES[spec.exchange.rows])
    return ReducingRoute(
        client,
        Meeting(
            spec.ring,
            name=spec.name,
            life=str(os.getpid()),
            timeout_s=topology.peer_timeout_s,
            stop=stop,
        ),
        spec.ring.names,
        topology,
        tokens=lambda place: Place.of(place).tokens,
        dim=welcome.dim,
        buckets=spec.model.gram_rows,
        half=entry_type(spec.exchange) == "float16",
        least=least,
        sequence=welcome.sequence,
        place=welcome.place,
    )
