"""The shards of one primary: their processes, which end with it, and the connections to them."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from embedding.kernel.config import part_of
from embedding.kernel.errors import ConfigError
from embedding.server.config import ServerConfig
from embedding.server.parts import Companion
from yeoron_lab.processes import Fleet, own_line
from yeoron_lab.settings import ShardSettings
from yeoron_lab.shards.client.links import reached
from yeoron_lab.shards.rows import ShardedRows
from yeoron_lab.shards.spec import ShardSpec

logger = logging.getLogger(__name__)

_HERE = "grpc://127.0.0.1:0"


def shard_specs(
    config: ServerConfig,
    *,
    dim: int,
    seed: int,
    identity: str,
    buckets: int = 0,
    scratch: Path | None = None,
) -> list[ShardSpec]:
    """The shards of a server, each with a port and a state folder of its own, in `scratch` where
    the server keeps none; ConfigError for ports that they cannot have."""
    first, count = _first_port(config), part_of(config, ShardSettings).shards
    specs = []
    home = config.state_dir or scratch
    for index in range(count):
        folder = None if home is None else home / f"shard-{index}"
        changes = {
            "port": first + index if first else 0,
            "shards_port": 0,
            "state_dir": folder,
            "snapshots": None,
            "gold": None,
            "shards": 1,
        }
        server = config.model_copy(update=changes)
        of_rows = {"dim": dim, "buckets": buckets, "seed": seed, "identity": identity}
        specs.append(ShardSpec(server=server, index=index, count=count, **of_rows))
    return specs


def _first_port(config: ServerConfig) -> int:
    """The port of the first shard, 0 for a free one each; ConfigError for what cannot be."""
    settings = part_of(config, ShardSettings)
    first, count = settings.shards_port, settings.shards
    last = first + count - 1
    if first and last > 65535:
        raise ConfigError(
            f"shards_port {first} with {count} shards: the last would have port {last}; "
            f"at most {65536 - count} is accepted."
        )
    for name, port in (("port", config.port), ("http_port", config.http_port)):
        if first and first <= port <= last:
            raise ConfigError(
                f"{name} {port}: the shards have ports {first} to {last}; another is accepted."
            )
    return first


class Shards(Companion):
    """Starts, watches and ends the shards of `rows`."""

    def __init__(self, rows: ShardedRows, config: ServerConfig, *, identity: str) -> None:
        self._links = rows.links
        self._config = config
        self._identity = identity
        # A checkpoint may have brought another seed than was asked for.
        dim, seed, buckets = rows.tables.dim, rows.tables.seed, rows.composer.buckets
        # A corpus is not read again for one shard that died.
        needs = config.in_step and config.state_dir is None
        self._scratch = tempfile.TemporaryDirectory(prefix="yeoron-shards-") if needs else None
        scratch = None if self._scratch is None else Path(self._scratch.name)
        specs = shard_specs(
            config, dim=dim, seed=seed, identity=identity, buckets=buckets, scratch=scratch
        )
        self.fleet = Fleet(specs)

    def start(self) -> None:
        """Start the processes and connect; PlatformError when one does not start."""
        locations = self.fleet.start()
        self._links.connect(
            locations,
            identity=self._identity,
            config=own_line(self._config),
            reached=[reached(location, _HERE) for location in locations],
            restarts=lambda: self.fleet.restarts,
        )
        self._links.start()
        logger.info("%d shards: %s", len(locations), ", ".join(locations))

    def tick(self) -> None:
        self._links.tick()

    def checkpoint(self, *, wait: bool) -> None:
        if wait:
            self._links.checkpoint()
        else:
            self._links.want_checkpoint()

    @property
    def pids(self) -> dict[str, int]:
        return {f"shard-{index}": pid for index, pid in enumerate(self.fleet.pids)}

    def unkept(self) -> list[str]:
        return self.fleet.unkept()

    def ailing(self) -> list[str]:
        """Why shards do not do their work, a sentence each."""
        reasons = []
        for link in self._links.links:
            if link.failed is not None:
                reasons.append(link.failed)
            elif link.away:
                reasons.append(f"shard {link.index} is away; it is being started again.")
        return reasons

    def stop(self) -> None:
        """Let the shards carry out what the log has, then end them."""
        self._links.stop()
        self.fleet.stop()
        if self._scratch is not None:
            self._scratch.cleanup()
