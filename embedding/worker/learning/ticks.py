"""One tick of a node on its way: prepared, trained, learnt."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from embedding.exchange.payload import (
    BlockCounts,
    ContextSums,
    CountGroup,
    HandIn,
    Inherited,
    RowDelta,
    ShardBlock,
    WindowUse,
    WordContexts,
    summed,
)
from embedding.exchange.protocol import Ack, PulledRows, Push, nothing_read
from embedding.kernel.errors import YeoronError
from embedding.kernel.records import (
    Calendar,
    FloatArray,
    IntArray,
    ScorePairs,
    TimeArray,
    TokenBlock,
)
from embedding.models.base import BlockLoss
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.worker.corpus.corpus import Offset
from embedding.worker.corpus.counting import source_progress
from embedding.worker.learning.combining import Usual
from embedding.worker.learning.convergence import Order
from embedding.worker.learning.heldout import HeldPairs
from embedding.worker.learning.planning import BlockPlan
from embedding.worker.learning.rehearsal import Rehearsed
from embedding.worker.words.rarewords import RareContexts

EXPLODED = 20.0
"""A mean loss so many times that of an untrained model means that training has diverged."""


@dataclass(frozen=True)
class Close:
    """A window is over and learnt: read how its words were used.

    window     its start (Unix seconds)
    inherited  text of dead processes that this one speaks for
    """

    window: int
    inherited: tuple[Inherited, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """A block with its rows, ready to train on.

    sentences  which sentences of the replay memory the block holds
    sightings  what the block says of words that were read only a few times
    rows  None when they are better pulled after the push before this one: `train` does
    usual  how frequent its words are in everybody's text; None when the node learns alone
    tables  for each block int64 [W], the row id of each of its words
    close  the window that is read again, where the tick learns nothing
    fresh  tokens of the plan that are fresh; those behind them are replayed
    read   fresh tokens that have a row, also those that are held out of training
    order  what was asked for where the tick is a rehearsal; held: by which it is measured; decay:
           by which part of itself each row shrinks
    """

    blocks: Sequence[TokenBlock]
    counts: BlockCounts
    planned: BlockPlan
    scores: Sequence[ScorePairs]
    sentences: Rehearsed
    sightings: Sequence[RareContexts]
    rows: PulledRows | None
    seed: int
    rate: float
    usual: Usual | None = None
    tables: Sequence[IntArray] = ()
    close: Close | None = None
    fresh: int = 0
    read: int = 0
    order: Order | None = None
    held: HeldPairs | None = None
    decay: float = 0.0

    @property
    def known(self) -> tuple[int, int]:
        """Tokens that have a row: fresh ones, replayed ones."""
        return self.read, int((self.planned.block.tokens[self.fresh :] >= 0).sum())


@dataclass(frozen=True)
class Trained:
    """What training a block changed, on rows as they were at `clock`.

    rare   what stood around words that were read only a few times
    minibatches  the block as it was learnt on shards that hold columns; then there are no deltas
    uses   how words were used, of each window that was closed
    held_loss  of a rehearsal: loss of held-out pairs before it trained
    """

    prepared: Prepared
    clock: int
    deltas: tuple[RowDelta, ...]
    loss: BlockLoss
    rare: WordContexts | None = None
    minibatches: ShardBlock | None = None
    uses: tuple[WindowUse, ...] = ()
    held_loss: float | None = None


@dataclass(frozen=True)
class StepResult:
    """What one tick learnt: fresh tokens, trained tokens (with replay), loss.

    keys      documents that the server has now: they may be acknowledged
    progress  share of the reading that is done, 0 for a stream
    ack       what the server said; None when the tick is kept for a later push
    order     what was ordered, where the tick was a rehearsal
    held_loss  loss of held-out pairs before it trained; None: not measured
    close     the window that was read again, where the tick was that
    """

    keys: tuple[str, ...]
    fresh_tokens: int
    trained_tokens: int
    loss_sum: float
    pairs: int
    progress: float
    ack: Ack | None
    order: Order | None = None
    held_loss: float | None = None
    close: Close | None = None

    @classmethod
    def of(cls, trained: Trained, keys: tuple[str, ...], ack: Ack | None) -> StepResult:
        """A tick that was trained, with the keys of all that was pushed."""
        prepared, loss = trained.prepared, trained.loss
        return cls(
            keys=keys,
            fresh_tokens=sum(block.n_tokens for block in prepared.blocks),
            trained_tokens=int((prepared.planned.block.tokens >= 0).sum()),
            loss_sum=loss.loss_sum,
            pairs=loss.pairs,
            progress=reading(prepared.blocks),
            ack=ack,
            order=prepared.order,
            held_loss=trained.held_loss,
            close=prepared.close,
        )


def check_loss(node: str, model: ModelConfig, loss: BlockLoss) -> None:
    """YeoronError when a block's loss is not finite or explodes."""
    if not math.isfinite(loss.loss_sum) or loss.mean > EXPLODED * model.untrained_loss:
        raise YeoronError(
            f"{node}: the loss is {loss.mean:.3g} nats a pair, so training has diverged; "
            f"set a smaller model.learning_rate (it is {model.learning_rate})."
        )


