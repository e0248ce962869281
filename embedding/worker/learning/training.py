"""What policies and splits change in a learner: how it trains, and when it pushes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from embedding.exchange.payload import WindowUse, WordContexts
from embedding.exchange.protocol import SharedTables
from embedding.kernel.records import IntArray, Table, TokenBlock
from embedding.kernel.registry import NoTraits, Registry
from embedding.models.base import BlockLoss, Trainer
from embedding.models.config import ModelConfig
from embedding.worker.learning.combining import Steps, steps_of
from embedding.worker.learning.link import LearnerLink
from embedding.worker.learning.nodeclock import LearnerSetup
from embedding.worker.learning.planning import BlockPlan, CodedText
from embedding.worker.learning.replaying import Replaying
from embedding.worker.learning.ticks import Prepared, StepResult, Trained
from embedding.worker.learning.wordtables import WordTables
from embedding.worker.usage.usage import Rows, UsageReader
from embedding.worker.words.rarewords import RareContexts, RareWords, RowCounts


class Observer:
    """Of one learner; each part is None where the server does not ask for it.

    usage  remembers text, and reads it again when a window closes
    """

    def __init__(self, rare: RareWords | None, usage: UsageReader | None) -> None:
        self.usage = usage
        self._rare = rare

    def sight(
        self, blocks: Sequence[TokenBlock], planned: BlockPlan, rows: Callable[[], RowCounts]
    ) -> Sequence[RareContexts]:
        """What the blocks say of words that were read only a few times.

        rows  the words of the tick by local row; asked for where it is needed alone
        """
        return () if self._rare is None else self._rare.sight(blocks, planned.block, rows())

    def rare_contexts(self, prepared: Prepared) -> WordContexts | None:
        return None if self._rare is None else self._rare.learn_all(prepared.sightings)

    def remember(self, prepared: Prepared, words: WordTables) -> None:
        """Fresh text, until the windows that it is compared with are over."""
        if self.usage is None:
            return
        if prepared.blocks:
            self.usage.keep(prepared.blocks, prepared.tables)
        if (order := prepared.order) is not None and order.ended is not None:
            self.usage.begin(order.ended, words.lexicon)

    def close(self, prepared: Prepared, words: WordTables, rows: Rows) -> tuple[WindowUse, ...]:
        """How words were used in a window that is over, and before it."""
        usage, close = self.usage, prepared.close
        if usage is None or close is None:
            return ()
        if usage.peers is not None:
            words.refresh()
            usage.wait(close.window, words.lexicon)
            words.refresh()  # what all nodes counted has words that this one has not heard of
        return (usage.close(close.window, words.lexicon, rows, close.inherited),)


@dataclass(frozen=True)
class LearnerParts:
    """What training and pushing have to do with.

    words     rows, counts and noise distribution of the words
    past      what of the past is learnt again
    observer  what is reported of words beside their rows
    """

    setup: LearnerSetup
    trainer: Trainer
    link: LearnerLink
    words: WordTables
    past: Replaying
    observer: Observer

    @property
    def pooled(self) -> int:
        return self.link.turn.pooled

    def steps(self, prepared: Prepared, loss: BlockLoss) -> dict[Table, Steps]:
        """How much each row of a tick was trained, for `combining.share`; none: all is added."""
        model, scale = self.setup.model, prepared.rate * self.setup.config.curvature
        if self.pooled <= 1 or not scale:
            return {}
        return steps_of(prepared.planned.block, loss, model, scale, prepared.usual)

    def closed(self, prepared: Prepared, clock: int) -> tuple[WindowUse, ...]:
        """How words were used in a window that is over, and before it."""
        vectors = partial(self.link.vectors, clock)
        return self.observer.close(prepared, self.words, vectors)


class RowPlan(Protocol):
    """Which rows a tick needs, and where they lie (WordTables, where each tick has its own)."""

    def plan(self, parts: Sequence[CodedText], noise: IntArray) -> BlockPlan:
        """Which rows a tick needs, and its tokens in them."""

    def rows(self, planned: BlockPlan) -> RowCounts:
        """The words of a tick by local row."""


class Delivery(Protocol):
    """Pushes what was learnt, now or when the policy wants it."""

    @property
    def pending(self) -> bool:
        """Whether something was learnt that is not pushed."""

    @property
    def keeps_rows(self) -> bool:
        """Whether rows are kept from block to block, so that they are pulled when they are due."""

    def push(self, trained: Trained) -> StepResult:
        """Push a tick, or keep it for a later push."""

    def flush(self) -> tuple[str, ...]:
        """Push what is kept for a later push; the keys of its documents."""

    def restart(self, clock: int, sequence: int) -> None:
        """Give up what was not pushed, and go on from where the server stands."""


@dataclass(frozen=True)
class BlockTraining:
    """How blocks are learnt, as policy and split want it.

    train        trains on the rows of a tick; YeoronError when the loss is not finite or explodes
    delivery     pushes what was learnt
    rows         None: each tick has rows of its own
    sees_itself  what a block moved is in the rows of the next one before it is pushed
    """

    train: Callable[[Prepared], Trained]
    delivery: Delivery
    rows: RowPlan | None = None
    sees_itself: bool = False


MakeTraining = Callable[[LearnerParts], BlockTraining]
"""A kind of learner: `copies.each_block`, those of `TRAININGS` and `IN_PLACE`, that of columns."""

TRAININGS: Registry[MakeTraining, NoTraits] = Registry(
    "way of training", "yeoron.trainings", "embedding.worker.learning", "TRAININGS"
)
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
    "way of training in place", "yeoron.in_place", "embedding.worker.learning", "IN_PLACE"
)
"""A node whose server shares its tables takes the first; the core has none."""


def in_place() -> type[TrainingInPlace]:
    """The way of training in place; ConfigError where none is installed."""
    return IN_PLACE.needed("policy with tables in shared memory: nothing here trains on them")
