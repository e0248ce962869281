"""A compression: a twentieth of the entries, whatever the settings say."""

from __future__ import annotations

from embedding.exchange.compression.traits import COMPRESSIONS, CompressionTraits
from embedding.exchange.config import ExchangeConfig
from yeoron_lab.topk import TopK


@COMPRESSIONS.register("outside-topk", CompressionTraits())
class Twentieth(TopK):
    kind = "outside-topk"

    @classmethod
    def of(cls, config: ExchangeConfig) -> Twentieth:
        return cls(0.05)
