"""Shards that hold columns learn blocks themselves: what that asks of nodes, wire and shards.

No row travels, so that what a push holds of rows is the block itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from embedding.exchange.payload import ShardBlock
from embedding.exchange.wire import Message
from embedding.kernel.registry import NoTraits, Registry


class ShardColumns(Protocol):
    """A way of learning where shards hold columns. Types of rooms above are named in words."""

    @staticmethod
    def check_request(request: Any) -> None:
        """ConfigError for what of a `TrainRequest` does not go with it."""

    @staticmethod
    def check_server(config: Any, shape: Any) -> None:
        """The same of a `ServerConfig` and the `RowShape` of its model."""

    @staticmethod
    def check_policy(sync: Any) -> None:
        """The same of a `SyncConfig`."""

    @staticmethod
    def decode(message: Message) -> ShardBlock | None:
        """The block in a message, checked as far as that goes without state; None: it has none."""

    @staticmethod
    def node_rows(session: Any, feedback: Any) -> Any:
        """See `MakeRows`."""

    @staticmethod
    def training(rows: Any) -> Callable[[Any], Any]:
        """A `MakeTraining` that has the shards learn, of such rows."""

    @staticmethod
    def calls(shard: Any, who: Callable[[], str]) -> Mapping[str, Callable[[Message], Message]]:
        """Operations by name that a shard (`ShardState`) offers on one stream; `who`: the node."""

    @staticmethod
    def moved(held: Any, block: Any) -> tuple[Any, ...]:
        """A `RowDelta` for each table: how a block moves the `HeldRows` as they are now."""


SHARD_COLUMNS: Registry[type[ShardColumns], NoTraits] = Registry(
    "way of learning on columns", "yeoron.columns"
)
"""A server whose split is columns takes the first."""


def columns() -> type[ShardColumns]:
    """The way of learning on columns; ConfigError where none is installed."""
    return SHARD_COLUMNS.needed("split columns: nothing here learns on columns", "split rows")
