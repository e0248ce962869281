"""One tick of a node: score fresh documents, train on them and on replayed ones, push the delta.

A tick has three steps, so that the next block can be prepared while the present one is trained:
`prepare` (code the words, pull their rows), `train` (no network), `push`. The order is what the
numbers rest on: the server scores pairs of the fresh documents on its tables before it has seen
the push that learns them (prequential evaluation, Dawid 1984).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from embedding.exchange.transport import Transport
from embedding.kernel.records import (
    TokenBlock,
)
from embedding.models.base import Trainer
from embedding.stream.replay import ReplayMemory
from embedding.worker.corpus.authors import Authors
from embedding.worker.corpus.counting import count_words
from embedding.worker.crawling.unacknowledged import Unacknowledged
from embedding.worker.learning.convergence import Order
from embedding.worker.learning.copies import each_block
from embedding.worker.learning.heldout import HeldOut
from embedding.worker.learning.link import LearnerLink
from embedding.worker.learning.nodeclock import LearnerSetup, NodeClock, PushStopwatch, Start
from embedding.worker.learning.replaying import NodeRounds, Replaying
from embedding.worker.learning.scoring import PairSampler
from embedding.worker.learning.ticks import (
    Close,
    Prepared,
    StepResult,
    Trained,
    hash_seed,
    pacing,
    progress,
)
from embedding.worker.learning.training import LearnerParts, MakeTraining, Observer, RowPlan
from embedding.worker.learning.wordtables import WordTables
from embedding.worker.usage.usage import UsageReader
from embedding.worker.words.lexicon import NodeLexicon
from embedding.worker.words.rarewords import RareWords


@dataclass(frozen=True)
class Extras:
    """What a learner has beside a model, its words and a replay memory; each part may be absent.

    lexicon      what it knows of words already, and who listens to them; None: one that is empty
    held_out     sentences by which rehearsals are measured
    rounds       the node's part in rounds of all nodes
    usage        reads how words were used when a window closes
    unacknowledged  documents that the frontier has not marked as done
    stopwatch    None: one of its own
    """

    lexicon: NodeLexicon | None = None
    held_out: HeldOut | None = None
    rounds: NodeRounds | None = None
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
    link    pulls and pushes
    kind    how it trains and when it pushes, as policy and split want it
    """

    def __init__(
        self,
        server: Transport,
        trainer: Trainer,
        memory: ReplayMemory | None,
        setup: LearnerSetup,
        *,
        start: Start | None = None,
        extras: Extras | None = None,
        kind: MakeTraining = each_block,
    ) -> None:
        start, extras = start or Start(), extras or Extras()
        model, config = setup.model, setup.config
        self.setup = setup
        lexicon = NodeLexicon() if extras.lexicon is None else extras.lexicon
        self.words = WordTables(server, lexicon, model, every=config.vocabulary_blocks, start=start)
        self.turn = NodeClock(start, extras.unacknowledged, extras.stopwatch)
        self.past = Replaying(
            config,
            self.words,
            self.turn,
            model.learning_rate,
            memory,
            extras.held_out,
            extras.rounds,
        )
        self.observer = Observer(RareWords.of(model, start.rare_mentions), extras.usage)
        self.link = LearnerLink(server, setup, self.turn, self.past)
        self._training = kind(
            LearnerParts(setup, trainer, self.link, self.words, self.past, self.observer)
        )
        self._rows: RowPlan = self._training.rows or self.words
        self._sampler = PairSampler(model.window, config.score_pairs, model.negative)
        self._authors = Authors()
        self._prepared = start.sequence

    @property
    def lexicon(self) -> NodeLexicon:
        """The words that have a row."""
        return self.words.lexicon

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
        if self._training.delivery.keeps_rows:
            when = "late"  # rows that are kept are looked at when the block is trained
        model, calendar = self.setup.model, self.setup.calendar
        with self.words.reading:
            fresh = self.words.code(blocks, self.turn.active)
            self._prepared += 1
            seed = hash_seed(model.seed, self.setup.node, self._prepared)
            held = None if order is None else self.past.held_pairs()
            if order is None:
                parts, sentences = self.past.fresh(blocks, fresh, seed)
            else:
                parts, sentences = self.past.again(order, held)
            decay = self.past.decay(order)
            noise = self.words.noise(parts, seed)
            scores = self._sampler.of_blocks(blocks, fresh, noise, calendar, seed)
            # GloVe learns counted cells: it scores with noise words but does not train on them.
            pool = noise if model.traits.draws_noise else noise[:0]
            sentences = sentences.paced(
                pacing(blocks, model, calendar),
                sum(len(p.sentences) - 1 for p in parts),
            )
            planned = sentences.into(self._rows.plan(parts, pool))
        # The block before this one may have to pull yet: count on from the clock it was given.
        at = self.turn.next(alone=when == "now")
        rows = None
        if when != "late":
            pull = self.link.pull if when == "now" else self.link.pull_ahead
            rows = pull(planned, scores, at)
        self.turn.prepared(at)
        counts = count_words(blocks, [part.table for part in fresh], calendar, self._authors)
        if order is None:
            rate = model.rate(progress(blocks, model.schedule, calendar))
        else:
            rate = order.rate * model.learning_rate
        return Prepared(
            blocks=blocks,
            counts=counts,
            planned=planned,
            scores=scores,
            sentences=sentences,
            sightings=self.observer.sight(blocks, planned, partial(self._rows.rows, planned)),
            rows=rows,
            seed=seed,
            rate=rate,
            usual=self.words.usual(planned) if self.turn.pooled > 1 else None,
            tables=[part.table for part in fresh],
            close=close,
            fresh=sum(len(part.codes) for part in fresh),
            read=sum(int((part.table >= 0)[part.codes].sum()) for part in fresh),
            order=order,
            held=held,
            decay=decay,
        )

    def remember_again(self, blocks: Sequence[TokenBlock]) -> None:
        """Remember text that a dead process had learnt; nothing is learnt of it."""
        if self.observer.usage is not None:
            with self.words.reading:
                self.words.refresh()
                tables = [self.lexicon.rows(block.words) for block in blocks]
            self.observer.usage.keep(blocks, tables)

    def train(self, prepared: Prepared) -> Trained:
        """Train on the rows; YeoronError when the loss is not finite or explodes."""
        return self._training.train(prepared)

    def push(self, trained: Trained) -> StepResult:
        """Push what was learnt, or keep it for a later push, and let the clock go on."""
        return self._training.delivery.push(trained)

    def flush(self) -> tuple[str, ...]:
        """Push what is kept though it is not due; the keys of its documents. Any thread may."""
        return self._training.delivery.flush()

    @property
    def pending(self) -> bool:
        """Whether something was learnt that is not pushed."""
        return self._training.delivery.pending

    @property
    def keeps_rows(self) -> bool:
        """Whether rows are kept from block to block, so that they are pulled when they are due."""
        return self._training.delivery.keeps_rows

    @property
    def sees_itself(self) -> bool:
        """Whether what a block moved is in the rows of the next one before it is pushed."""
        return self._training.sees_itself

    def restart(self, clock: int, sequence: int) -> None:
        """Go on from where the server stands; what was not pushed is given up."""
        self._training.delivery.restart(clock, sequence)
