"""Rows that a node keeps from one pull to the next: those that nobody else has changed do not
travel, or of each only how far it is from what the node has of it (pulls of changes).

What the two sides of a stream do for that; other packages bring it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray, Table
from embedding.kernel.registry import NoTraits, Registry

if TYPE_CHECKING:
    from embedding.exchange.config import ExchangeConfig
    from embedding.exchange.protocol import PulledRows, Push
    from embedding.exchange.wire import Message

Asked = Mapping[Table, IntArray]


class KeptRows:
    """What a node has of the rows of a server, or of a shard; here nothing. Not thread-safe.

    asked, spared  rows that pulls named so far, and those of them that did not travel
    nbytes         memory of the rows that the node has
    """

    asked = spared = 0

    @property
    def nbytes(self) -> int:
        return 0

    def greeted(self, epoch: int, sequence: int, *, first: bool) -> None:
        """The other side greeted in this incarnation of it, with the last push that it has taken;
        `first`: nothing was pushed yet."""

    def refused(self) -> None:
        """The server refused a push that others have taken."""

    def alive(self, ids: IntArray) -> None:
        """Words with a row, increasing: no other will be asked for."""

    def asking(self, message: Message, asked: Asked) -> Message:
        """A pull of these rows, with what the node has of them; without any the pull as it is."""
        del asked
        return message

    def came(self, answer: Message, pulled: PulledRows, asked: Asked) -> dict[Table, Any]:
        """Rows [n, dim] in the order in which they were asked for; RefusedError: malformed."""
        del answer
        for table, ids in asked.items():
            if len(pulled.rows.get(table, ())) != len(ids):
                raise RefusedError(f"pull: the answer has not {len(ids)} rows of table {table}.")
        return dict(pulled.rows)

    def learnt(self, push: Push) -> None:
        """The server has taken this push, whose deltas are the node's own."""


class Answering(Protocol):
    """The answer to one pull.

    whole  rows travel as they are, in float16 where the node asks for that
    """

    whole: bool

    def read(
        self,
        tables: Any,
        slots: Callable[[Table, IntArray, str], IntArray],
        node: str,
        incarnation: tuple[int, int],
    ) -> int:
        """Look which rows the node lacks; how many of those that it asks for do not travel.

        Of rows that travel whole it is called under the lock in which they are read.

        tables       the server's `Tables`; slots  of ids in them, for a call of this name
        incarnation  of the server, and the last push of the node that is in the rows
        """

    def message(self, rows: PulledRows) -> Message | None:
        """The answer, from all rows that were asked for; None: these are to be sent, and the node
        begins again from them."""


class KeptByNode:
    """The server's side: what the node of one stream keeps. The stream's thread alone uses it.

    header  where a pull says what its node keeps
    """

    header: ClassVar[str]

    def asked(self, message: Message, ids: Asked) -> Answering:
        """What answers a pull of these rows; RefusedError: malformed."""
        raise NotImplementedError

    def learnt(self, push: Push) -> None:
        """A push was taken; sent again it changes nothing."""


class KeepingRows(Protocol):
    """A way of keeping rows: the node's side, made of its settings.

    compression  the way of writing pushes whose kernels it uses, to be loaded ahead; "": none
    of_stream    a server's side, of a server whose tables' first vectors have this seed
    """

    compression: ClassVar[str]

    @staticmethod
    def of_stream(seed: int) -> KeptByNode: ...

    def __call__(self, config: ExchangeConfig) -> KeptRows: ...


CHANGES: Registry[KeepingRows, NoTraits] = Registry("way of pulling changes", "yeoron.changes")
"""A node whose pulls are of changes takes the first; the core has none."""


CACHES: Registry[KeepingRows, NoTraits] = Registry("way of keeping rows", "yeoron.caches")
"""A node that keeps rows and pulls no changes takes the first; the core has none."""


def kept_rows(config: ExchangeConfig) -> KeptRows:
    """What a node keeps as the settings say; ConfigError where nothing here does that."""
    if config.pulls == "changes":
        return needed_changes()(config)
    if not config.cache_bytes:
        return KeptRows()
    wanted = f"cache_bytes {config.cache_bytes}: nothing here keeps rows"
    return CACHES.needed(wanted, "0")(config)


def needed_changes() -> KeepingRows:
    """The way of pulling changes; ConfigError where none is installed."""
    return CHANGES.needed("pulls changes: nothing here pulls changes", "pulls rows")


def kept_by_node(seed: int) -> list[KeptByNode]:
    """The server's side of a stream, of each way of keeping rows."""
    kinds = (CHANGES.first(), CACHES.first())
    return [kind.of_stream(seed) for kind in kinds if kind is not None]


def answering(kept: Sequence[KeptByNode], message: Message, ids: Asked) -> Answering | None:
    """What answers a pull of a node that says what it keeps; None: it keeps nothing."""
    for rows in kept:
        if rows.header in message.header:
            return rows.asked(message, ids)
    return None
