"""Pulls of changes: how far a row is from what the node has of it, in place of the row.

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


class NodeChanges(Protocol):
    """The node's side. Not thread-safe."""

    @property
    def nbytes(self) -> int:
        """Memory of the rows that the node has."""

    def forget(self) -> None:
        """What the other side believes this one has may be wrong: the next pull brings all."""

    def asking(self, message: Message, asked: Mapping[Table, IntArray]) -> Message:
        """A pull of changes of these rows; without any the pull as it is."""

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
    def of_node(config: ExchangeConfig) -> NodeChanges:
        """A node's side."""

    @staticmethod
    def of_stream(seed: int) -> StreamChanges:
        """A server's side, whose tables' first vectors have this seed."""


CHANGES: Registry[type[PulledChanges], NoTraits] = Registry(
    "way of pulling changes", "yeoron.changes", "embedding.exchange", "CHANGES"
)
"""A node whose pulls are of changes takes the first; the core has none."""


def needed_changes() -> type[PulledChanges]:
    """The way of pulling changes; ConfigError where none is installed."""
    return CHANGES.needed("pulls changes: nothing here pulls changes", "pulls rows")


def changes_of_stream(seed: int) -> StreamChanges | None:
    """The server's side of a stream; None where no node's pulls can be of changes."""
    found = CHANGES.first()
    return None if found is None else found.of_stream(seed)
