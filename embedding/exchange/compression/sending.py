"""How the pushes of a node are written: whole, or by a compressor that leaves something out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from embedding.exchange.compression.base import Whole
from embedding.exchange.compression.traits import COMPRESSIONS
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.kernel.registry import NoTraits, Registry


class Sending:
    """Turns the pushes of one node into what is sent; here whole, so that nothing is left.

    Not thread-safe.

    shards  on how many the rows lie: what is packed for each is packed on its own
    dtype   of the entries of what is sent whole
    leaves  whether something of a push is sent with later ones
    """

    leaves = False

    def __init__(self, whole: type[Whole]) -> None:
        self.shards = 1
        self._whole, self.dtype = whole, whole.dtype

    @property
    def nbytes(self) -> int:
        """Memory of what is left."""
        return 0

    @property
    def rows(self) -> int:
        """Rows of which something was not sent yet."""
        return 0

    def encode(self, push: Push, *, rest: bool = False) -> Push:
        """The push as it is sent, and sent again; RefusedError when training has diverged.

        rest  it is of what `rest` gave: all of it is sent, and the reader goes on where it did
              after the last one
        """
        del rest
        entries = sum(delta.values.size for delta in push.deltas)
        as_sent = tuple(map(self._whole.write, push.deltas))
        return replace(push, deltas=as_sent, entries=entries)

    def undo(self, sent: Push) -> None:
        """The server refused this push, the last one: nothing of it was taken."""

    def add_to(self, table: Table, ids: IntArray, values: FloatArray, sequence: int) -> None:
        """Add to rows float32 [n, dim] what they lack of what this node learnt up to `sequence`."""

    def keep(self, alive: IntArray) -> None:
        """Words with a row, increasing: what is held of others will never be asked for."""

    def rest(self, most_bytes: int) -> RowDelta | None:
        """Take out what was left of some rows, to be pushed; at most so many bytes. None: nothing
        is left."""
        del most_bytes
        return None


FEEDBACKS: Registry[Callable[[ExchangeConfig], Sending], NoTraits] = Registry(
    "way of keeping what compression leaves out", "yeoron.feedbacks"
)
"""A node whose compression leaves something out takes the first; the core has none."""


def sending(config: ExchangeConfig) -> Sending:
    """As the settings say; ConfigError where nothing keeps what a compressor leaves out."""
    kind = COMPRESSIONS.get(config.compression)
    if issubclass(kind, Whole):
        return Sending(kind)
    wanted = f"compression {config.compression}: nothing here keeps what it leaves out"
    whole = " or ".join(COMPRESSIONS.having("whole"))
    return FEEDBACKS.needed(wanted, f"compression {whole}")(config)
