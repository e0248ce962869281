"""One tick of a node: score fresh documents, train on them and on replayed ones, push the delta.

A tick has three steps, so that the next block can be prepared while the present one is trained:
`prepare` (code the words, pull their rows), `train` (no network), `push`. The order is what the
numbers rest on: the server scores pairs of the fresh documents on its tables before it has seen
the push that learns them (prequential evaluation, Dawid 1984).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from embedding.exchange.protocol import Welcome
from embedding.exchange.transport import Transport
from embedding.kernel.errors import AheadError
from embedding.kernel.records import Calendar, CodeArray, IntArray, ScorePairs, TokenBlock
from embedding.models.base import Trainer
from embedding.stream.replay import ReplayMemory
from embedding.worker.corpus.authors import Authors
from embedding.worker.corpus.counting import count_words
from embedding.worker.crawling.unacknowledged import Unacknowledged
from embedding.worker.learning.convergence import Order
from embedding.worker.learning.heldout import HeldOut
from embedding.worker.learning.link import LearnerLink, LearnerSetup, NodeClock, PushStopwatch
from embedding.worker.learning.planning import CodedText
from embedding.worker.learning.rehearsal import NodeRounds, Replaying
from embedding.worker.learning.ticks import Close, Tick, hash_seed, pacing, progress
from embedding.worker.learning.training import MakeTraining, Training
from embedding.worker.learning.wordtables import WordTables
from embedding.worker.usage.usage import UsageReader
from embedding.worker.words.lexicon import NodeLexicon
from embedding.worker.words.rarewords import RareWords

_MOST = 2048
"""Pairs of one tick: so many say what the mean loss is, and each takes rows from the server."""


@dataclass(frozen=True)
class PairSampler:
    """Draws the pairs of documents that the server scores before they are learnt from.

    Evenly from each document, so that a long one does not drown the others.

    window    words on each side that count as context
    pairs     pairs drawn from each document at most
    negative  noise words for each pair
    most      pairs drawn in a tick, shared by blocks as they hold documents; where there are more
              documents than that, from some of them
    """

    window: int
    pairs: int
    negative: int
    most: int = _MOST

    def of_blocks(
        self,
        blocks: Sequence[TokenBlock],
        coded: Sequence[CodedText],
        noise: IntArray,
        calendar: Calendar,
        seed: int,
    ) -> list[ScorePairs]:
        """Pairs of each block, of one source each, where it holds any."""
        rng = np.random.default_rng(seed)
        documents = sum(block.n_documents for block in blocks)
        drawn = [
            self.sample(
                block.source,
                part.ids,
                part.sentences,
                block.documents,
                calendar.starts(block.published),
                noise,
                rng,
                max(1, self.most * block.n_documents // max(documents, 1)),
            )
            for block, part in zip(blocks, coded, strict=True)
        ]
        return [pairs for pairs in drawn if pairs is not None]

    def sample(
        self,
        source: str,
        ids: IntArray,
        sentences: CodeArray,
        documents: CodeArray,
        windows: IntArray,
        noise: IntArray,
        rng: np.random.Generator,
        most: int | None = None,
    ) -> ScorePairs | None:
        """Pairs of one source's documents; None when no document holds a pair.

        ids        int64 [n], row id of each token, -1 for unknown words
        sentences  int32 [m + 1] token offsets; documents int32 [d + 1] sentence offsets
        windows    int64 [d], start (Unix seconds) of the window that each document belongs to
        noise      int64 [p], row ids drawn from the noise distribution
        most       pairs, at most; None: those of a whole tick
        """
        most = self.most if most is None else most
        if not len(noise) or not len(ids):
            return None
        starts = sentences[documents[:-1]].astype(np.int64)
        lengths = sentences[documents[1:]].astype(np.int64) - starts
        read = np.flatnonzero(lengths > 1)
        if not len(read):
            return None
        per_document = max(1, min(self.pairs, most // len(read)))
        if len(read) > most:
            read = np.sort(rng.choice(read, most, replace=False))
        # Half of the draws fall on unknown words or sentence borders; draw twice and cut.
        owner = np.repeat(read, 2 * per_document)
        centre = starts[owner] + (rng.random(len(owner)) * lengths[owner]).astype(np.int64)
        reach = rng.integers(1, self.window + 1, len(owner))
        other = centre + np.where(rng.random(len(owner)) < 0.5, -reach, reach)
        inside = (other >= 0) & (other < len(ids))
        other = np.where(inside, other, centre)
        sentence = np.searchsorted(sentences, centre, side="right")
        inside &= np.searchsorted(sentences, other, side="right") == sentence
        inside &= (ids[centre] >= 0) & (ids[other] >= 0)
        # At most so many of the good draws of each document; draws are sorted by document.
        good = np.flatnonzero(inside)
        before = np.arange(len(good)) - np.searchsorted(owner[good], owner[good], side="left")
        chosen = good[before < per_document]
        if not len(chosen):
            return None
        negatives = noise[rng.integers(0, len(noise), (len(chosen), self.negative))]
        return ScorePairs(
            source=source,
            centres=ids[centre[chosen]],
            contexts=ids[other[chosen]],
            negatives=negatives,
            windows=windows[owner[chosen]],
        )


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
        tick = Tick(blocks, order, close)
        with self.words.reading:
            fresh = self.words.code(blocks, self.turn.active)
            tick.tables = [part.table for part in fresh]
            self._prepared += 1
            tick.seed = hash_seed(model.seed, self.setup.node, self._prepared)
            if order is None:
                parts, sentences = self.past.fresh(blocks, fresh, tick.seed)
            else:
                tick.held = self.past.held_pairs()
                parts, sentences = self.past.again(order, tick.held)
                tick.decay = self.past.decay(order)
            noise = self.words.noise(parts, tick.seed)
            tick.scores = self._sampler.of_blocks(blocks, fresh, noise, calendar, tick.seed)
            # GloVe learns counted cells: it scores with noise words but does not train on them.
            pool = noise if model.traits.draws_noise else noise[:0]
            tick.sentences = sentences.paced(
                pacing(blocks, model, calendar), sum(len(part.sentences) - 1 for part in parts)
            )
            tick.planned = tick.sentences.into(self.training.plan(parts, pool))
        # The block before this one may have to pull yet: count on from the clock it was given.
        clock = self.turn.next(alone=when == "now")
        if when != "late":
            try:
                tick.rows = self.link.pull(tick.planned.rows(), tick.scores, clock)
            except AheadError:  # it must wait for the push before it: `train` pulls
                if when == "now":
                    raise
        self.turn.prepared(clock)
        tick.counts = count_words(blocks, tick.tables, calendar, self._authors)
        tick.fresh = sum(len(part.codes) for part in fresh)
        tick.read = sum(int((part.table >= 0)[part.codes].sum()) for part in fresh)
        if order is None:
            tick.rate = model.rate(progress(blocks, model.schedule, calendar))
        else:
            tick.rate = order.rate * model.learning_rate
        if self._rare is not None:
            ids, counts = self.training.row_counts(tick.planned)
            tick.sightings = self._rare.sight(
                blocks, tick.planned.block, ids, counts, self.lexicon.counts
            )
        if self.turn.pooled > 1:
            tick.usual = self.words.usual(tick.planned)
        return tick

    def remember_again(self, blocks: Sequence[TokenBlock]) -> None:
        """Remember text that a dead process had learnt; nothing is learnt of it."""
        if self.usage is not None:
            with self.words.reading:
                self.words.refresh()
                tables = [self.lexicon.rows(block.words) for block in blocks]
            self.usage.keep(blocks, tables)
