"""The processes of the shards: started and ended with the primary, started again when they die."""

from __future__ import annotations

import time
from collections.abc import Sequence

from embedding.server.config import ServerConfig
from embedding.server.processes import START_S, ProcessKeeper
from embedding.server.shards.spec import ShardSpec


def shard_specs(
    config: ServerConfig, *, dim: int, seed: int, identity: str, buckets: int = 0
) -> list[ShardSpec]:
    """The shards of a server, each with a port and a state folder of its own."""
    specs = []
    home = config.shards_dir or config.state_dir
    for index in range(config.shards):
        folder = None if home is None else home / f"shard-{index}"
        changes = {
            "port": config.shards_port + index if config.shards_port else 0,
            "shards_port": 0,
            "state_dir": folder,
            "snapshots": None,
            "gold": None,
            "shards": 1,
        }
        server = config.model_copy(update=changes)
        specs.append(
            ShardSpec(
                server=server,
                index=index,
                count=config.shards,
                dim=dim,
                buckets=buckets,
                seed=seed,
                identity=identity,
            )
        )
    return specs


class Fleet:
    """Runs one process a shard."""

    def __init__(self, specs: Sequence[ShardSpec]) -> None:
        self._keepers = [ProcessKeeper(spec) for spec in specs]

    def start(self) -> list[str]:
        """Start all and return where they listen; PlatformError when one does not start."""
        try:
            for keeper in self._keepers:
                keeper.launch()
            deadline = time.monotonic() + START_S
            locations = [keeper.ready(deadline) for keeper in self._keepers]
        except BaseException:
            self.stop()
            raise
        for keeper in self._keepers:
            keeper.watch()
        return locations

    def stop(self) -> None:
        """End all; each writes a last checkpoint first."""
        for keeper in self._keepers:
            keeper.hint()
        for keeper in self._keepers:
            keeper.end()

    def unkept(self) -> list[str]:
        """Of shards that ended without a last checkpoint, a sentence each."""
        return [
            f"shard {keeper.spec.index}: it ended with exit code {code}, without a last checkpoint."
            for keeper in self._keepers
            if keeper.spec.server.state_dir is not None and (code := keeper.code)
        ]

    @property
    def restarts(self) -> list[int]:
        """How often each was started again."""
        return [keeper.restarts for keeper in self._keepers]

    @property
    def pids(self) -> list[int]:
        """The processes."""
        return [keeper.pid for keeper in self._keepers]
