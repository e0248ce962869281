"""Where the nodes of a training meet, as its topology wants, and what cannot work is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from embedding.errors import ConfigError
from embedding.exchange.topology import MeetingSpec
from embedding.training.grouping import check_server_groups, following
from embedding.training.request import TrainRequest
from embedding.worker.spec import NodeSpec

IN_STEP = ("bsp", "ssp", "asp")
"""Policies under which nodes that all-reduce can push the rest of their rows."""
PLAIN = ("none", "fp16")
"""Ways of writing a delta that leave nothing out."""


POOL = "train"


def node_name(node: int) -> str:
    """Name of node 0, 1, … of a training."""
    return f"{POOL}-node-{node}"


def check_topology(request: TrainRequest) -> None:
    """Raises ConfigError for a topology that does not go with the other options."""
    topology, sync = request.topology, request.sync
    check_server_groups(request)
    if topology.kind == "ps" and not topology.groups:
        return
    if topology.kind == "ps":
        _check_groups(request)
        return
    where = f"topology {topology.kind}"
    if topology.groups:
        raise ConfigError(
            f"{where} with groups {topology.groups}: groups push to the server; they are accepted "
            "with topology ps."
        )
    if sync.policy not in IN_STEP:
        raise ConfigError(
            f"{where} with policy {sync.policy}: its nodes are in step by their sums alone; "
            f"{', '.join(IN_STEP)} are accepted."
        )
    if request.exchange.compression not in PLAIN:
        raise ConfigError(
            f"{where} with compression {request.exchange.compression}: sums travel whole; "
            f"{' or '.join(PLAIN)} is accepted."
        )
    if sync.combine == "mean":
        raise ConfigError(
            f"{where} with combine mean: what nodes moved is summed in shares; sum is accepted."
        )
    if topology.backend == "nccl":
        _check_gpus(request.nodes)


def _check_groups(request: TrainRequest) -> None:
    groups, sync = request.topology.groups, request.sync
    where = f"groups {groups}"
    if groups > request.nodes:
        raise ConfigError(
            f"{where}: there are {request.nodes} nodes; at most so many groups are accepted."
        )
    if sync.policy not in IN_STEP or sync.combine == "mean":
        raise ConfigError(
            f"{where} with policy {sync.policy} and combine {sync.combine}: what a group moved is "
            f"one sum; {', '.join(IN_STEP)} with combine sum are accepted."
        )
    if request.exchange.compression not in PLAIN:
        raise ConfigError(
            f"{where} with compression {request.exchange.compression}: an aggregator adds up "
            f"whole deltas; {' or '.join(PLAIN)} is accepted."
        )


def _check_gpus(nodes: int) -> None:
    found = _gpus()
    if found < nodes:
        raise ConfigError(
            f"backend nccl: {nodes} nodes need a GPU each and this machine has {found}; gloo or "
            "auto is accepted."
        )


def _gpus() -> int:
    if not os.path.exists("/dev/nvidia0"):  # noqa: PTH110 - spares the import of torch
        return 0
    import torch

    return torch.cuda.device_count()


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
        told: dict[str, Any] = {"topology": topology, "ring": self._meeting}
        if self._aggregators:
            group = node * len(self._aggregators) // self._request.nodes
            told |= {"group": f"group-{group}", "aggregator": self._aggregators[group]}
        if len(self.servers) > 1:
            told["server"] = self.servers[node % len(self.servers)]
        if topology.kind == "allreduce":
            # Rows are pulled once, when they are new: nothing is gained by rounding them.
            whole = {"rows": "float32", "compression": "none"}
            told["exchange"] = spec.exchange.model_copy(update=whole)
        return spec.model_copy(update=told)


@contextmanager
def placed(request: TrainRequest, server: str) -> Iterator[Placement]:
    """The meeting places of the nodes, open for the length of a `with` block."""
    with ExitStack() as stack:
        if request.topology.kind != "ps":
            yield Placement(request, _meeting(request, stack))
        else:
            aggregators = _aggregators(request, server, stack)
            servers = stack.enter_context(following(request, server))
            yield Placement(request, aggregators=aggregators, servers=servers)


def _meeting(request: TrainRequest, stack: ExitStack) -> MeetingSpec:
    from embedding.exchange.allreduce.ring import rendezvous

    topology, nodes = request.topology, request.nodes
    enough = request.device != "cpu" and _gpus() >= nodes
    nccl = topology.backend == "nccl" or (topology.backend == "auto" and enough)
    return MeetingSpec(
        port=stack.enter_context(rendezvous()),
        names=tuple(node_name(i) for i in range(nodes)),
        backend="nccl" if nccl else "gloo",
    )


def _aggregators(request: TrainRequest, server: str, stack: ExitStack) -> list[str]:
    from embedding.worker.aggregator import running_aggregator

    return [
        stack.enter_context(
            running_aggregator(
                server,
                request.exchange,
                group=f"group-{i}",
                wait_s=request.topology.peer_timeout_s,
            )
        )
        for i in range(request.topology.groups)
    ]
