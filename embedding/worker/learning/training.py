"""How a learner trains a tick, and when it pushes: what policies and splits change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import RowDelta, WindowUse, WordContexts
from embedding.exchange.protocol import PulledRows, SharedTables
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table, TimeArray
from embedding.kernel.registry import NoTraits, Registry
from embedding.models.base import Trainer
from embedding.models.config import ModelConfig
from embedding.models.jit import kernel
from embedding.worker.learning.combining import Steps, share, steps_of
from embedding.worker.learning.link import LearnerLink, LearnerSetup
from embedding.worker.learning.planning import BlockPlan, CodedText
from embedding.worker.learning.rehearsal import Replaying
from embedding.worker.learning.ticks import Tick, check_loss, keys_of
from embedding.worker.learning.wordtables import WordTables
from embedding.worker.usage.usage import Rows, UsageReader
from embedding.worker.words.rarewords import RareWords

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(24)


@kernel()
def _match(own: Any, ids: Any, slots: Any) -> Any:
    """Where each of `ids` lies in `own`, int32 [n], -1 where it does not.

    slots  int32 [a power of two, above len(own)], all -1: a hash table with linear probing
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(len(own)):
        at = (np.uint64(own[i]) * _GOLDEN) >> _HIGH & mask
        while slots[at] >= 0:
            at = at + np.uint64(1) & mask
        slots[at] = i
    matches = np.empty(len(ids), dtype=np.int32)
    for i in range(len(ids)):
        at = (np.uint64(ids[i]) * _GOLDEN) >> _HIGH & mask
        while slots[at] >= 0 and own[slots[at]] != ids[i]:
            at = at + np.uint64(1) & mask
        matches[i] = slots[at]
    return matches


@kernel()
def _add(rows: Any, at: Any, values: Any) -> None:
    """rows[i] += values[at[i]], wherever at[i] is not -1."""
    for i in range(len(rows)):
        if at[i] >= 0:
            for j in range(rows.shape[1]):
                rows[i, j] += values[at[i], j]


def with_own(pulled: FloatArray | HalfArray, ids: IntArray, own: RowDelta | None) -> FloatArray:
    """Pulled rows as float32 [n, dim] of their own, with a delta that they do not hold yet."""
    rows = widen(pulled)
    if own is None or not len(own.ids):
        return rows
    slots = np.full(1 << (2 * len(own.ids)).bit_length(), -1, dtype=np.int32)
    _add(rows, _match(own.ids, ids, slots), widen(own.values))
    return rows


def moved(
    after: FloatArray, before: FloatArray, shares: FloatArray | None, dtype: npt.DTypeLike
) -> FloatArray | HalfArray:
    """The shares of how far rows moved, in the type in which rows travel; uses `after` up."""
    after -= before
    if shares is not None:
        after *= shares[:, None]
    return narrow(after) if dtype == np.float16 else after


Rowed = dict[Table, FloatArray]


