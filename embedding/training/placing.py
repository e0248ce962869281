"""Where the nodes of a training meet, as its topology wants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from embedding.exchange.relay import aggregation
from embedding.exchange.topology import MeetingSpec
from embedding.kernel.devices import gpus
from embedding.server.grouping import needed_groups
from embedding.training.request import TrainRequest
from embedding.worker.spec import NodeSpec

TRAINING_POOL = "train"


def node_name(node: int) -> str:
    """Name of node 0, 1, … of a training."""
    return f"{TRAINING_POOL}-node-{node}"


class Placement:
    """What each node is told about where the others are.

    aggregators  the address of each group's, for topology ps
    servers      the address of each server group's, the leading one first
    """

    def __init__(
        self,
        request: TrainRequest,
        meeting: MeetingSpec | None = None,
        aggregators: Sequence[str] = (),
        servers: Sequence[str] = (),
    ) -> None:
        self._request = request
        self._meeting = meeting
        self._aggregators = aggregators
        self.servers = servers

    def put(self, spec: NodeSpec, node: int) -> NodeSpec:
        """The specification of node 0, 1, … with its place."""
        topology = self._request.topology
        placed: dict[str, Any] = {"topology": topology, "ring": self._meeting}
        if self._aggregators:
            group = node * len(self._aggregators) // self._request.nodes
            placed |= {"group": f"group-{group}", "aggregator": self._aggregators[group]}
        if len(self.servers) > 1:
            groups = len(self.servers)
            placed["server"] = self.servers[node % groups]
            if spec.corpus is not None:
                peers = len(range(node % groups, self._request.nodes, groups))
                placed["corpus"] = spec.corpus.model_copy(update={"peers": peers})
        if topology.traits.replicas:
            # Rows are pulled once, when they are new: nothing is gained by rounding them.
            whole = {"rows": "float32", "compression": "none"}
            placed["exchange"] = spec.exchange.model_copy(update=whole)
        return spec.model_copy(update=placed)


@contextmanager
def placed(request: TrainRequest, server: str) -> Iterator[Placement]:
    """The meeting places of the nodes, open for the length of a `with` block."""
    topology = request.topology
    with ExitStack() as stack:
        if topology.traits.meet is not None:
            names = tuple(node_name(i) for i in range(request.nodes))
            usable = 0 if request.device == "cpu" else gpus()
            meeting = stack.enter_context(topology.traits.meet(topology, names, usable))
            yield Placement(request, meeting)
        else:
            aggregators = _aggregators(request, server, stack)
            servers: Sequence[str] = [server]
            if topology.server_groups > 1:
                groups = needed_groups("server_groups")
                servers = stack.enter_context(groups.trained(request, server))
            yield Placement(request, aggregators=aggregators, servers=servers)


def _aggregators(request: TrainRequest, server: str, stack: ExitStack) -> list[str]:
    config, wait_s = request.exchange, request.topology.peer_timeout_s
    return [
        stack.enter_context(
            aggregation().running(server, config, group=f"group-{i}", wait_s=wait_s)
        )
        for i in range(request.topology.aggregators)
    ]
