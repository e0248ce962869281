"""Rows that lie in other processes than their server's: what a server, its nodes, a training and
a backup ask of that. Other packages bring it; types of rooms above are named in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from embedding.kernel.registry import NoTraits, Registry

RowLayout = Mapping[str, Any]
"""How rows lie in processes, as checkpoints and backups say it."""
IN_SERVER: RowLayout = MappingProxyType({"shards": 1, "split": "rows"})
"""All rows lie in the server's own process."""


class RowPlacement(Protocol):
    """A way of keeping rows in other processes."""

    @staticmethod
    def layout(config: Any) -> RowLayout:
        """How rows lie as a `ServerConfig` asks for it; `IN_SERVER` where it does not ask."""

    @staticmethod
    def primary(config: Any) -> Any:
        """The `ServerConfig` of a server whose rows lie elsewhere."""

    @staticmethod
    def rows(setup: Any) -> Any:
        """A `RowStore` of a `RowSetup`, whose rows lie elsewhere."""

    @staticmethod
    def running(rows: Any, config: Any, *, identity: str) -> Any:
        """A `Companion`: the processes of such rows and of a `ServerConfig`, none of them started.

        identity  of the training
        """

    @staticmethod
    def node_rows(split: str) -> Callable[..., Any]:
        """A `MakeRows`: of a node whose server says in its greeting that rows lie so."""

    @staticmethod
    def check_request(request: Any) -> None:
        """ConfigError for what of a `TrainRequest` does not go with what it asks for."""

    @staticmethod
    def folders(config: Any, home: Path) -> list[Path]:
        """Where the processes of a server keep checkpoints, whose own are in the folder `home`."""

    @staticmethod
    def check_move(was: RowLayout, now: RowLayout) -> None:
        """ConfigError where rows that lie in one way cannot be placed in another."""

    @staticmethod
    def move(
        folder: Path, into: Path, was: RowLayout, now: RowLayout, *, dim: int, buckets: int
    ) -> None:
        """Write what a state folder holds to the new folder `into`, in another layout; ConfigError
        where that cannot be."""


PLACEMENTS: Registry[type[RowPlacement], NoTraits] = Registry(
    "way of keeping rows in other processes", "yeoron.shards"
)
"""The first is taken; the core has none."""


def placement(config: Any) -> type[RowPlacement] | None:
    """How a `ServerConfig` keeps rows in other processes; None: they are in the server's own."""
    kind = PLACEMENTS.first()
    return None if kind is None or kind.layout(config) == IN_SERVER else kind


def needed_placement() -> type[RowPlacement]:
    """How rows are kept in other processes; ConfigError where nothing does that."""
    return PLACEMENTS.needed("these rows lie on shards: nothing here reads such rows")


def layout(config: Any) -> RowLayout:
    """How the rows of a `ServerConfig` lie."""
    kind = PLACEMENTS.first()
    return IN_SERVER if kind is None else kind.layout(config)
