"""One tick of a node: score fresh documents, train on them and on replayed ones, push the delta.

A tick has three steps, so that the next block can be prepared while the present one is trained:
`prepare` (code the words, pull their rows), `train` (no network), `push`. The order is what the
numbers rest on: the server scores pairs of the fresh documents on its tables before it has seen
the push that learns them (prequential evaluation, Dawid 1984).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from embedding.exchange.compression.halves import widen
from embedding.exchange.pace import Pace
from embedding.exchange.payload import RowDelta, WindowUse
from embedding.exchange.protocol import Ack, PulledRows, PullRequest
from embedding.exchange.transport import Transport
from embedding.kernel.errors import AheadError
from embedding.kernel.records import (
    CodeArray,
    FloatArray,
    IntArray,
    ScorePairs,
    Table,
    TokenBlock,
    WindowUnit,
)
from embedding.models.base import BlockLoss, Trainer
from embedding.models.config import ModelConfig
from embedding.stream.replay import ReplayMemory
from embedding.worker.config import NodeConfig
from embedding.worker.corpus.authors import Authors
from embedding.worker.corpus.counting import count_words
from embedding.worker.crawling.unacknowledged import Unacknowledged
from embedding.worker.learning.batch import BatchWork
from embedding.worker.learning.combining import Steps, share, steps_of
from embedding.worker.learning.convergence import Order
from embedding.worker.learning.deltas import moved, with_own
from embedding.worker.learning.heldout import HeldOut
from embedding.worker.learning.nodeclock import NodeClock, Start
from embedding.worker.learning.observing import Observer
from embedding.worker.learning.planning import BlockPlan, CodedText
from embedding.worker.learning.rehearsal import Rehearsal
from embedding.worker.learning.replaying import Replaying
from embedding.worker.learning.scoring import PairSampler
from embedding.worker.learning.stopwatch import PushStopwatch
from embedding.worker.learning.ticks import (
    Close,
    Prepared,
    StepResult,
    Trained,
    check_loss,
    hash_seed,
    pacing,
    progress,
)
from embedding.worker.learning.wordtables import WordTables
from embedding.worker.learning.work import Work
from embedding.worker.usage.usage import UsageReader
from embedding.worker.words.lexicon import NodeLexicon
from embedding.worker.words.rarewords import RareWords, RowCounts

Rowed = dict[Table, FloatArray]


@dataclass(frozen=True)
class Extras:
    """What a learner has beside a model, its words and a replay memory; each part may be absent.

    lexicon      what it knows of words already, and who listens to them; None: one that is empty
    held_out     sentences by which rehearsals are measured
    rounds       the node's part in rounds of L-BFGS
    usage        reads how words were used when a window closes
    unacknowledged  documents that the frontier has not marked as done
    stopwatch    None: one of its own
    """

    lexicon: NodeLexicon | None = None
    held_out: HeldOut | None = None
    rounds: BatchWork | None = None
    usage: UsageReader | None = None
    unacknowledged: Unacknowledged | None = None
    stopwatch: PushStopwatch | None = None


class Learner:
    """Turns token blocks into pushes.

    One thread may prepare a block while another trains and pushes the one before it.

    words   rows, counts and noise distribution of the words
    past    what of the past is learnt again
    observer  what is reported of words beside their rows
    turn    where the node stands with the server
    learning_rate  of the last block; sent_as  kind of numbers of the last rows
    """

    def __init__(
        self,
        server: Transport,
        trainer: Trainer,
        memory: ReplayMemory | None,
        *,
        node: str,
        model: ModelConfig,
        config: NodeConfig,
        unit: WindowUnit,
        start: Start | None = None,
        extras: Extras | None = None,
    ) -> None:
        start, extras = start or Start(), extras or Extras()
        self.server = server
        self.trainer = trainer
        self.node = node
        self.model = model
        self.config = config
        self.unit = unit
        lexicon = NodeLexicon() if extras.lexicon is None else extras.lexicon
        self.words = WordTables(server, lexicon, model, every=config.vocabulary_blocks, start=start)
        self.past = Replaying(config, self.words, memory, extras.held_out, extras.rounds)
        self.observer = Observer(RareWords.of(model, start.rare_mentions), extras.usage)
        self.turn = NodeClock(start, extras.unacknowledged, extras.stopwatch)
        self.learning_rate = model.learning_rate
        self.sent_as: npt.DTypeLike = np.float32
        self._sampler = PairSampler(model.window, config.score_pairs, model.negative)
        self._authors = Authors()
        self._prepared = start.sequence
        self._sent: tuple[int, Trained] | None = None
        self._reading = threading.RLock()

    @property
    def lexicon(self) -> NodeLexicon:
        """The words that have a row."""
        return self.words.lexicon

    @property
    def rehearsal(self) -> Rehearsal | None:
        """What it remembers; None while it remembers nothing."""
        return self.past.rehearsal

    @property
    def clock(self) -> int:
        """At which the next block is pulled."""
        return self.turn.clock

    @property
    def sequence(self) -> int:
        """Of the last push."""
        return self.turn.sequence

    @property
    def pace(self) -> Pace:
        """Of the policy."""
        return self.turn.pace

    @property
    def active(self) -> int:
        """Nodes that take part at the moment."""
        return self.turn.active

    @property
    def pooled(self) -> int:
        """Nodes whose deltas are added up; each pushes a share."""
        return self.turn.pooled

    def learn(self, blocks: Sequence[TokenBlock]) -> StepResult:
        """Learn from `blocks` (each of one source); one push, one tick of the clock."""
        return self.push(self.train(self.prepare(blocks)))

    def prepare(
        self,
        blocks: Sequence[TokenBlock],
        *,
        when: Literal["now", "ahead", "late"] = "now",
        order: Order | None = None,
        close: Close | None = None,
    ) -> Prepared:
        """Code the words of a tick, have fresh pairs scored and pull the rows.

        order  what to learn again from memory, where there are no blocks: a rehearsal
        close  the window to read again, where there is nothing to learn
        when  now: every earlier push was answered. Otherwise the tick before this one is being
              trained and not pushed yet: ahead pulls before that push, whose delta `train` adds
              to the rows, so that a node always sees what it learnt itself; late leaves the pull
              to `train`.
        """
        with self._reading:
            fresh = self.words.code(blocks, self.active)
            self._prepared += 1
            seed = hash_seed(self.model.seed, self.node, self._prepared)
            held = None if order is None else self.past.held_pairs()
            if order is None:
                rounds = self.pace.batch_tokens > 0
                parts, sentences = self.past.fresh(blocks, fresh, seed, rounds=rounds)
            else:
                parts, sentences = self.past.again(order, held)
            decay = self.past.decay(order, self.active)
            noise = self.words.noise(parts, seed)
            scores = self._sampler.of_blocks(blocks, fresh, noise, self.unit, seed)
            # GloVe learns counted cells: it scores with noise words but does not train on them.
            pool = noise if self.model.traits.draws_noise else noise[:0]
            sentences = sentences.paced(
                pacing(blocks, self.model, self.unit), sum(len(p.sentences) - 1 for p in parts)
            )
            planned = sentences.into(self._plan(parts, pool))
        # The block before this one may have to pull yet: count on from the clock it was given.
        at = self.turn.next(alone=when == "now")
        rows = None
        if when != "late":
            pull = self._pull if when == "now" else self._pull_ahead
            rows = pull(planned, scores, at)
        self.turn.prepared(at)
        counts = count_words(blocks, [part.table for part in fresh], self.unit, self._authors)
        return Prepared(
            blocks=blocks,
            counts=counts,
            planned=planned,
            scores=scores,
            sentences=sentences,
            sightings=self.observer.sight(blocks, planned, partial(self._rowed, planned)),
            rows=rows,
            seed=seed,
            rate=self._rate(blocks, order),
            usual=self.words.usual(planned) if self.pooled > 1 else None,
            tables=[part.table for part in fresh],
            close=close,
            fresh=sum(len(part.codes) for part in fresh),
            read=sum(int((part.table >= 0)[part.codes].sum()) for part in fresh),
            order=order,
            held=held,
            decay=decay,
        )

    def portion(self, ids: IntArray, sentences: CodeArray, seed: int) -> BlockPlan:
        """Remembered text, row ids int64 [n], with noise words of its own; any thread."""
        with self._reading:
            part = CodedText.of_ids(ids, sentences)
            part = self.words.known(part)
            return self._plan([part], self.words.noise([part], seed))

    def train(self, prepared: Prepared) -> Trained:
        """Train on local copies of the rows; what they moved by, as it travels.

        Raises YeoronError when the loss is not finite or explodes.
        """
        planned, self.learning_rate = prepared.planned, prepared.rate
        self.observer.remember(prepared)
        clock, base = self._rows(prepared)
        if not len(planned.words):
            uses = self._closed(prepared, clock)
            return Trained(prepared, clock, (), BlockLoss(0.0, 0), uses=uses)
        held = prepared.held
        held_loss = None if held is None else held.loss(planned.contexts, base)
        # The trainer wants n-gram rows behind the words' rows, in one array.
        inputs = np.concatenate([base[table] for table in base if table is not Table.OUT])
        n_words = len(planned.words)
        local = {Table.IN: inputs[:n_words], Table.OUT: base[Table.OUT].copy()}
        local[Table.SUB] = inputs[n_words:]
        loss = self.trainer.train(
            planned.block,
            inputs,
            local[Table.OUT],
            learning_rate=prepared.rate,
            seed=prepared.seed,
        )
        check_loss(self.node, self.model, loss)
        if prepared.decay:
            for values in local.values():
                values *= np.float32(1.0 - prepared.decay)
        rare = self.observer.surroundings(prepared)
        deltas = self._deltas(prepared, base, local, loss)
        return Trained(prepared, clock, deltas, loss, rare, held_loss=held_loss)

    def push(self, trained: Trained) -> StepResult:
        """Push what was learnt and let the clock go on."""
        work = Work.of(trained)
        ack = self._deliver(work, trained.clock, trained.deltas)
        self._sent = (self.sequence, trained)
        self._rehearsed(trained)
        return StepResult.of(trained, work.keys, ack)

    def _deliver(self, work: Work, clock: int, deltas: tuple[RowDelta, ...]) -> Ack:
        """Send a push of rows as they were at `clock`, and follow what the server answers."""
        push = work.push(self.node, self.sequence + 1, clock, deltas, self.unit)
        ack = self.server.push(self.turn.push(work, push))
        self.turn.pushed(work, ack)
        return ack

    def _rehearsed(self, trained: Trained) -> None:
        """The replay memory hears of the losses."""
        self.past.learnt(trained.prepared.sentences, trained.loss)

    def flush(self) -> tuple[str, ...]:
        """Push what is kept for a later push; the keys of its documents."""
        return ()

    @property
    def pending(self) -> bool:
        """Whether something was learnt that is not pushed."""
        return False

    @property
    def keeps_rows(self) -> bool:
        """Whether rows are kept from block to block, so that they are pulled when they are due."""
        return False

    @property
    def sees_itself(self) -> bool:
        """Whether what a block moved is in the rows of the next one before it is pushed."""
        return False

    def restart(self, clock: int, sequence: int) -> None:
        """Go on from where the server stands, after it refused a push or lost its state."""
        self.turn.restart(clock, sequence)
        self._sent = None
        self.words.forget()

    def _plan(self, parts: Sequence[CodedText], noise: IntArray) -> BlockPlan:
        """Which rows a tick needs, and its tokens in them."""
        return self.words.plan(parts, noise)

    def _rate(self, blocks: Sequence[TokenBlock], order: Order | None) -> float:
        if order is not None:
            return order.rate * self.model.learning_rate
        return self.model.rate(progress(blocks, self.model.schedule, self.unit))

    def _rowed(self, planned: BlockPlan) -> RowCounts:
        """The words of a tick by local row."""
        return self.words.rows(planned)

    def _closed(self, prepared: Prepared, clock: int) -> tuple[WindowUse, ...]:
        """How words were used in a window that is over, and before it."""
        return self.observer.close(prepared, self.lexicon, partial(self._vectors, clock))

    def _vectors(self, clock: int, ids: IntArray) -> FloatArray:
        """Rows float32 [n, dim] of `in` as they are now."""
        return widen(self.server.pull(PullRequest(ids, ids[:0], clock)).vectors)

    def _pull_ahead(
        self, planned: BlockPlan, scores: Sequence[ScorePairs], clock: int
    ) -> PulledRows | None:
        """Pull at the next clock, before the last push is answered; None when it must wait."""
        try:
            return self._pull(planned, scores, clock)
        except AheadError:
            return None

    def _pull(
        self, planned: BlockPlan, scores: Sequence[ScorePairs] = (), clock: int | None = None
    ) -> PulledRows:
        """Pull the block's rows; every source's pairs are scored on the tables as they are now."""
        return self._ask(planned.rows(), scores, self.clock if clock is None else clock)

    def _ask(
        self, ids: Mapping[Table, IntArray], scores: Sequence[ScorePairs], clock: int
    ) -> PulledRows:
        request = PullRequest(
            ids[Table.IN], ids[Table.OUT], clock, score=scores, grams=ids.get(Table.SUB)
        )
        rows = self._answered(partial(self.server.pull, request))
        self.turn.prepared(rows.clock)
        return rows

    def _answered(self, pull: Callable[[], PulledRows]) -> PulledRows:
        rows, before = self.past.pulled(pull, self)
        self.turn.stopwatch.held(rows, before)
        return rows

    def _rows(self, prepared: Prepared) -> tuple[int, Rowed]:
        """The clock of a tick's rows, and float32 copies of them to start from, by table."""
        rows = prepared.rows or self._pull(prepared.planned, prepared.scores)
        before, ids = self._unseen(rows), prepared.planned.rows()
        self.sent_as = rows.vectors.dtype
        return rows.clock, {
            table: with_own(values, ids[table], before.get(table))
            for table, values in rows.by_table().items()
        }

    def _deltas(
        self, prepared: Prepared, base: Rowed, local: Rowed, loss: BlockLoss
    ) -> tuple[RowDelta, ...]:
        """How far rows moved from `base` to `local`, in the share that this node pushes."""
        ids, steps, dtype = prepared.planned.rows(), self._steps(prepared, loss), self.sent_as
        shares = {table: share(each, self.pooled) for table, each in steps.items()}
        return tuple(
            RowDelta(table, ids[table], moved(local[table], start, shares.get(table), dtype))
            for table, start in base.items()
        )

    def _steps(self, prepared: Prepared, loss: BlockLoss) -> dict[Table, Steps]:
        """How much each row of a tick was trained, for `combining.share`; none: all is added."""
        block, scale = prepared.planned.block, prepared.rate * self.config.curvature
        alone = self.pooled <= 1 or not scale
        return {} if alone else steps_of(block, loss, self.model, scale, prepared.usual)

    def _unseen(self, rows: PulledRows) -> dict[Table, RowDelta]:
        """The node's last delta, unless it is in these rows."""
        if self._sent is None or rows.sequence >= self._sent[0]:
            return {}
        return {delta.table: delta for delta in self._sent[1].deltas}
