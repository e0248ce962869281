"""One tick of a node: score fresh documents, train on them and on replayed ones, push the delta.

A tick has three steps, so that the next block can be prepared while the present one is trained:
`prepare` (code the words, pull their rows), `train` (no network), `push`. The order is what the
numbers rest on: the server scores pairs of the fresh documents on its tables before it has seen
the push that learns them (prequential evaluation, Dawid 1984).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from embedding.exchange.protocol import Welcome
from embedding.exchange.transport import Transport
from embedding.kernel.errors import AheadError
from embedding.kernel.records import TokenBlock
from embedding.models.base import Trainer
from embedding.stream.replay import ReplayMemory
from embedding.worker.corpus.authors import Authors
from embedding.worker.corpus.counting import count_words
from embedding.worker.crawling.unacknowledged import Unacknowledged
from embedding.worker.learning.convergence import Order
from embedding.worker.learning.heldout import HeldOut
from embedding.worker.learning.link import LearnerLink, LearnerSetup, NodeClock, PushStopwatch
from embedding.worker.learning.rehearsal import NodeRounds, Replaying
from embedding.worker.learning.scoring import PairSampler
from embedding.worker.learning.ticks import Close, Tick, hash_seed, pacing, progress
from embedding.worker.learning.training import MakeTraining, Training
from embedding.worker.learning.wordtables import WordTables
from embedding.worker.usage.usage import UsageReader
from embedding.worker.words.lexicon import NodeLexicon
from embedding.worker.words.rarewords import RareContexts, RareWords


class Learner:
    """Turns token blocks into pushes.

    One thread may prepare a block while another trains and pushes the one before it.

    welcome   as the server greeted it; None: as one that begins with nothing
    lexicon   what it knows of words already, and who listens to them; None: one that is empty
    held_out  sentences by which rehearsals are measured
    rounds    the node's part in rounds of all nodes
    usage     reads how words were used when a window closes
    unacknowledged  documents that the frontier has not marked as done
    kind      how it trains and when it pushes, as policy and split want it

    words   rows, counts and noise distribution of the words
    past    what of the past is learnt again
    turn    where the node stands with the server
    link    pulls and pushes
    """

    def __init__(
        self,
        server: Transport,
        trainer: Trainer,
        memory: ReplayMemory | None,
        setup: LearnerSetup,
        *,
        welcome: Welcome | None = None,
        lexicon: NodeLexicon | None = None,
        held_out: HeldOut | None = None,
        rounds: NodeRounds | None = None,
        usage: UsageReader | None = None,
        unacknowledged: Unacknowledged | None = None,
        stopwatch: PushStopwatch | None = None,
        kind: MakeTraining = Training,
    ) -> None:
        welcome, model, config = welcome or Welcome(), setup.model, setup.config
        self.setup, self.usage = setup, usage
        lexicon = NodeLexicon() if lexicon is None else lexicon
        every = config.vocabulary_blocks
        self.words = WordTables(server, lexicon, model, every=every, welcome=welcome)
        self.turn = NodeClock(welcome, unacknowledged, stopwatch)
        rate = model.learning_rate
        self.past = Replaying(config, self.words, self.turn, rate, memory, held_out, rounds)
        self.link = LearnerLink(server, setup, self.turn, self.past.pulled)
        self._rare = RareWords.of(model, welcome.rare_mentions)
        self.training = kind(
            setup=setup,
            trainer=trainer,
            link=self.link,
            words=self.words,
            past=self.past,
            rare=self._rare,
            usage=usage,
        )
        self._sampler = PairSampler(model.window, config.score_pairs, model.negative)
        self._authors = Authors()
        self._prepared = welcome.sequence

    @property
    def lexicon(self) -> NodeLexicon:
        """The words that have a row."""
        return self.words.lexicon

    def learn(self, blocks: Sequence[TokenBlock]) -> Tick:
        """Learn from `blocks` (each of one source); one push, one tick of the clock."""
        tick = self.prepare(blocks)
        self.training.train(tick)
        self.training.push(tick)
        return tick

    def prepare(
        self,
        blocks: Sequence[TokenBlock],
        *,
        when: Literal["now", "ahead", "late"] = "now",
        order: Order | None = None,
        close: Close | None = None,
    ) -> Tick:
        """Code the words of a tick, have fresh pairs scored and pull the rows.

        order  what to learn again from memory, where there are no blocks: a rehearsal
        close  the window to read again, where there is nothing to learn
        when  now: every earlier push was answered. Otherwise the tick before this one is being
              trained and not pushed yet: ahead pulls before that push, whose delta `train` adds
              to the rows, so that a node always sees what it learnt itself; late leaves the pull
              to `train`.
        """
        if self.training.keeps_rows:
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
            planned = sentences.into(self.training.plan(parts, pool))
        # The block before this one may have to pull yet: count on from the clock it was given.
        at = self.turn.next(alone=when == "now")
        rows = None
        if when != "late":
            try:
                rows = self.link.pull(planned.rows(), scores, at)
            except AheadError:  # it must wait for the push before it: `train` pulls
                if when == "now":
                    raise
        self.turn.prepared(at)
        counts = count_words(blocks, [part.table for part in fresh], calendar, self._authors)
        if order is None:
            rate = model.rate(progress(blocks, model.schedule, calendar))
        else:
            rate = order.rate * model.learning_rate
        sightings: Sequence[RareContexts] = ()
        if self._rare is not None:
            counted = self.training.row_counts(planned)
            sightings = self._rare.sight(blocks, planned.block, counted)
        return Tick(
            blocks=blocks,
            counts=counts,
            planned=planned,
            scores=scores,
            sentences=sentences,
            sightings=sightings,
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
        if self.usage is not None:
            with self.words.reading:
                self.words.refresh()
                tables = [self.lexicon.rows(block.words) for block in blocks]
            self.usage.keep(blocks, tables)
