"""What does not go with columns on shards, each refused in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedding.exchange.compression.traits import COLUMN_COMPRESSION
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.config import part_of
from embedding.kernel.errors import ConfigError
from embedding.models.config import ModelConfig, Optimiser
from embedding.models.traits import COLUMN_MODEL
from embedding.server.compatibility import COLUMN_POLICY
from embedding.server.config import ServerConfig, SyncConfig
from yeoron_lab.columns.minibatches import LARGEST_RATE
from yeoron_lab.settings import AggregatorSettings, KeepingSettings, ShardSettings

if TYPE_CHECKING:  # a training checks its request while torch is imported
    from embedding.server.rowstore import RowShape
    from embedding.training.request import TrainRequest


def check_column_request(request: TrainRequest) -> None:
    """ConfigError for what is not learnt where columns lie."""
    from embedding.training.checks import refuse

    check_column_model(request.model)
    check_column_policy(request.sync)
    check_column_exchange(request.exchange)
    _check_server(request.server, request.model.dim)
    topology, what = request.topology, "split columns"
    aggregators = part_of(topology, AggregatorSettings).aggregators
    why = "nodes have no rows that could be added up"
    refuse(f"aggregators {aggregators}", (aggregators > 0, what, why, "groups 0"))
    why = "replicas hold whole rows, and nodes would have none"
    refuse(f"topology {topology.kind}", (topology.traits.sums, what, why, "ps"))


def check_columns(config: ServerConfig, shape: RowShape) -> None:
    """ConfigError for what a split by columns does not go with."""
    _check_server(config, shape.dim)
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


def check_column_exchange(config: ExchangeConfig) -> None:
    """ConfigError for what is done to rows alone."""
    COLUMN_COMPRESSION.check(config.compression)
    keeping = part_of(config, KeepingSettings)
    if keeping.pulls != "rows":
        raise ConfigError(
            f"pulls {keeping.pulls} with split columns: nodes have no rows to keep; rows is "
            "accepted."
        )
    if keeping.cache_bytes:
        raise ConfigError(
            f"cache_bytes {keeping.cache_bytes} with split columns: nodes have no rows to keep; "
            "0 is accepted."
        )


def check_column_model(model: ModelConfig) -> None:
    """ConfigError for a model that is not learnt by one number an example."""
    COLUMN_MODEL.check(model.model)
    if model.learning_rate > LARGEST_RATE:
        raise ConfigError(
            f"learning_rate {model.learning_rate} with split columns: at most "
            f"{LARGEST_RATE:.0f} is accepted."
        )
    if model.optimiser is not Optimiser.SGD:
        raise ConfigError(
            f"optimiser {model.optimiser} with split columns: it follows how far a whole row "
            "moved, which no shard knows; sgd is accepted."
        )


def _check_server(config: ServerConfig, dim: int) -> None:
    shards = part_of(config, ShardSettings).shards
    if shards > dim:
        raise ConfigError(
            f"shards {shards} with split columns: rows have {dim} columns; at most "
            f"{dim} shards are accepted."
        )
    if config.optimizer != "sum":
        raise ConfigError(
            f"split columns with optimizer {config.optimizer}: it follows how far a whole row "
            "moved, which no shard knows; optimizer sum or split rows is accepted."
        )