def reading(blocks: Sequence[TokenBlock]) -> float:
    """How much of the reading is done, 0 for a stream without an end."""
    known = [block.progress for block in blocks if not math.isnan(block.progress)]
    return max(known, default=0.0)


def progress(
    blocks: Sequence[TokenBlock], schedule: LearningRateSchedule, calendar: Calendar
) -> float:
    """What a learning rate falls with, 0 to 1: the reading, or how much of its window has passed.

    That is the mean over the tick's tokens, of a window each in that of its own text: a corpus
    that is learnt in one tick is learnt at the mean rate.
    """
    if schedule is not LearningRateSchedule.WINDOW:
        return _middle(blocks)
    if not (tokens := sum(block.n_tokens for block in blocks)):
        return 0.0
    passed = 0.0
    for block in blocks:
        if len(block.published):
            lengths = np.diff(block.sentences[block.documents])
            passed += float(lengths @ _passed(block, calendar))
    return passed / tokens


def pacing(
    blocks: Sequence[TokenBlock], model: ModelConfig, calendar: Calendar
) -> FloatArray | None:
    """float32 [m]: by which factor the rate of each sentence of a tick differs from the tick's own.

    A window may be a few ticks, or one, and its rate falls within them. None where all are
    learnt at one rate: no window is followed, or the model weighs no sentence.
    """
    if (
        not blocks
        or model.schedule is not LearningRateSchedule.WINDOW
        or not model.traits.weighs_sentences
    ):
        return None
    whole = model.rate(progress(blocks, model.schedule, calendar))
    each = [np.ones(0, dtype=np.float64)]
    for block in blocks:
        if len(block.published):
            # Within a window the rate falls in a straight line (`ModelConfig.rate`).
            shares = np.clip(_passed(block, calendar), 0.0, 1.0)
            first, last = model.rate(0.0), model.rate(1.0)
            rates = first + (last - first) * shares
            each.append(np.repeat(rates / whole, np.diff(block.documents)))
    return np.concatenate(each).astype(np.float32)


def _middle(blocks: Sequence[TokenBlock]) -> float:
    """How much of the reading is done in the middle of a tick; at its end where no offset is known.

    As many tokens as were read before the tick make up as much of what is done with it.
    """
    done = reading(blocks)
    read = max((Offset.of(block.offset).tokens for block in blocks), default=0)
    tokens = sum(block.n_tokens for block in blocks)
    return done * max(0.0, 1.0 - tokens / (2 * read)) if read else done


def _passed(block: TokenBlock, calendar: Calendar) -> TimeArray:
    """Share of its window, 0 to 1, that has passed at each document: by its text, where that is
    known, or by its time."""
    if len(block.passed):
        return block.passed
    moments = block.published
    starts, own = np.unique(calendar.starts(moments), return_inverse=True)
    ends = np.array([calendar.window(start).end.timestamp() for start in starts.tolist()])
    shares: TimeArray = (moments - starts[own]) / (ends - starts)[own]
    return shares


def hash_seed(seed: int, node: str, sequence: int) -> int:
    """A seed of its own for every node and block, the same in every run."""
    mixed = np.random.SeedSequence([seed, *node.encode(), sequence]).generate_state(1, np.uint64)
    return int(mixed[0] >> np.uint64(1))


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
            progress=source_progress(blocks, calendar, time.time()),
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
