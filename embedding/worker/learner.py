"""One tick of a node: score fresh documents, train on them and on replayed ones, push the delta.

A tick has three steps, so that the next block can be prepared while the present one is trained:
`prepare` (code the words, pull their rows), `train` (no network), `push`. The order is what the
numbers rest on: the server scores pairs of the fresh documents on its tables before it has seen
the push that learns them (prequential evaluation, Dawid 1984).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from embedding.exchange.compression.halves import widen
from embedding.exchange.pace import EVERY_BLOCK
from embedding.exchange.payload import RowDelta, Surroundings, WindowUse
from embedding.exchange.protocol import Ack, Rows
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
from embedding.worker.authors import Authors
from embedding.worker.batch import BatchWork
from embedding.worker.combining import Steps, Usual, share, steps_of
from embedding.worker.config import NodeConfig
from embedding.worker.convergence import Order
from embedding.worker.counting import count_words
from embedding.worker.deltas import moved, with_own
from embedding.worker.grams import WordGrams
from embedding.worker.heldout import HeldOut, HeldPairs
from embedding.worker.lexicon import Lexicon
from embedding.worker.line import Server
from embedding.worker.mixing import Mixing
from embedding.worker.noise import NoiseWords
from embedding.worker.outstanding import Outstanding
from embedding.worker.planning import Part, Plan, plan
from embedding.worker.rehearsal import Rehearsal, Rehearsed, replay_ratio
from embedding.worker.scoring import PairSampler
from embedding.worker.stopwatch import Stopwatch
from embedding.worker.ticks import (
    Close,
    Learnt,
    Prepared,
    Trained,
    check_loss,
    hash_seed,
    pacing,
    progress,
)
from embedding.worker.usage import UsageReader
from embedding.worker.work import Work
from embedding.worker.young import RowCounts, Sightings, YoungWords

Rowed = dict[Table, FloatArray]


class Learner:
    """Turns token blocks into pushes; owns the lexicon, the replay memory and the node's clock.

    One thread may prepare a block while another trains and pushes the one before it.
    """

    def __init__(
        self,
        server: Server,
        trainer: Trainer,
        replay: ReplayMemory | None,
        *,
        node: str,
        model: ModelConfig,
        config: NodeConfig,
        unit: WindowUnit,
    ) -> None:
        self.server = server
        self.trainer = trainer
        self.mixing = Mixing(config.source_weights)
        self.rehearsal = None if replay is None else Rehearsal(replay, self.mixing)
        self.held_out: HeldOut | None = None
        self._place = ""
        self.node = node
        self.model = model
        self.config = config
        self.unit = unit
        self.lexicon = Lexicon()
        self.grams = WordGrams(model.gram_rows, self.lexicon) if model.gram_rows else None
        self.young: YoungWords | None = None
        self.outstanding: Outstanding | None = None
        self.usage: UsageReader | None = None
        self.clock = 0
        self.sequence = 0
        self.active = 1
        self.pace = EVERY_BLOCK
        self.stopwatch = Stopwatch()
        self.sent_as: npt.DTypeLike = np.float32
        self.min_count = 1
        self._at = 0
        self._sampler = PairSampler(model.window, config.score_pairs, model.negative)
        self._noise = NoiseWords(model)
        self._authors = Authors()
        self._prepared = 0
        self._refreshed = 0
        self._counted = 0.0
        self._offers_all = False
        self._readers = 1
        self._stale = False
        self._sent: tuple[int, Trained] | None = None
        self.batch: BatchWork | None = None
        self.learning_rate = model.learning_rate
        self._reading = threading.RLock()

    def learn(self, blocks: Sequence[TokenBlock]) -> Learnt:
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
        when  now: nothing is outstanding. The tick before this one is being trained and not pushed
              yet: ahead pulls before that push, whose delta `train` adds to the rows, so that a
              node always sees what it learnt itself; late leaves the pull to `train`.
        """
        with self._reading:
            fresh = self._code(blocks)
            self._prepared += 1
            seed = hash_seed(self.model.seed, self.node, self._prepared)
            learnt = self._held_out_of(fresh, seed)
            held = None if order is None else self._held_pairs()
            parts, sentences = (
                self._rehearse(blocks, learnt) if order is None else self._recall(order, held)
            )
            decay = self._decay(order)
            noise = self._draw(parts, seed) if parts else np.empty(0, dtype=np.int64)
            scores = self._sampler.of_blocks(blocks, fresh, noise, self.unit, seed)
            # GloVe learns counted cells: it scores with noise words but does not train on them.
            pool = noise if self.model.traits.draws_noise else noise[:0]
            sentences = sentences.paced(
                pacing(blocks, self.model, self.unit), sum(len(p.sentences) - 1 for p in parts)
            )
            planned = sentences.into(self._plan(parts, pool))
        # The block before this one may have to pull yet: count on from the clock it was given.
        self._at = self.clock - 1 if when == "now" else self._at
        at = self._at + 1
        rows = None
        if when != "late":
            pull = self._pull if when == "now" else self._pull_ahead
            rows = pull(planned, scores, at)
        self._at = max(self._at, at)
        counts = count_words(blocks, [part.table for part in fresh], self.unit, self._authors)
        return Prepared(
            blocks=blocks,
            counts=counts,
            planned=planned,
            scores=scores,
            sentences=sentences,
            sightings=self._sight(blocks, planned),
            rows=rows,
            seed=seed,
            rate=self._rate(blocks, order),
            usual=self._usual(planned) if self.pooled > 1 else None,
            tables=[part.table for part in fresh],
            close=close,
            fresh=sum(len(part.codes) for part in fresh),
            read=sum(int((part.table >= 0)[part.codes].sum()) for part in fresh),
            order=order,
            held=held,
            decay=decay,
        )

    def portion(self, ids: IntArray, sentences: CodeArray, seed: int) -> Plan:
        """Remembered text, row ids int64 [n], with noise words of its own; any thread."""
        with self._reading:
            part = Part.of_ids(ids, sentences)
            part = replace(part, table=self.lexicon.known(part.table))
            return self._plan([part], self._draw([part], seed))

    def train(self, prepared: Prepared) -> Trained:
        """Train on local copies of the rows; what they moved by, as it travels.

        Raises YeoronError when the loss is not finite or explodes.
        """
        planned, self.learning_rate = prepared.planned, prepared.rate
        self._remember(prepared)
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
        young = self._surroundings(prepared)
        deltas = self._deltas(prepared, base, local, loss)
        return Trained(prepared, clock, deltas, loss, young, held_loss=held_loss)

    def push(self, trained: Trained) -> Learnt:
        """Push what was learnt and let the clock go on."""
        work = Work.of(trained)
        ack = self._deliver(work, trained.clock, trained.deltas)
        self._sent = (self.sequence, trained)
        self._rehearsed(trained)
        return Learnt.of(trained, work.keys, ack)

    def _deliver(self, work: Work, clock: int, deltas: tuple[RowDelta, ...]) -> Ack:
        """Send a push of rows as they were at `clock`, and follow what the server answers."""
        push = work.push(self.node, self.sequence + 1, clock, deltas, self.unit)
        # What is learnt again is read nowhere: the reader goes on where it was.
        self._place = push.place or self._place
        push = replace(push, place=self._place)
        if self.outstanding is not None:
            push = replace(push, place=self.outstanding.place(work.keys))
        ack = self.server.push(replace(push, busy_s=self.stopwatch.busy()))
        self.stopwatch.start()
        self.sequence += 1
        if self.outstanding is not None:
            self.outstanding.pushed(self.sequence, work.keys)
        self.clock, self.active, self.pace = ack.clock, ack.active, ack.pace
        return ack

    def _rehearsed(self, trained: Trained) -> None:
        """The replay memory hears of the losses."""
        if self.rehearsal is not None:
            self.rehearsal.learnt(trained.prepared.sentences, trained.loss)

    def begin(
        self, clock: int, sequence: int, min_count: int, young_mentions: int = 0, place: str = ""
    ) -> None:
        """Begin where the server stands, behind push `sequence` of an earlier process."""
        self._place = place
        self.young = YoungWords.of(self.model, young_mentions)
        self.clock, self.sequence, self.min_count = clock, sequence, min_count
        self._prepared = self._refreshed = sequence
        # What an earlier process heard is forgotten; the server has counted it.
        self._offers_all = sequence > 0

    def restart(self, clock: int, sequence: int) -> None:
        """Go on from where the server stands, after it refused a push or lost its state."""
        self.clock = clock
        self.sequence = sequence
        self._at = clock - 1
        self._sent = None
        self.forget_words()

    def forget_words(self) -> None:
        """Read the whole vocabulary again before the next block."""
        self._stale = True

    def _code(self, blocks: Sequence[TokenBlock]) -> list[Part]:
        """The blocks in row ids; words that the server admits now are among them."""
        # One that is away for a moment has heard its part, too.
        self._readers = max(self._readers, self.active)
        self.lexicon.least = 1.0 if self._offers_all else self.min_count / self._readers
        self._refresh()
        tables = self.lexicon.encode(blocks, self.server)
        if self.grams is not None:
            self.grams.read(blocks, tables)
        return [
            Part(table, block.codes, block.sentences)
            for table, block in zip(tables, blocks, strict=True)
        ]

    def _plan(self, parts: Sequence[Part], noise: IntArray) -> Plan:
        """Which rows a tick needs, and its tokens in them."""
        planned = plan(parts, noise, self.lexicon, self._keep)
        return planned if self.grams is None else self.grams.into(planned)

    def _refresh(self) -> None:
        """Look at the server's vocabulary and counts now and then.

        Every `vocabulary_blocks` blocks, and sooner while the counts grow quickly.
        """
        grown = float(self.lexicon.counts.sum()) > 1.25 * self._counted
        due = self._prepared - self._refreshed >= self.config.vocabulary_blocks
        if self._noise.table is None or due or grown or self._stale:
            whole, self._stale = self._stale, False
            self.lexicon.refresh(self.server, whole=whole)
            if self.grams is not None:
                self.grams.refreshed(whole=whole)
            self._counted = float(self.lexicon.counts.sum())
            self._refreshed = self._prepared

    def _draw(self, parts: Sequence[Part], seed: int) -> IntArray:
        """Noise words for a block of these parts, int64 ids with repetition."""
        tokens = sum(len(part.codes) for part in parts)
        return self._noise.draw(tokens, seed, self.lexicon, [part.table for part in parts])

    def _rehearse(
        self, blocks: Sequence[TokenBlock], fresh: list[Part]
    ) -> tuple[list[Part], Rehearsed]:
        """The fresh sentences, which are remembered, and sentences of the past to train on too."""
        rounds = self.batch is not None and self.pace.batch_tokens > 0
        if self.rehearsal is None and self.batch is not None and rounds:
            self.rehearsal = Rehearsal(self.batch.memory(), self.mixing)
        if self.rehearsal is None:
            return fresh, Rehearsed(weights=self.mixing.fresh(blocks))
        # The past is learnt in rounds of L-BFGS, or along with what is fresh.
        ratio = 0.0 if rounds else replay_ratio(self.config, float(self.lexicon.counts.sum()))
        wanted = int(sum(len(part.codes) for part in fresh) * ratio)
        past, held = self.rehearsal.draw(blocks, fresh, wanted)
        return [*fresh, *(replace(p, table=self.lexicon.known(p.table)) for p in past)], held

    def _recall(self, order: Order, held: HeldPairs | None) -> tuple[list[Part], Rehearsed]:
        """Sentences of the past to learn again, and the words by which the tick is measured."""
        if self.rehearsal is None:
            return [], Rehearsed()
        past, sentences = self.rehearsal.draw_again(order.tokens)
        parts = [replace(part, table=self.lexicon.known(part.table)) for part in past]
        if held is None:
            return parts, sentences
        # A sentence of one word trains nothing; its rows are there.
        ids = held.ids
        parts.append(Part.of_ids(ids, np.arange(len(ids) + 1, dtype=np.int32)))
        return parts, sentences.longer(len(ids))

    def _decay(self, order: Order | None) -> float:
        """By which part of itself a row of this tick shrinks (weight decay).

        Told when the tick is prepared: by the time it is trained the next may have been read.
        """
        if order is None or self.rehearsal is None:
            return 0.0
        held = max(self.rehearsal.tokens * max(self.active, 1), 1)
        return order.decay * order.rate * min(1.0, order.tokens / held)

    def _held_out_of(self, fresh: list[Part], seed: int) -> list[Part]:
        """The fresh text without the sentences that are held out of training."""
        if self.held_out is None or not fresh:
            return fresh
        some = partial(self._noise.some, seed=seed, lexicon=self.lexicon)
        return self.held_out.take(fresh, self._keep, some)

    def _held_pairs(self) -> HeldPairs | None:
        if self.held_out is None:
            return None
        return self.held_out.pairs(self.lexicon.known, self.lexicon.ids)

    def _rate(self, blocks: Sequence[TokenBlock], order: Order | None) -> float:
        if order is not None:
            return order.rate * self.model.learning_rate
        return self.model.rate(progress(blocks, self.model.schedule, self.unit))

    def _sight(self, blocks: Sequence[TokenBlock], planned: Plan) -> Sequence[Sightings]:
        """What the blocks say of words that were read only a few times."""
        if self.young is None:
            return ()
        return self.young.sight(blocks, planned.block, self._rowed(planned))

    def _rowed(self, planned: Plan) -> RowCounts:
        """The words of a tick by local row."""
        counts = self.lexicon.counts
        return RowCounts(planned.words, counts[self.lexicon.places(planned.words)], counts)

    def _usual(self, planned: Plan) -> Usual | None:
        counts, places = self.lexicon.counts, self.lexicon.places(planned.contexts)
        return Usual.of(counts, places, self.model.noise_exponent, self._noise.table)

    def _surroundings(self, prepared: Prepared) -> Surroundings | None:
        """What stood around young words."""
        return None if self.young is None else self.young.learn_all(prepared.sightings)

    def _remember(self, prepared: Prepared) -> None:
        """Fresh text, until the windows that it is compared with are over."""
        if self.usage is not None and prepared.blocks:
            self.usage.keep(prepared.blocks, prepared.tables)

    def _closed(self, prepared: Prepared, clock: int) -> tuple[WindowUse, ...]:
        """How words were used in a window that is over, and before it."""
        if self.usage is None or prepared.close is None:
            return ()
        rows = partial(self._vectors, clock)
        return (self.usage.close(prepared.close.window, self.lexicon, rows),)

    def _vectors(self, clock: int, ids: IntArray) -> FloatArray:
        """Rows float32 [n, dim] of `in` as they are now."""
        return widen(self.server.pull(ids, ids[:0], clock=clock).vectors)

    def _keep(self, words: IntArray) -> FloatArray:
        return self.lexicon.keep(words, self.model.sample)

    def _pull_ahead(self, planned: Plan, scores: Sequence[ScorePairs], clock: int) -> Rows | None:
        """Pull at the next clock, while the last push is outstanding; None when it must wait."""
        try:
            return self._pull(planned, scores, clock)
        except AheadError:
            return None

    def _pull(
        self, planned: Plan, scores: Sequence[ScorePairs] = (), clock: int | None = None
    ) -> Rows:
        """Pull the block's rows; every source's pairs are scored on the tables as they are now."""
        return self._ask(planned.rows(), scores, self.clock if clock is None else clock)

    def _ask(self, ids: Mapping[Table, IntArray], scores: Sequence[ScorePairs], clock: int) -> Rows:
        asked = (ids[Table.IN], ids[Table.OUT])
        pull = partial(
            self.server.pull, *asked, clock=clock, score=scores, grams=ids.get(Table.SUB)
        )
        rows = self._answered(pull)
        self._at = max(self._at, rows.clock)  # others go on while this node has nothing to learn
        return rows

    def _answered(self, pull: Callable[[], Rows]) -> Rows:
        rows, before = (pull(), 0.0) if self.batch is None else self.batch.pulled(pull, self)
        self.stopwatch.held(rows, before)
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

    @property
    def pooled(self) -> int:
        """Nodes whose deltas are added up; each pushes a share."""
        return self.pace.pooled or self.active

    def _steps(self, prepared: Prepared, loss: BlockLoss) -> dict[Table, Steps]:
        """How much each row of a tick was trained, for `combining.share`; none: all is added."""
        block, scale = prepared.planned.block, prepared.rate * self.config.curvature
        alone = self.pooled <= 1 or not scale
        return {} if alone else steps_of(block, loss, self.model, scale, prepared.usual)

    def _unseen(self, rows: Rows) -> dict[Table, RowDelta]:
        """The node's last delta, unless it is in these rows."""
        if self._sent is None or rows.sequence >= self._sent[0]:
            return {}
        return {delta.table: delta for delta in self._sent[1].deltas}
