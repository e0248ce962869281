"""Compressing pushes: what every way of it does.

A compressor writes a delta in few bytes and says what it left out. What was left out is added to
the next delta of the same rows (error feedback, `sending.py`), so that over time the server gets
all that was learnt.

`COMPRESSIONS` (`traits.py`) knows them by name, and those that leave nothing out (`Whole`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.compression.traits import COMPRESSIONS, CompressionTraits
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import PackedDelta, RowDelta
from embedding.exchange.protocol import Push
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, IntArray, Table


class Compressor(ABC):
    """One way of writing a delta in few bytes."""

    kind: ClassVar[str]
    """Its name in ExchangeConfig.compression and on the wire."""

    @classmethod
    @abstractmethod
    def of(cls, config: ExchangeConfig) -> Compressor:
        """As the settings say."""

    @classmethod
    def finest(cls, config: ExchangeConfig) -> Compressor | None:
        """What writes, where a node ends, all that was kept back; None: it goes as float16."""
        del config
        return None

    @abstractmethod
    def pack(self, table: Table, ids: IntArray, values: FloatArray) -> PackedDelta:
        """Write values float32 [n, dim] of increasing ids int64 [n].

        What the receiver will lack is left in `values`, exactly: unpacked + left = given, to
        within the rounding of one float32 subtraction.
        """

    @classmethod
    @abstractmethod
    def unpack(cls, packed: PackedDelta) -> RowDelta:
        """Distinct ids and float32 values; RefusedError says what is malformed."""


class Whole:
    """A way of sending every entry of a delta, rounded to nearest where it has to be.

    dtype  of its entries on the wire
    """

    dtype: ClassVar[Literal["float16", "float32"]]

    @classmethod
    def write(cls, delta: RowDelta) -> RowDelta:
        """The delta with entries of that type."""
        if delta.values.dtype == cls.dtype:
            return delta
        if cls.dtype == "float32":
            return replace(delta, values=widen(delta.values))
        return replace(delta, values=narrow(np.asarray(delta.values, dtype=np.float32)))


@COMPRESSIONS.register("none", CompressionTraits(whole=True))
class Floats(Whole):
    """Every entry as float32."""

    dtype = "float32"


@COMPRESSIONS.register("fp16", CompressionTraits(whole=True))
class Halves(Whole):
    """Every entry as float16."""

    dtype = "float16"


def entry_type(config: ExchangeConfig) -> Literal["float16", "float32"]:
    """How single numbers travel: float16 where deltas are sent so, else float32."""
    kind = COMPRESSIONS.get(config.compression)
    return kind.dtype if issubclass(kind, Whole) else "float32"


def packing() -> tuple[str, ...]:
    """Names of the compressions that leave something out."""
    return COMPRESSIONS.having("whole", False)


def compressor(kind: str) -> type[Compressor]:
    """The compressor of that name; RefusedError when there is none."""
    known = COMPRESSIONS.get(kind) if kind in COMPRESSIONS else None
    if known is None or not issubclass(known, Compressor):
        raise RefusedError(
            f"push: rows are packed as {kind[:40]!r}; one of {', '.join(packing())} is accepted."
        )
    return known


def unpack(packed: PackedDelta, *, dim: int, most_bytes: int) -> RowDelta:
    """The delta that a node packed, checked; RefusedError says what is wrong with it.

    dim         columns of the tables
    most_bytes  memory that the rows may take when unpacked: few bytes can stand for many
    """
    where = f"push: packed rows of table {packed.table}"
    if packed.dim != dim:
        raise RefusedError(f"{where} have {packed.dim} columns; {dim} are accepted.")
    if not packed.entries <= packed.rows * dim:
        raise RefusedError(f"{where}: {packed.entries} entries do not fit in {packed.rows} rows.")
    if 4 * packed.rows * dim > most_bytes:
        raise RefusedError(
            f"{where} take {4 * packed.rows * dim} bytes unpacked; max_message_bytes of the "
            f"server allows {most_bytes}."
        )
    return compressor(packed.kind).unpack(packed)


def unpacked(push: Push) -> list[RowDelta]:
    """What the server adds for a push of one's own, at most two deltas a table."""
    return [*push.deltas, *(compressor(part.kind).unpack(part) for part in push.packed)]
