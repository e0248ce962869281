"""The shards of one primary: their processes and the connections to them."""

from __future__ import annotations

import logging

from embedding.exchange.shards.links import reached
from embedding.exchange.shards.split import Layout
from embedding.server.config import ServerConfig
from embedding.server.flight.credentials import own_line
from embedding.server.shards.fleet import Fleet, shard_specs
from embedding.server.shards.leading import LeadingState
from embedding.server.shards.link import ShardLinks

logger = logging.getLogger(__name__)

_HERE = "grpc://127.0.0.1:0"


class Shards:
    """Starts, watches and ends the shards of `state`."""

    def __init__(self, state: LeadingState, config: ServerConfig, *, identity: str) -> None:
        self._state = state
        self._config = config
        self._identity = identity
        seed = state.tables.seed  # a checkpoint may have brought another than was asked for
        buckets = state.composer.buckets
        self.fleet = Fleet(
            shard_specs(config, dim=state.dim, seed=seed, identity=identity, buckets=buckets)
        )

    def start(self) -> None:
        """Start the processes and connect; PlatformError when one does not start."""
        locations = self.fleet.start()
        config = self._config
        self._state.links = ShardLinks(
            locations,
            self._state.log,
            identity=self._identity,
            config=own_line(config),
            layout=Layout(config.shards, config.split, self._state.dim),
            reached=[reached(location, _HERE) for location in locations],
            follows=config.group.leader is not None,
        )
        self._state.links.restarts = lambda: self.fleet.restarts
        self._state.links.start()
        logger.info("%d shards: %s", len(locations), ", ".join(locations))

    def tick(self) -> None:
        """Time passed."""
        self._state.links.tick()

    def ailing(self) -> list[str]:
        """Why shards do not do their work, a sentence each."""
        found = []
        for link in self._state.links.links:
            if link.failed is not None:
                found.append(link.failed)
            elif link.away:
                found.append(f"shard {link.index} is away; it is being started again.")
        return found

    def stop(self) -> None:
        """Let the shards carry out what they were told, then end them."""
        if hasattr(self._state, "links"):
            self._state.links.stop()
        self.fleet.stop()
