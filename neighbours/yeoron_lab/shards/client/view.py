"""What a node keeps of the rows of all shards together."""

from __future__ import annotations

from typing import Any

from embedding.exchange.compression.sending import Sending
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.ownrows import OwnRows
from embedding.exchange.protocol import Push
from embedding.kernel.records import IntArray
from yeoron_lab.shards.client.split import split_push


class ShardedView(OwnRows):
    """The rows of all shards together; of the server itself, which has none, nothing is kept.

    Each shard has marks, clocks and an incarnation of its own; a shard that starts again changes
    nothing of what is kept of the others. What compression keeps back is one store for all.

    parts  those of each shard
    """

    def __init__(self, config: ExchangeConfig, feedback: Sending) -> None:
        super().__init__(config, feedback)
        self.parts: list[OwnRows] = []

    def attach(self, shards: int) -> list[OwnRows]:
        """Begin with so many shards; each may take its part of `cache_bytes`."""
        memory = self.config.cache_bytes
        share = {"cache_bytes": max(1, memory // shards) if memory else 0}
        self.parts = [
            OwnRows(self.config.model_copy(update=share), self.feedback) for _ in range(shards)
        ]
        self.feedback.shards = shards
        return self.parts

    @property
    def keeps(self) -> bool:
        return any(part.keeps for part in self.parts)

    def taken(self, push: Push) -> None:
        """The primary and every shard have taken this push."""
        if push.keeps:
            for part, own in zip(self.parts, split_push(push, len(self.parts)), strict=True):
                part.taken(own)

    def refused(self) -> None:
        """The primary refused a push that shards have taken: what they keep is not this."""
        for part in self.parts:
            if part.kept is not None:
                part.kept.refused()

    def alive(self, ids: IntArray) -> None:
        self.feedback.keep(ids)
        for part in self.parts:
            if part.kept is not None:
                part.kept.alive(ids)

    def figures(self) -> dict[str, dict[str, Any]]:
        found = super().figures()
        for part in self.parts:
            for name, value in part.figures()["cache"].items():
                if name != "kind":
                    found["cache"][name] += value
        return found
