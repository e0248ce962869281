"""The process of a group that follows, as a training starts it; the leading one is in the command's
own process.

It gets a GroupSpec as its argument, says on standard output where it listens, and ends on SIGTERM,
or as soon as its standard input ends: with whoever started it, however that died. When it cannot go
on as the leader's replica it ends by itself; started again it becomes one again.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic import Field

from embedding.kernel.config import part_of
from embedding.kernel.errors import YeoronError
from embedding.kernel.logs import begin_logging
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer
from yeoron_lab.processes import Fleet, ProcessSpec, announce, end_with_parent
from yeoron_lab.settings import GroupConfig, ServersSettings

if TYPE_CHECKING:
    from embedding.training.request import TrainRequest


class GroupSpec(ProcessSpec):
    """One of the groups of a training; `server.group` names its leader."""

    module = "yeoron_lab.groups.process"
    what = "server group"

    sync: SyncConfig = SyncConfig()
    """How the group's own nodes are kept in step."""

    dim: int = Field(ge=1)
    """Columns of a row."""

    seed: int = 0
    """Seed of the rows' first values."""

    buckets: int = Field(default=0, ge=0)
    """Rows for n-grams."""

    biases: int = Field(default=0, ge=0)
    """Columns that are no part of a vector."""


@contextmanager
def following(request: TrainRequest, leader: str) -> Iterator[list[str]]:
    """Where each group's server is reached, the leader's first, for the length of a `with` block.

    A process that dies is started again, at the same port.
    """
    servers = part_of(request.topology, ServersSettings).server_groups
    specs = [_spec(request, leader, i) for i in range(1, servers)]
    fleet = Fleet(specs)
    try:
        yield [leader, *fleet.start()]
    finally:
        fleet.stop()


def _spec(request: TrainRequest, leader: str, index: int) -> GroupSpec:
    from embedding.training.request import set_of  # the group's own process trains nothing

    group = GroupConfig(
        leader=leader,
        name=f"group-{index}",
        every_s=part_of(request.topology, ServersSettings).exchange_every_s,
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


def main() -> None:
    """Serve until told to end."""
    begin_logging("group")
    # ^C of the terminal is for whoever started this, who ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(lambda: os.kill(os.getpid(), signal.SIGTERM))
    try:
        spec = GroupSpec.model_validate_json(sys.argv[1])
        server = ParameterServer(
            spec.server,
            spec.sync,
            dim=spec.dim,
            seed=spec.seed,
            buckets=spec.buckets,
            biases=spec.biases,
        )
        server.serve_forever(
            lambda: announce(location=server.location, http=server.http_url), terminal=False
        )
    except YeoronError as error:
        logging.getLogger(__name__).error("%s", error)
        logging.shutdown()
        os._exit(error.exit_code)
    logging.shutdown()
    # Everything is with the leader; taking gRPC and torch down in order would only hold it up.
    os._exit(0)


if __name__ == "__main__":
    main()
