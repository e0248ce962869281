"""What does not go with rows or columns on shards, each refused in a sentence."""

from __future__ import annotations

from embedding.kernel.errors import ConfigError
from embedding.server.compatibility import SHARDS
from embedding.server.config import ServerConfig, SyncConfig


def check_bucket_count(buckets: int, shards: int) -> None:
    """ConfigError where a shard would hold none of the rows of n-grams."""
    if 0 < buckets < shards:
        raise ConfigError(
            f"buckets {buckets} with {shards} shards: each holds some of the rows of n-grams; at "
            f"least {shards} are needed."
        )


def check_pushing(sync: SyncConfig, shards: int) -> None:
    """ConfigError for a policy under which rows change otherwise than by pushes."""
    SHARDS.check(sync.policy, f"{shards} shards", ", or 1 shard")


def without_rows(config: ServerConfig) -> ServerConfig:
    """As a primary uses it. By columns no node has whole rows, to infer vectors of words from or
    to add contexts up by."""
    if config.split == "rows":
        return config
    return config.model_copy(update={"rare_mentions": 0, "usage": False})
