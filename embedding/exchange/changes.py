"""Rows that a node keeps from one pull to the next: those that nobody else has changed do not
travel, or of each only how far it is from what the node has of it (pulls of changes).

What the two sides of a stream do for that; other packages bring it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from embedding.kernel.registry import NoTraits, Registry

if TYPE_CHECKING:
    from embedding.exchange.config import ExchangeConfig
    from embedding.exchange.protocol import Push
    from embedding.exchange.wire import Array, Message

Answer = tuple[dict[str, Any], "dict[str, Array]"]
"""Header and parts of an answer."""
Answering = Callable[[Mapping[Table, FloatArray | HalfArray], int], Answer | None]
"""The answer to a pull, from rows [n, dim] by table as they are now and the node's last push in
them; None: whole rows are to be sent, from which the node begins again."""


class KeptRows(Protocol):
    """What a node has of the rows of a server, or of a shard. Not thread-safe.

    asked, spared  rows that pulls named so far, and those of them that did not travel
    """

    @property
    def asked(self) -> int: ...

    @property
    def spared(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Memory of the rows that the node has."""

    def greeted(self, epoch: int, sequence: int, *, first: bool) -> None:
        """The other side greeted; see `OwnRows.greeted`."""

    def refused(self) -> None:
        """The server refused a push that others have taken."""

    def alive(self, ids: IntArray) -> None:
        """Words with a row, increasing: no other will be asked for."""

    def asking(self, message: Message, asked: Mapping[Table, IntArray]) -> Message:
        """A pull of these rows, with what the node has of them; without any the pull as it is."""

    def came(self, answer: Message, asked: Mapping[Table, IntArray]) -> dict[Table, Any]:
        """Rows [n, dim] in the order in which they were asked for; RefusedError: malformed."""

    def learnt(self, push: Push) -> None:
        """The server has taken this push."""


class StreamChanges(Protocol):
    """The server's side, of one stream; its thread alone uses it."""

    def asked(self, header: Mapping[str, Any], ids: Mapping[Table, IntArray]) -> Answering | None:
        """What answers a pull of these rows; None: it asks for no changes. RefusedError: malformed.

        header  of the pull
        """

    def learnt(self, push: Push) -> None:
        """A push was taken; sent again it changes nothing."""


class PulledChanges(Protocol):
    """A way of pulling changes.

    compression  the way of writing pushes whose kernels it uses, to be loaded ahead
    """

    compression: ClassVar[str]

    @staticmethod
    def of_node(config: ExchangeConfig) -> KeptRows:
        """A node's side."""

    @staticmethod
    def of_stream(seed: int) -> StreamChanges:
        """A server's side, whose tables' first vectors have this seed."""


CHANGES: Registry[type[PulledChanges], NoTraits] = Registry(
    "way of pulling changes", "yeoron.changes", "embedding.exchange", "CHANGES"
)
"""A node whose pulls are of changes takes the first; the core has none."""


CACHES: Registry[Callable[[ExchangeConfig], KeptRows], NoTraits] = Registry(
    "way of keeping rows", "yeoron.caches", "embedding.exchange", "CACHES"
)
"""A node that keeps rows and pulls no changes takes the first; the core has none."""


def kept_rows(config: ExchangeConfig) -> KeptRows | None:
    """What a node keeps as the settings say, None for nothing; ConfigError as `needed_changes`."""
    if config.pulls == "changes":
        return needed_changes().of_node(config)
    if not config.cache_bytes:
        return None
    wanted = f"cache_bytes {config.cache_bytes}: nothing here keeps rows"
    return CACHES.needed(wanted, "0")(config)


def needed_changes() -> type[PulledChanges]:
    """The way of pulling changes; ConfigError where none is installed."""
    return CHANGES.needed("pulls changes: nothing here pulls changes", "pulls rows")


def changes_of_stream(seed: int) -> StreamChanges | None:
    """The server's side of a stream; None where no node's pulls can be of changes."""
    found = CHANGES.first()
    return None if found is None else found.of_stream(seed)