@dataclass(kw_only=True)
class Training:
    """Rows are pulled for each block, trained as copies, and what they moved by is pushed after it.

    Where a policy or a split wants another way, a subclass has it.

    words  rows, counts and noise distribution of the words
    past   what of the past is learnt again
    rare   reads what stands around rare words; None where the server does not ask for it
    usage  remembers text, and reads it again when a window closes; None likewise
    sees_itself  what a block moved is in the rows of the next one before it is pushed
    """

    setup: LearnerSetup
    trainer: Trainer
    link: LearnerLink
    words: WordTables
    past: Replaying
    rare: RareWords | None
    usage: UsageReader | None
    sees_itself: ClassVar[bool] = False

    @property
    def pending(self) -> bool:
        """Whether something was learnt that is not pushed."""
        return False

    @property
    def keeps_rows(self) -> bool:
        """Whether rows are kept from block to block, so that they are pulled when they are due."""
        return False

    def plan(self, parts: Sequence[CodedText], noise: IntArray) -> BlockPlan:
        """Which rows a tick needs, and its tokens in them."""
        return self.words.plan(parts, noise)

    def row_counts(self, planned: BlockPlan) -> tuple[IntArray, TimeArray]:
        """Ids and running counts of the words that may be in a tick, by local row."""
        lexicon = self.words.lexicon
        return planned.words, lexicon.counts[lexicon.places(planned.words)]

    def train(self, tick: Tick) -> None:
        """Train on local copies of the rows.

        Raises YeoronError when the loss is not finite or explodes.
        """
        self.past.learning_rate = tick.rate
        self.remember(tick)
        planned, base = tick.planned, self.copies(tick)
        n_words = len(planned.words)
        if not n_words:
            tick.uses = self.closed(tick, partial(self.link.vectors, tick.clock))
            return
        if tick.held is not None:
            tick.held_loss = tick.held.loss(planned.contexts, base)
        # The trainer wants n-gram rows behind the words' rows, in one array.
        inputs = np.concatenate([base[table] for table in base if table is not Table.OUT])
        local = {Table.IN: inputs[:n_words], Table.OUT: base[Table.OUT].copy()}
        local[Table.SUB] = inputs[n_words:]
        tick.loss = self.trainer.train(
            planned.block,
            inputs,
            local[Table.OUT],
            learning_rate=tick.rate,
            seed=tick.seed,
        )
        check_loss(self.setup.node, self.setup.model, tick.loss)
        if tick.decay:
            for values in local.values():
                values *= np.float32(1.0 - tick.decay)
        tick.rare = self.rare_contexts(tick)
        tick.deltas = self.deltas(tick, base, local)

    def pulled(self, tick: Tick) -> PulledRows:
        """The rows of a tick, pulled now where they were not before it."""
        if tick.rows is None:
            tick.rows = self.link.pull(tick.planned.rows(), tick.scores, self.link.turn.clock)
        tick.clock = tick.rows.clock
        return tick.rows

    def copies(self, tick: Tick) -> Rowed:
        """Float32 copies of a tick's rows, with the node's own last delta, by table."""
        rows = self.pulled(tick)
        before, ids = self.link.unseen(rows), tick.planned.rows()
        return {
            table: with_own(values, ids[table], before.get(table))
            for table, values in rows.rows.items()
        }

    def deltas(self, tick: Tick, base: Rowed, local: Rowed) -> tuple[RowDelta, ...]:
        """How far rows moved from `base` to `local`, in the share that this node pushes, as numbers
        of the kind that were pulled."""
        ids, sent_as = tick.planned.rows(), self.pulled(tick).rows[Table.IN].dtype
        pooled, steps = self.link.turn.pooled, self.steps(tick)
        shares = {table: share(each, pooled) for table, each in steps.items()}
        return tuple(
            RowDelta(table, ids[table], moved(local[table], start, shares.get(table), sent_as))
            for table, start in base.items()
        )

    def steps(self, tick: Tick) -> dict[Table, Steps]:
        """How much each row of a tick was trained, for `combining.share`; none: all is added."""
        model, scale = self.setup.model, tick.rate * self.setup.config.curvature
        if self.link.turn.pooled <= 1 or not scale:
            return {}
        return steps_of(tick.planned.block, tick.loss, model, scale, tick.usual)

    def rare_contexts(self, tick: Tick) -> WordContexts | None:
        return None if self.rare is None else self.rare.learn_all(tick.sightings)

    def remember(self, tick: Tick) -> None:
        """Fresh text, until the windows that it is compared with are over."""
        if self.usage is None:
            return
        if tick.blocks:
            self.usage.keep(tick.blocks, tick.tables)
        if tick.order is not None and tick.order.ended is not None:
            self.usage.begin(tick.order.ended, self.words.lexicon)

    def closed(self, tick: Tick, rows: Rows) -> tuple[WindowUse, ...]:
        """How words were used in a window that is over, and before it; rows: as they are now."""
        usage, close, lexicon = self.usage, tick.close, self.words.lexicon
        if usage is None or close is None:
            return ()
        if usage.peers is not None:
            self.words.refresh()
            usage.wait(close.window, lexicon)
            self.words.refresh()  # what all nodes counted has words that this one has not heard of
        return (usage.close(close.window, lexicon, rows, close.inherited),)

    def push(self, tick: Tick) -> None:
        """Push a tick, or keep it for a later push; the replay memory hears of the losses."""
        tick.ack = self.link.push([tick], tick.clock, tick.deltas)
        tick.keys = keys_of([tick])
        self.past.learnt(tick.sentences, tick.loss)

    def flush(self) -> tuple[str, ...]:
        """Push what is kept though it is not due; the keys of its documents. Any thread may."""
        return ()

    def restart(self, clock: int, sequence: int) -> None:
        """Give up what was not pushed, and go on from where the server stands, after it refused a
        push or lost its state."""
        self.link.restart(clock, sequence)
        self.words.forget()


MakeTraining = Callable[..., Training]
"""A kind of it, of the arguments of `Training`."""

TRAININGS: Registry[MakeTraining, NoTraits] = Registry("way of training", "yeoron.trainings")
"""Ways of training that follow every pace of a policy. A node takes the first; the core itself
trains and pushes each block."""


class TrainingInPlace(Protocol):
    """A way of training on the server's own tables, in memory that nodes share with it."""

    @staticmethod
    def check_model(config: ModelConfig) -> None:
        """ConfigError for a model that cannot be trained where the tables lie on a GPU."""

    @staticmethod
    def trainer(config: ModelConfig) -> Trainer:
        """What trains on tables on a GPU, compiled; ConfigError as `check_model`."""

    @staticmethod
    def training(shared: SharedTables, dim: int) -> MakeTraining:
        """On tables of `dim` columns; ConfigError where this host does not have them."""


IN_PLACE: Registry[type[TrainingInPlace], NoTraits] = Registry(
    "way of training in place", "yeoron.in_place"
)
"""A node whose server shares its tables takes the first; the core has none."""


def in_place() -> type[TrainingInPlace]:
    """The way of training in place; ConfigError where none is installed."""
    return IN_PLACE.needed("policy with tables in shared memory: nothing here trains on them")
