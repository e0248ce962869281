"""Rows on several processes, each of which holds some of them: what a server and its nodes ask of
that. Other packages bring it; types of rooms above are named in words.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from embedding.kernel.errors import ConfigError
from embedding.kernel.registry import NoTraits, Registry

Split = tuple[int, str]
"""How many shards, and what of the tables each holds: rows or columns."""


class Sharding(Protocol):
    """A way of keeping rows on shards."""

    @staticmethod
    def rows(setup: Any) -> Any:
        """A `RowStore` of a `RowSetup`, whose rows lie on shards."""

    @staticmethod
    def running(rows: Any, config: Any, *, identity: str) -> Any:
        """A `Companion`: the shards of such rows and of a `ServerConfig`, none of them started.

        identity  of the training
        """

    @staticmethod
    def node_rows(split: str) -> Callable[..., Any]:
        """A `MakeRows`: of a node, where shards hold rows, or columns."""

    @staticmethod
    def training(rows: Any) -> Callable[[Any], Any]:
        """A `MakeTraining` by shards that hold columns, of such rows."""

    @staticmethod
    def check_request(request: Any) -> None:
        """ConfigError for what of a `TrainRequest` does not go with shards."""

    @staticmethod
    def reshard(
        folder: Path, into: Path, was: Split, now: Split, *, dim: int, buckets: int
    ) -> None:
        """Write what a state folder holds to the new folder `into`, on other shards; ConfigError
        where that cannot be."""


SHARDING: Registry[type[Sharding], NoTraits] = Registry(
    "way of keeping rows on shards", "yeoron.shards"
)
"""A server with shards takes the first; the core has none."""


def sharding() -> type[Sharding]:
    """How rows are kept on shards; ConfigError where nothing does that."""
    wanted = "server.shards, server.split: nothing here keeps rows on shards"
    return SHARDING.needed(wanted, "1 shard with split rows")


def check_split(was: Split, now: Split) -> None:
    """ConfigError where rows cannot be placed otherwise."""
    if was[1] != now[1]:
        raise ConfigError(
            f"server.split {now[1]}: the checkpoint's tables are split by {was[1]}, and only "
            f"the number of shards can change; {was[1]} is accepted."
        )
