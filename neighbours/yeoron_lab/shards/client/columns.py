"""Shards that hold columns learn blocks themselves: what that asks of nodes, wire and shards.

No row travels, so that what a push holds of rows is the block itself.
"""

from __future__ import annotations

from typing import Any

from embedding.kernel.registry import NoTraits, Registry

SHARD_COLUMNS: Registry[Any, NoTraits] = Registry("way of learning on columns", "yeoron.columns")
"""A server whose split is columns takes the first. What is asked of it (types above this package):

check_request(TrainRequest), check_server(ServerConfig, RowShape), check_policy(SyncConfig)
                    ConfigError for what does not go with it
decode(Message)     the block in a message (`ShardBlock`), checked as far as that goes without state
node_rows           a `MakeRows`
calls(ShardState, who)     operations by name that a shard offers on the stream of the node `who()`
moved(HeldRows, block)     a `RowDelta` for each table: how a block moves the rows as they are now
"""


def columns() -> Any:
    """The way of learning on columns; ConfigError where none is installed."""
    return SHARD_COLUMNS.needed("split columns: nothing here learns on columns", "split rows")
