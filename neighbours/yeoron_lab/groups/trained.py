"""The server groups of a training: one leads in the command's own process, the others follow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from embedding.server.config import GroupConfig, ServerConfig
from embedding.training.request import TrainRequest, set_of
from yeoron_lab.groups.process import GroupSpec
from yeoron_lab.processes import START_S, ProcessKeeper


@contextmanager
def following(request: TrainRequest, leader: str) -> Iterator[list[str]]:
    """Where each group's server is reached, the leader's first, for the length of a `with` block.

    A process that dies is started again, at the same port.
    """
    with ExitStack() as stack:
        keepers = []
        for index in range(1, request.topology.server_groups):
            keeper = ProcessKeeper(_spec(request, leader, index))
            stack.callback(keeper.end)
            stack.callback(keeper.hint)
            keeper.launch()
            keepers.append(keeper)
        deadline = time.monotonic() + START_S
        locations = [leader]
        for keeper in keepers:
            locations.append(keeper.ready(deadline))
            keeper.watch()
        yield locations


def _spec(request: TrainRequest, leader: str, index: int) -> GroupSpec:
    group = GroupConfig(
        leader=leader,
        name=f"group-{index}",
        every_s=request.topology.exchange_every_s,
        rows=request.exchange.rows,
    )
    server = ServerConfig(
        **{
            "half_life_tokens": None,
            **set_of(request.server),
            "config_digest": request.model.digest(),
            "group": group,
        }
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
