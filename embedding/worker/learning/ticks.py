"""One tick of a node on its way: prepared, trained, pushed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from embedding.exchange.payload import (
    BlockCounts,
    Inherited,
    RowDelta,
    ShardBlock,
    WindowUse,
    WordContexts,
)
from embedding.exchange.protocol import Ack, PulledRows
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
from embedding.worker.learning.combining import Usual
from embedding.worker.learning.convergence import Order
from embedding.worker.learning.heldout import HeldPairs
from embedding.worker.learning.planning import BlockPlan, Rehearsed
from embedding.worker.words.rarewords import RareContexts

EXPLODED = 20.0
"""A mean loss so many times that of an untrained model means that training has diverged."""
NOTHING_LEARNT = BlockLoss(0.0, 0)


@dataclass(frozen=True)
class Close:
    """A window is over and learnt: read how its words were used.

    window     its start (Unix seconds)
    inherited  text of dead processes that this one speaks for
    """

    window: int
    inherited: tuple[Inherited, ...] = ()


@dataclass
class Tick:
    """What a node learns at once, from plan to push. What a later step finds is empty before it.

    blocks  fresh ones; none where it is a rehearsal, or reads a window again
    order   what was asked for where it is a rehearsal
    close   the window that is read again, where nothing is learnt

    Prepared:
    tables  for each block int64 [W], the row id of each of its words
    sentences  which sentences of the replay memory the tick holds
    rows    None when they are better pulled after the push before this one: training does
    fresh   tokens of the plan that are fresh; those behind them are replayed
    read    fresh tokens that have a row, also those that are held out of training
    sightings  what the blocks say of words that were read only a few times
    usual   how frequent its words are in everybody's text; None when the node learns alone
    held    of a rehearsal: pairs by which it is measured; decay: by which part of itself each row
            shrinks

    Trained, on rows as they were at `clock`:
    rare    what stood around words that were read only a few times
    minibatches  the block as it was learnt on shards that hold columns; then there are no deltas
    uses    how words were used, of each window that was closed
    held_loss  of a rehearsal: loss of held-out pairs before it trained; None: not measured

    Pushed:
    keys    documents that the server has now: they may be acknowledged
    ack     None when the tick is kept for a later push
    """

    blocks: Sequence[TokenBlock]
    order: Order | None = None
    close: Close | None = None

    seed: int = 0
    rate: float = 0.0
    tables: Sequence[IntArray] = ()
    counts: BlockCounts = field(init=False)
    planned: BlockPlan = field(init=False)
    sentences: Rehearsed = field(default_factory=Rehearsed)
    scores: Sequence[ScorePairs] = ()
    rows: PulledRows | None = None
    fresh: int = 0
    read: int = 0
    sightings: Sequence[RareContexts] = ()
    usual: Usual | None = None
    held: HeldPairs | None = None
    decay: float = 0.0

    clock: int = 0
    deltas: tuple[RowDelta, ...] = ()
    loss: BlockLoss = NOTHING_LEARNT
    rare: WordContexts | None = None
    minibatches: ShardBlock | None = None
    uses: tuple[WindowUse, ...] = ()
    held_loss: float | None = None

    keys: tuple[str, ...] = ()
    ack: Ack | None = None

    @property
    def fresh_tokens(self) -> int:
        return sum(block.n_tokens for block in self.blocks)

    @property
    def trained_tokens(self) -> int:
        """With those that are replayed."""
        return int((self.planned.block.tokens >= 0).sum())

    @property
    def replayed_tokens(self) -> int:
        """Those that have a row."""
        return int((self.planned.block.tokens[self.fresh :] >= 0).sum())

    @property
    def progress(self) -> float:
        """Share of the reading that is done, 0 for a stream."""
        return reading(self.blocks)


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
    tokens = sum(block.n_tokens for block in blocks)
    if schedule is not LearningRateSchedule.WINDOW:
        # In the middle of the tick; at its end where no offset is known. As many tokens as were
        # read before it make up as much of what is done with it.
        done, read = reading(blocks), max((Offset.of(b.offset).tokens for b in blocks), default=0)
        return done * max(0.0, 1.0 - tokens / (2 * read)) if read else done
    if not tokens:
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
    factors = [np.ones(0, dtype=np.float64)]
    for block in blocks:
        if len(block.published):
            # Within a window the rate falls in a straight line (`ModelConfig.rate`).
            shares = np.clip(_passed(block, calendar), 0.0, 1.0)
            first, last = model.rate(0.0), model.rate(1.0)
            rates = first + (last - first) * shares
            factors.append(np.repeat(rates / whole, np.diff(block.documents)))
    return np.concatenate(factors).astype(np.float32)


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


def keys_of(ticks: Sequence[Tick]) -> tuple[str, ...]:
    """Of the documents of ticks."""
    return tuple(key for tick in ticks for block in tick.blocks for key in block.keys)
