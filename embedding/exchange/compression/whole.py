"""Deltas that are sent as they are, entry by entry: float32, or float16 rounded to nearest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.compression.traits import COMPRESSIONS, CompressionTraits
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.kernel.records import HalfArray


class Whole(ABC):
    """A way of sending every entry of a delta."""

    dtype: ClassVar[Literal["float16", "float32"]]
    """The type of its entries on the wire."""

    @classmethod
    @abstractmethod
    def write(cls, delta: RowDelta) -> RowDelta:
        """The delta with entries of that type."""


@COMPRESSIONS.register("none", CompressionTraits(whole=True))
class Floats(Whole):
    """Every entry as float32; nothing is rounded."""

    dtype = "float32"

    @classmethod
    def write(cls, delta: RowDelta) -> RowDelta:
        """Widened where it is float16."""
        if delta.values.dtype == np.float32:
            return delta
        return replace(delta, values=widen(delta.values))


@COMPRESSIONS.register("fp16", CompressionTraits(whole=True))
class Halves(Whole):
    """Every entry as float16, rounded to nearest."""

    dtype = "float16"

    @classmethod
    def write(cls, delta: RowDelta) -> RowDelta:
        """Rounded where it is float32."""
        if delta.values.dtype == np.float16:
            return delta
        values: HalfArray = narrow(np.asarray(delta.values, dtype=np.float32))
        return replace(delta, values=values)


def entry_type(config: ExchangeConfig) -> Literal["float16", "float32"]:
    """How single numbers travel: float16 where deltas are sent so, else float32."""
    found = COMPRESSIONS.get(config.compression)
    return found.dtype if issubclass(found, Whole) else "float32"
