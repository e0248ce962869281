"""What of the exchange's settings has no meaning where shards hold columns and no row travels."""

from __future__ import annotations

from embedding.exchange.compression.traits import COLUMN_COMPRESSION
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.errors import ConfigError


def check_column_exchange(config: ExchangeConfig) -> None:
    """ConfigError for what is done to rows alone."""
    COLUMN_COMPRESSION.check(config.compression)
    if config.pulls != "rows":
        raise ConfigError(
            f"pulls {config.pulls} with split columns: nodes have no rows to keep; rows is "
            "accepted."
        )
    if config.cache_bytes:
        raise ConfigError(
            f"cache_bytes {config.cache_bytes} with split columns: nodes have no rows to keep; "
            "0 is accepted."
        )
