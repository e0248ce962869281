"""Which topologies are refused, each in one sentence, before anything starts."""

from __future__ import annotations

from embedding.exchange.relay import aggregation
from embedding.kernel.devices import may_have_gpu
from embedding.kernel.errors import ConfigError
from embedding.server.compatibility import (
    AGGREGATED_COMPRESSION,
    AGGREGATED_POLICY,
    SERVER_GROUPS,
    SUMS_COMPRESSION,
    SUMS_POLICY,
)
from embedding.server.groupconfig import check_pace
from embedding.server.grouping import check_groups
from embedding.training.request import TrainRequest


def refuse(where: str, *cases: tuple[bool, str, str, str]) -> None:
    """ConfigError for the first case that is so: (it is so, what does not go with it, why, what is
    accepted)."""
    for is_so, what, why, accepted in cases:
        if is_so:
            raise ConfigError(f"{where} with {what}: {why}; {accepted} is accepted.")


def check_topology(request: TrainRequest) -> None:
    """Raises ConfigError for a topology that does not go with the other options."""
    topology, sync = request.topology, request.sync
    check_server_groups(request)
    if not topology.traits.sums:
        if topology.aggregators:
            _check_groups(request)
        return
    where = f"topology {topology.kind}"
    if topology.aggregators:
        raise ConfigError(
            f"{where} with aggregators {topology.aggregators}: groups push to the server; "
            "they are accepted "
            "with topology ps."
        )
    SUMS_POLICY.check(sync.policy, where)
    SUMS_COMPRESSION.check(request.exchange.compression, where)
    mean, why = sync.combine == "mean", "what nodes moved is summed in shares"
    refuse(where, (mean, "combine mean", why, "sum"))
    if topology.backend == "nccl":
        _check_gpus(request.nodes)


def _check_groups(request: TrainRequest) -> None:
    aggregators, sync = request.topology.aggregators, request.sync
    where = f"aggregators {aggregators}"
    if aggregators > request.nodes:
        raise ConfigError(
            f"{where}: there are {request.nodes} nodes; at most so many aggregators are accepted."
        )
    aggregation()
    AGGREGATED_POLICY.check(sync.policy, where)
    mean, why = sync.combine == "mean", "what an aggregator pushes is one sum"
    refuse(where, (mean, "combine mean", why, "sum"))
    AGGREGATED_COMPRESSION.check(request.exchange.compression, where)


def _check_gpus(nodes: int) -> None:
    found = gpus()
    if found < nodes:
        raise ConfigError(
            f"backend nccl: {nodes} nodes need a GPU each and this machine has {found}; sockets "
            "or auto is accepted."
        )


def gpus() -> int:
    """How many GPUs this machine has."""
    if not may_have_gpu():
        return 0
    import torch

    return torch.cuda.device_count()


def check_server_groups(request: TrainRequest) -> None:
    """Raises ConfigError for what does not go with several server groups."""
    topology, groups = request.topology, request.topology.server_groups
    if groups == 1:
        return
    where = f"server_groups {groups}"
    check_groups(where)
    if groups > request.nodes:
        raise ConfigError(
            f"{where}: there are {request.nodes} nodes, and each group has one at least; at most "
            "so many groups are accepted."
        )
    refuse(
        where,
        (
            topology.traits.sums,
            f"topology {topology.kind}",
            "nodes push to the server of their group, and sums go past it",
            "topology ps",
        ),
        (
            topology.aggregators > 0,
            f"aggregators {topology.aggregators}",
            "an aggregator brings what it adds up to one server",
            "groups 0",
        ),
        (
            request.split != "rows",
            f"split {request.split}",
            "groups tell each other how far whole rows have moved, and no shard has one",
            "split rows, with any number of shards,",
        ),
    )
    SERVER_GROUPS.check(request.sync.policy, where)
    check_pace(topology.exchange_every_s, request.sync.liveness_timeout_s)
