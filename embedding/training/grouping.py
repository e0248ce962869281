"""The server groups of a training: one leads in the command's own process, the others follow."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from embedding.errors import ConfigError
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.server.config import ServerConfig
from embedding.server.groups.config import WRONG_POLICIES, GroupConfig
from embedding.server.groups.spec import GroupSpec
from embedding.server.shards.fleet import START_S, ShardKeeper
from embedding.training.request import TrainRequest


def check_server_groups(request: TrainRequest) -> None:
    """Raises ConfigError for what does not go with several server groups."""
    topology, groups = request.topology, request.topology.server_groups
    if groups == 1:
        return
    where = f"server_groups {groups}"
    if groups > request.nodes:
        raise ConfigError(
            f"{where}: there are {request.nodes} nodes, and each group has one at least; at most "
            "so many groups are accepted."
        )
    for is_so, what, accepted in (
        (topology.kind != "ps", f"topology {topology.kind}", "ps"),
        (topology.groups > 0, f"groups {topology.groups}", "0"),
        (request.shards > 1, f"shards {request.shards}", "1"),
        (request.split != "rows", f"split {request.split}", "rows"),
    ):
        if is_so:
            raise ConfigError(
                f"{where} with {what}: nodes push to the one server of their group, which holds "
                f"all rows; {accepted} is accepted."
            )
    if request.sync.policy in WRONG_POLICIES:
        raise ConfigError(
            f"{where} with policy {request.sync.policy}: its nodes change rows past the pushes "
            "that groups tell each other of; any other policy is accepted."
        )


@contextmanager
def following(request: TrainRequest, leader: str) -> Iterator[list[str]]:
    """Where each group's server is reached, the leader's first, for the length of a `with` block.

    A process that dies is started again, at the same port.
    """
    with ExitStack() as stack:
        keepers = []
        for index in range(1, request.topology.server_groups):
            keeper = ShardKeeper(_spec(request, leader, index))
            stack.callback(keeper.end)
            stack.callback(keeper.hint)
            keeper.launch()
            keepers.append(keeper)
        deadline = time.monotonic() + START_S
        found = [leader]
        for keeper in keepers:
            found.append(keeper.ready(deadline))
            keeper.watch()
        yield found


def refresh(locations: Sequence[str]) -> None:
    """Have each group become what the leader is now: its words, and how often they were read."""
    for location in locations[1:]:
        with ParameterClient(location, node="training", config=ExchangeConfig()) as client:
            client.checkpoint(wait=True)


def _spec(request: TrainRequest, leader: str, index: int) -> GroupSpec:
    server = ServerConfig(
        device=request.device,
        min_count=request.min_count,
        max_words=request.max_words,
        config_digest=request.model.digest(),
        half_life_tokens=None,
        group=GroupConfig(
            leader=leader,
            name=f"group-{index}",
            every_s=request.topology.exchange_every_s,
            rows=request.exchange.rows,
        ),
    )
    return GroupSpec(
        server=server,
        index=index,
        sync=request.sync,
        dim=request.model.width,
        seed=request.model.seed,
        buckets=request.model.gram_rows,
        biases=request.model.biases,
    )
