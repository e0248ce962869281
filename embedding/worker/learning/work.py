"""What one push brings: everything that was learnt since the push before it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from embedding.exchange.payload import (
    BlockCounts,
    ContextSums,
    CountGroup,
    HandIn,
    RowDelta,
    WindowUse,
    WordContexts,
    summed,
)
from embedding.exchange.protocol import Push, nothing_read
from embedding.exchange.shards.columns import ShardBlock
from embedding.kernel.records import Calendar, TokenBlock
from embedding.worker.corpus.counting import progress
from embedding.worker.learning.ticks import Trained


@dataclass(frozen=True)
class Work:
    """Blocks learnt, with what was counted in them.

    tokens    fresh tokens that have a row
    replayed  tokens that were learnt again
    loss_sum  nats over `pairs` pairs
    rare      what stood around words that were read only a few times
    minibatches  one tick as it was learnt on shards that hold columns
    uses      how words were used, of each window that was closed
    portion   first parts of that, which travel alone
    """

    blocks: tuple[TokenBlock, ...]
    counts: BlockCounts
    tokens: int
    loss_sum: float
    pairs: int
    rare: WordContexts | None = None
    minibatches: ShardBlock | None = None
    uses: tuple[WindowUse, ...] = ()
    replayed: int = 0
    portion: tuple[ContextSums, ...] = ()

    @classmethod
    def of(cls, trained: Trained) -> Work:
        """One tick."""
        prepared, loss = trained.prepared, trained.loss
        tokens, replayed = prepared.known
        return cls(
            tuple(prepared.blocks),
            prepared.counts,
            tokens,
            loss.loss_sum,
            loss.pairs,
            trained.rare,
            trained.minibatches,
            trained.uses,
            replayed,
        )

    def then(self, other: Work) -> Work:
        """Both, in this order."""
        return Work(
            self.blocks + other.blocks,
            joined([self.counts, other.counts]),
            self.tokens + other.tokens,
            self.loss_sum + other.loss_sum,
            self.pairs + other.pairs,
            summed([part for part in (self.rare, other.rare) if part is not None]),
            uses=self.uses + other.uses,
            replayed=self.replayed + other.replayed,
        )

    def in_portions(self, most_bytes: int) -> list[Work]:
        """This work, behind those parts of its uses that it would be too large with."""
        size, parts, portions = 0, list[ContextSums](), list[Work]()
        uses = []
        for use in self.uses:
            for part in (piece for whole in use.sums for piece in _pieces(whole, most_bytes)):
                if parts and size + part.nbytes > most_bytes:
                    portions.append(replace(_NOTHING, portion=tuple(parts)))
                    size, parts = 0, []
                parts.append(part)
                size += part.nbytes
            uses.append(replace(use, sums=()))
        return [*portions, replace(self, uses=tuple(uses), portion=tuple(parts))]

    def push(
        self,
        node: str,
        sequence: int,
        clock: int,
        deltas: tuple[RowDelta, ...],
        calendar: Calendar,
        first: int,
        life: str,
    ) -> Push:
        """As it travels, learnt now on rows as they were at `clock`.

        first  number of the push with the first portion of its uses; life: mark of the process
        """
        blocks = self.blocks
        return Push(
            node=node,
            sequence=sequence,
            clock=clock,
            deltas=deltas,
            counts=self.counts,
            progress=progress(blocks, calendar, time.time()),
            tokens=self.tokens,
            loss_sum=self.loss_sum,
            pairs=self.pairs,
            tokenizer_digest=blocks[0].tokenizer_digest if blocks else "",
            offset=blocks[-1].offset if blocks else "",
            rare=self.rare,
            minibatches=self.minibatches,
            usage=self.portion,
            shifts=tuple(part for use in self.uses for part in use.shifts),
            hand_ins=tuple(HandIn(use.window, first, use.inherited) for use in self.uses),
            life=life,
            replayed=self.replayed,
            phrases=tuple(phrase for block in blocks for phrase in block.phrases),
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """Of every document."""
        return tuple(key for block in self.blocks for key in block.keys)


_NOTHING = Work((), nothing_read(), 0, 0.0, 0)


def _pieces(part: ContextSums, most_bytes: int) -> Iterator[ContextSums]:
    step = max(1, most_bytes * len(part.ids) // max(1, part.nbytes))
    for at in range(0, max(1, len(part.ids)), step):
        own = slice(at, at + step)
        yield replace(part, ids=part.ids[own], sums=part.sums[own], documents=part.documents[own])


def joined(parts: Sequence[BlockCounts]) -> BlockCounts:
    """Counts of several ticks, group after group."""
    groups: list[CountGroup] = []
    words: list[str] = []
    rows = 0
    for part in parts:
        groups += [CountGroup(g.source, g.window, g.stop + rows) for g in part.groups]
        words += part.words
        rows += len(part.ids)
    return BlockCounts(
        tuple(groups),
        np.concatenate([part.ids for part in parts]),
        words,
        *map(np.concatenate, zip(*(part.columns for part in parts), strict=True)),
    )
