"""The shards of one primary: their processes and the connections to them."""

from __future__ import annotations

import logging

from embedding.exchange.shards.links import reached
from embedding.server.config import ServerConfig
from embedding.server.flight.credentials import own_line
from embedding.server.shards.fleet import Fleet, shard_specs
from embedding.server.shards.rows import ShardedRows

logger = logging.getLogger(__name__)

_HERE = "grpc://127.0.0.1:0"


class Shards:
    """Starts, watches and ends the shards of `rows`."""

    def __init__(self, rows: ShardedRows, config: ServerConfig, *, identity: str) -> None:
        self._links = rows.links
        self._config = config
        self._identity = identity
        self.fleet = Fleet(
            shard_specs(
                config,
                dim=rows.tables.dim,
                seed=rows.tables.seed,  # a checkpoint may have brought another than asked for
                identity=identity,
                buckets=rows.composer.buckets,
            )
        )

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
        """Time passed."""
        self._links.tick()

    def ailing(self) -> list[str]:
        """Why shards do not do their work, a sentence each."""
        found = []
        for link in self._links.links:
            if link.failed is not None:
                found.append(link.failed)
            elif link.away:
                found.append(f"shard {link.index} is away; it is being started again.")
        return found

    def stop(self) -> None:
        """Let the shards carry out what they were told, then end them."""
        self._links.stop()
        self.fleet.stop()
