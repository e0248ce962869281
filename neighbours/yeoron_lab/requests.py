"""What of a training does not go with mechanisms of the laboratory, each refused in a sentence."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from embedding.kernel.config import part_of
from embedding.kernel.devices import gpus
from embedding.kernel.errors import ConfigError
from embedding.models.traits import MODELS
from embedding.server.compatibility import (
    AGGREGATED_COMPRESSION,
    AGGREGATED_POLICY,
    SERVER_GROUPS,
    SUMS_COMPRESSION,
    SUMS_POLICY,
)
from yeoron_lab.settings import AggregatorSettings, ServersSettings, ShardSettings, SumSettings

if TYPE_CHECKING:  # a training checks its request while torch is imported
    from embedding.training.request import TrainRequest

OF_NODES = (
    "nodes",
    "epochs",
    "server.shards",
    "server.split",
    "dated",
    "state_dir",
    "sync",
    "exchange",
    "topology",
    "server.device",
)
"""Fields of a request that say how nodes train."""


def check_baseline(request: TrainRequest) -> None:
    """Raises ConfigError for what has no meaning without nodes and a server."""
    from embedding.training.checks import refuse
    from embedding.training.request import TrainRequest

    usual = TrainRequest(corpus=request.corpus)
    for name in OF_NODES:
        value = attrgetter(name)
        if value(request) != value(usual):
            raise ConfigError(
                f"model {request.model.model}: it is counted in one pass, by no node and no "
                f"server; leave out what sets {name}, or choose {' or '.join(MODELS)}."
            )
    growing, why = request.vocabulary == "growing", "its words are counted first"
    refuse(f"model {request.model.model}", (growing, "vocabulary growing", why, "counted"))


def check_aggregators(request: TrainRequest) -> None:
    """Raises ConfigError for what does not go with aggregators."""
    from embedding.training.checks import refuse

    aggregators = part_of(request.topology, AggregatorSettings).aggregators
    if not aggregators:
        return
    shards = part_of(request.server, ShardSettings).shards
    sync, where = request.sync, f"aggregators {aggregators}"
    if aggregators > request.nodes:
        raise ConfigError(
            f"{where}: there are {request.nodes} nodes; at most so many aggregators are accepted."
        )
    AGGREGATED_POLICY.check(sync.policy, where)
    mean, why = sync.combine == "mean", "what an aggregator pushes is one sum"
    one_server = "an aggregator brings what it adds up to one server"
    refuse(
        where,
        (mean, "combine mean", why, "sum"),
        (shards > 1, f"shards {shards}", one_server, "1 shard"),
    )
    AGGREGATED_COMPRESSION.check(request.exchange.compression, where)


def check_sums(request: TrainRequest) -> None:
    """Raises ConfigError for what does not go with a topology whose nodes sum rows."""
    from embedding.training.checks import refuse

    topology, sync = request.topology, request.sync
    where = f"topology {topology.kind}"
    if aggregators := part_of(topology, AggregatorSettings).aggregators:
        raise ConfigError(
            f"{where} with aggregators {aggregators}: groups push to the server; they are accepted "
            "with topology ps."
        )
    SUMS_POLICY.check(sync.policy, where)
    SUMS_COMPRESSION.check(request.exchange.compression, where)
    mean, why = sync.combine == "mean", "what nodes moved is summed in shares"
    refuse(where, (mean, "combine mean", why, "sum"))
    if part_of(topology, SumSettings).backend == "nccl" and (cards := gpus()) < request.nodes:
        raise ConfigError(
            f"backend nccl: {request.nodes} nodes need a GPU each and this machine has {cards}; "
            "sockets or auto is accepted."
        )


def check_pace(every_s: float, liveness_timeout_s: float, whose: str = "") -> None:
    """ConfigError where a leader would take a group for gone between two exchanges."""
    if 2 * every_s > liveness_timeout_s:
        raise ConfigError(
            f"an exchange every {every_s:g} s with {whose}liveness_timeout_s "
            f"{liveness_timeout_s:g}: a leader takes a group that is silent for so long for gone, "
            f"and cuts windows without it; at most {liveness_timeout_s / 2:g} s is accepted."
        )


def check_server_groups(request: TrainRequest) -> None:
    """Raises ConfigError for what does not go with several server groups."""
    from embedding.training.checks import refuse

    topology, servers = request.topology, part_of(request.topology, ServersSettings)
    aggregators = part_of(topology, AggregatorSettings).aggregators
    rows = part_of(request.server, ShardSettings)
    groups = servers.server_groups
    if groups == 1:
        return
    where = f"server_groups {groups}"
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
            aggregators > 0,
            f"aggregators {aggregators}",
            "an aggregator brings what it adds up to one server",
            "groups 0",
        ),
        (
            rows.split != "rows",
            f"split {rows.split}",
            "groups tell each other how far whole rows have moved, and no shard has one",
            "split rows",
        ),
        (
            rows.shards > 1,
            f"shards {rows.shards}",
            "groups tell each other how far the rows of one process have moved",
            "1 shard",
        ),
    )
    SERVER_GROUPS.check(request.sync.policy, where)
    check_pace(servers.exchange_every_s, request.sync.liveness_timeout_s)
