"""What compressors declare of themselves, and the registry of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedding.kernel.registry import Need, Registry

if TYPE_CHECKING:
    from embedding.exchange.compression.base import Compressor, Whole


@dataclass(frozen=True, kw_only=True)
class CompressionTraits:
    """What a way of writing deltas does; what needs a trait refuses one that lacks it."""

    whole: bool = False
    """Every entry of a row is sent as it is, in the type that `Whole` names, and nothing is kept
    back for later pushes. Without it deltas are packed (`Compressor`) with error feedback."""

    def contradiction(self) -> str:
        return ""


COMPRESSIONS: Registry[type[Compressor] | type[Whole], CompressionTraits] = Registry(
    "compression",
    "yeoron.compressions",
    dict.fromkeys(("fp16", "none"), "embedding.exchange.compression.base"),
    lab=True,
)
"""All compressors: those built in, and those of other packages."""

COLUMN_COMPRESSION = Need(
    "split columns", COMPRESSIONS, "whole", "no row travels that could be packed"
)
