"""What does not go with rows or columns on shards, each refused in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedding.kernel.errors import ConfigError
from embedding.models.traits import COLUMN_MODEL
from embedding.server.compatibility import COLUMN_POLICY, SHARDS
from embedding.server.config import ServerConfig, SyncConfig

if TYPE_CHECKING:  # a training checks its request while torch is imported
    from embedding.server.rowstore.interface import RowShape


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


def check_columns(config: ServerConfig, shape: RowShape) -> None:
    """ConfigError for what a split by columns does not go with."""
    if config.shards > shape.dim:
        raise ConfigError(
            f"shards {config.shards} with split columns: rows have {shape.dim} columns; at most "
            f"{shape.dim} shards are accepted."
        )
    if shape.buckets:
        raise ConfigError(
            "split columns: an example of fasttext has an input of dozens of rows, which no "
            f"minibatch names; {', '.join(COLUMN_MODEL.accepted)} are accepted, or split rows."
        )
    if shape.biases:
        raise ConfigError(
            "split columns: the bias of a row is one more column, which no minibatch names; "
            f"{', '.join(COLUMN_MODEL.accepted)} are accepted."
        )


def check_column_policy(sync: SyncConfig) -> None:
    """ConfigError for a policy under which nodes keep rows."""
    COLUMN_POLICY.check(sync.policy)
    if sync.n_push > 1 or sync.n_fetch > 1:
        raise ConfigError(
            f"n_push {sync.n_push}, n_fetch {sync.n_fetch} with split columns: nodes have no rows "
            "of their own; 1 is accepted."
        )


def without_rows(config: ServerConfig) -> ServerConfig:
    """As a primary uses it. By columns no node has whole rows, to infer vectors of words from or
    to add contexts up by."""
    if config.split == "rows":
        return config
    return config.model_copy(update={"rare_mentions": 0, "usage": False})
