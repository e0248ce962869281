"""Shards in this process: real ports and checkpoints without the start of a process each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from yeoron_lab.shards.service import ShardServer
from yeoron_lab.shards.spec import ShardSpec


class ThreadFleet:
    """Stands for `Fleet`."""

    def __init__(self, specs: Sequence[ShardSpec]) -> None:
        self.specs = list(specs)
        self.servers: list[ShardServer] = []
        self.pids: list[int] = []
        self.restarts = [0] * len(self.specs)

    def start(self) -> list[str]:
        self.servers = [ShardServer(spec) for spec in self.specs]
        for index, server in enumerate(self.servers):
            server.start()
            self._keep_port(index)
        return [server.location for server in self.servers]

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def crash(self, index: int) -> None:
        """As kill -9 would: nothing more is written."""
        server = self.servers[index]
        if server.recovery is not None:
            server.recovery._try_write = lambda: "crashed"
        server.stop()

    def restart(self, index: int) -> None:
        self.servers[index] = ShardServer(self.specs[index])
        self.servers[index].start()

    def _keep_port(self, index: int) -> None:
        spec = self.specs[index]
        port = int(self.servers[index].location.rpartition(":")[2])
        server = spec.server.model_copy(update={"port": port})
        self.specs[index] = spec.model_copy(update={"server": server})


@contextmanager
def sharded(
    config: ServerConfig,
    sync: SyncConfig | None = None,
    *,
    dim: int = 4,
    seed: int = 3,
    buckets: int = 0,
) -> Iterator[ParameterServer]:
    """A running server whose shards, where it has any, are threads."""
    with (
        patch("yeoron_lab.shards.sharding.Fleet", ThreadFleet),
        running_server(config, sync, dim=dim, seed=seed, buckets=buckets) as server,
    ):
        yield server


def fleet(server: ParameterServer) -> ThreadFleet:
    """The threads of a server."""
    (found,) = [one.fleet for one in server._companions if hasattr(one, "fleet")]
    assert isinstance(found, ThreadFleet)
    return found


def crash_primary(server: ParameterServer) -> None:
    """End the primary and its shards as kill -9 would."""
    state = server.state
    state.flush = lambda: None
    if server.recovery is not None:
        server.recovery._try_write = lambda: "crashed"
    for index in range(len(fleet(server).servers)):
        fleet(server).crash(index)
    fleet(server).stop = lambda: None
    state.rows.links.catch_up = lambda timeout_s: True
    server.stop()
