"""Parts of a server that other packages add: a mechanism with state, calls and figures of its own.

A server makes one of each that is installed, whatever its policy: that can change while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from embedding.kernel.registry import NoTraits, Registry
from embedding.server.config import ServerConfig, SyncConfig

if TYPE_CHECKING:
    from embedding.server.rowstore.interface import RowStore
    from embedding.server.words.vocabulary import Vocabulary


class ServerPart(Protocol):
    """One part; the server's lock guards all calls but `stream` and `metrics`."""

    def __init__(
        self, config: ServerConfig, rows: RowStore, vocabulary: Vocabulary, sync: SyncConfig
    ) -> None: ...

    def configure(self, sync: SyncConfig) -> None:
        """Another policy begins; ConfigError where that cannot be, and then nothing changes."""

    def stream(self, state: Any, who: Any) -> Any:
        """Operations by name that it adds to one stream of a node (`flight/shell.py`).

        state  the `ServerState`, not locked
        who    which node greeted on the stream, and its session (`Who`)
        """

    def figures(self) -> dict[str, Any]:
        """JSON-safe, for the status: `sync` has them by the name of the part."""

    @staticmethod
    def metrics(figures: Mapping[str, Any]) -> Iterator[Any]:
        """Families of Prometheus, of what `figures` gave."""


SERVER_PARTS: Registry[type[ServerPart], NoTraits] = Registry(
    "part of a server", "yeoron.parts", "embedding.server", "SERVER_PARTS"
)
"""All parts of other packages; the core has none of its own."""
