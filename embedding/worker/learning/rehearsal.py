"""The replay memory in a tick: what is drawn from it, and the losses that it takes afterwards.

One thread draws for the next tick while another reports on the last: a lock keeps them apart.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np

from embedding.exchange.protocol import Pace, PulledRows
from embedding.kernel.records import CodeArray, FloatArray, IntArray, TokenBlock
from embedding.kernel.registry import NoTraits, Registry
from embedding.models.base import BlockLoss, Track
from embedding.stream.replay import ReplayMemory
from embedding.stream.ring import Sample, of_sentences
from embedding.worker.config import NodeConfig
from embedding.worker.learning.convergence import Order
from embedding.worker.learning.heldout import HeldOut, HeldPairs
from embedding.worker.learning.link import NodeClock
from embedding.worker.learning.planning import BlockPlan, CodedText, Rehearsed
from embedding.worker.learning.wordtables import WordTables
from embedding.worker.words.latewords import LateWords


class Mixing:
    """The factor of each sentence's learning rate by its source.

    Weighing the loss of a group by a factor is the inner step of group DRO (Sagawa et al. 2020,
    algorithm 1); `trends/bias.py` proposes the factors.

    weights  factor by source; a source that is not named has 1. Without any nothing is weighed
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = dict(weights)
        self._firsts: list[int] = []
        self._sources: list[str] = []

    def fresh(self, blocks: Sequence[TokenBlock]) -> FloatArray | None:
        """float32 [m]: the factor of each sentence of blocks; None when nothing is weighed."""
        if not self.weights or not blocks:
            return np.empty(0, np.float32) if self.weights else None
        factors = [self.weights.get(block.source, 1.0) for block in blocks]
        return np.repeat(
            np.asarray(factors, np.float32), [len(block.sentences) - 1 for block in blocks]
        )

    def remember(self, source: str, keys: IntArray, size: int) -> None:
        """Sentences of a source were put into a memory, which now has `size` of them.

        keys  int64 [m], as the memory numbered them: growing, -1 for one it left out
        """
        known = keys[keys >= 0]
        if not len(known):
            return
        self._firsts.append(int(known[0]))
        self._sources.append(source)
        oldest = int(known[-1]) + 1 - size
        gone = bisect_right(self._firsts, oldest) - 1
        if gone > 0:
            del self._firsts[:gone], self._sources[:gone]

    def past(self, keys: IntArray) -> FloatArray:
        """float32 [m]: the factor of each sentence drawn from that memory."""
        if not self.weights or not self._firsts:
            return np.ones(len(keys), np.float32)
        stretch = np.searchsorted(np.asarray(self._firsts), keys, side="right") - 1
        factors = np.asarray([self.weights.get(name, 1.0) for name in self._sources], np.float32)
        drawn: FloatArray = factors[np.maximum(stretch, 0)]
        return drawn


_TRACKED = {"none": Track.NONE, "loss": Track.LOSS, "gradient": Track.GRADIENT}
INITIAL_TOKENS = 250_000.0
"""Tokens up to which a model is young."""


def replay_ratio(config: NodeConfig, learnt: float) -> float:
    """Replayed tokens for each fresh one, r = max(r₀, r₁ · min(1, YOUNG / learnt)); 0 if r₀ is.

    learnt  tokens of all nodes that the model has learnt from, as the server's counts decay

    A model of few tokens has hardly left its random start after one pass and two or three of
    replay, so that its first windows are compared by chance (ADR 17); many more passes learn the
    first texts by heart. r₀ and r₁ are `replay_ratio` and `initial_replay_ratio`.
    """
    if not config.replay_ratio:
        return 0.0
    initial = config.initial_replay_ratio * INITIAL_TOKENS / max(learnt, INITIAL_TOKENS)
    return max(config.replay_ratio, initial)


class Rehearsal:
    """A replay memory as a learner uses it."""

    def __init__(self, memory: ReplayMemory, mixing: Mixing) -> None:
        self._memory = memory
        self._mixing = mixing
        self._lock = threading.Lock()
        self._window: int | None = None
        self._since = self._fresh = 0
        self._late = LateWords()

    def draw(
        self, blocks: Sequence[TokenBlock], fresh: Sequence[CodedText], tokens: int
    ) -> tuple[list[CodedText], Rehearsed]:
        """About `tokens` tokens of the past; the fresh sentences are remembered for later.

        Fresh sentences have the first priority of their document, as the crawling side set it.
        """
        with self._lock:
            sample = self._sample(tokens)
            for block, part in zip(blocks, fresh, strict=True):
                first = of_sentences(block.priority, block.documents)
                keys = self._memory.add(
                    self._late.coded(block.words, part.table)[part.codes], part.sentences, first
                )
                known = keys[keys >= 0]
                if self._since < 0 and len(known):
                    self._since = int(known[0])
                self._fresh += len(part.codes)
                self._mixing.remember(block.source, keys, len(self._memory))
            weights = self._weights(sample)
        factors = self._mixing.fresh(blocks)
        n_fresh = sum(len(part.sentences) - 1 for part in fresh)
        factors = np.ones(n_fresh, dtype=np.float32) if factors is None else factors
        keys = np.concatenate([np.full(n_fresh, -1, dtype=np.int64), sample.keys])
        return self._drawn([sample], keys, [factors, weights])

    @property
    def tokens(self) -> int:
        return self._memory.tokens

    def begin(self, window: int) -> None:
        """What is read from now on is of this window (Unix seconds of its start)."""
        with self._lock:
            if self._window is None or window > self._window:
                self._window, self._since, self._fresh = window, -1, 0

    def draw_again(self, tokens: int, *, evenly: bool) -> tuple[list[CodedText], Rehearsed]:
        """About `tokens` tokens, evenly of all that is remembered, or half of the window under way.

        Of a window that has just begun no more than there is of it.
        """
        with self._lock:
            of_window = 0 if evenly else min(tokens // 2, self._fresh)
            samples = [
                self._sample(of_window, max(self._since, 0)),
                self._sample(tokens - of_window),
            ]
            weights = list(map(self._weights, samples))
        return self._drawn(samples, np.concatenate([sample.keys for sample in samples]), weights)

    def recall(self, tokens: int) -> Sample:
        """About `tokens` tokens of the past, whose losses the memory does not take."""
        with self._lock:
            sample = self._sample(tokens)
            return replace(sample, weights=self._weights(sample))

    def _sample(self, tokens: int, since: int | None = None) -> Sample:
        sample = self._memory.sample(tokens, since)
        return replace(sample, tokens=self._late.rows(sample.tokens))

    def _weights(self, sample: Sample) -> FloatArray:
        return sample.weights * self._mixing.past(sample.keys)

    def _drawn(
        self, samples: Sequence[Sample], keys: IntArray, weights: Sequence[FloatArray]
    ) -> tuple[list[CodedText], Rehearsed]:
        parts = [CodedText.of_ids(s.tokens, s.sentences) for s in samples if len(s.tokens)]
        track = _TRACKED[self._memory.measure]
        if track is Track.NONE and not self._mixing.weights:
            return parts, Rehearsed()
        return parts, Rehearsed(keys, np.concatenate(weights), track)

    def learnt(self, sentences: Rehearsed, loss: BlockLoss) -> None:
        """Tell the memory what the sentences of a tick cost or moved."""
        figures = {Track.LOSS: loss.sentence_loss, Track.GRADIENT: loss.sentence_gradient}
        measured = figures.get(sentences.track)
        if measured is None or loss.sentence_pairs is None:
            return
        known = (sentences.keys >= 0) & (loss.sentence_pairs > 0)
        with self._lock:
            self._memory.update(sentences.keys[known], measured[known])


class NodeRounds(Protocol):
    """A node's part in rounds of all nodes; used by the thread that pulls."""

    def memory(self) -> ReplayMemory:
        """For a node that replays nothing otherwise."""

    def pulled(self, pull: Callable[[], PulledRows], past: Replaying) -> tuple[PulledRows, float]:
        """What a pull brings after the rounds that it is held back for, and their seconds."""


NODE_ROUNDS: Registry[Callable[..., NodeRounds], NoTraits] = Registry(
    "kind of rounds", "yeoron.rounds"
)
"""Made of the session with the server, model, stream and name of a node, whether its text may
leave it, and the event that ends it. A node takes part in the first; the core has none."""


class Replaying:
    """The replay memory of a learner, the sentences held out of it, and its part in rounds.

    rehearsal  None while nothing is remembered
    held_out   None where nothing is measured by held-out sentences
    rounds     of all nodes; None where the node takes part in none
    learning_rate  of the last block
    """

    def __init__(
        self,
        config: NodeConfig,
        words: WordTables,
        turn: NodeClock,
        learning_rate: float,
        memory: ReplayMemory | None,
        held_out: HeldOut | None,
        rounds: NodeRounds | None,
    ) -> None:
        self.mixing = Mixing(config.source_weights)
        self.learning_rate = learning_rate
        self.rehearsal = None if memory is None else Rehearsal(memory, self.mixing)
        self._config = config
        self._words = words
        self._turn = turn
        self._held_out = held_out
        self._rounds = rounds

    @property
    def pace(self) -> Pace:
        return self._turn.pace

    def fresh(
        self, blocks: Sequence[TokenBlock], parts: list[CodedText], seed: int
    ) -> tuple[list[CodedText], Rehearsed]:
        """Fresh sentences, which are remembered, and sentences of the past to train on too.

        Where there are such rounds the past is learnt in them, not along with what is fresh.
        """
        fresh = parts
        if self._held_out is not None and parts:
            some = partial(self._words.some_noise, seed=seed)
            fresh = self._held_out.take(parts, self._words.keep, some)
        rounds = self._rounds if self.pace.batch_tokens > 0 else None
        if self.rehearsal is None and rounds is not None:
            self.rehearsal = Rehearsal(rounds.memory(), self.mixing)
        if self.rehearsal is None:
            return fresh, Rehearsed(weights=self.mixing.fresh(blocks))
        ratio = 0.0 if rounds is not None else replay_ratio(self._config, self._words.tokens)
        wanted = int(sum(len(part.codes) for part in fresh) * ratio)
        past, sentences = self.rehearsal.draw(blocks, fresh, wanted)
        return [*fresh, *map(self._words.known, past)], sentences

    def again(
        self, order: Order, measured_by: HeldPairs | None
    ) -> tuple[list[CodedText], Rehearsed]:
        """Sentences of the past to learn again, and the words by which the tick is measured."""
        if self.rehearsal is None:
            return [], Rehearsed()
        past, sentences = self.rehearsal.draw_again(order.tokens, evenly=order.evenly)
        parts = [self._words.known(part) for part in past]
        if measured_by is None:
            return parts, sentences
        # A sentence of one word trains nothing; its rows are there.
        ids = measured_by.ids
        parts.append(CodedText.of_ids(ids, np.arange(len(ids) + 1, dtype=np.int32)))
        return parts, sentences.longer(len(ids))

    def portion(self, ids: IntArray, sentences: CodeArray, seed: int) -> BlockPlan:
        """Remembered text, row ids int64 [n], with noise words of its own; any thread."""
        words = self._words
        with words.reading:
            part = words.known(CodedText.of_ids(ids, sentences))
            return words.plan([part], words.noise([part], seed))

    def held_pairs(self) -> HeldPairs | None:
        """The pairs by which a rehearsal is measured."""
        if self._held_out is None:
            return None
        lexicon = self._words.lexicon
        return self._held_out.pairs(lexicon.known, lexicon.ids)

    def decay(self, order: Order) -> float:
        """By which part of itself a row of this tick shrinks (weight decay).

        Told when the tick is prepared: by the time it is trained the next may have been read.
        """
        if self.rehearsal is None:
            return 0.0
        remembered = max(self.rehearsal.tokens * max(self._turn.active, 1), 1)
        return order.decay * order.rate * min(1.0, order.tokens / remembered)

    def pulled(self, pull: Callable[[], PulledRows]) -> tuple[PulledRows, float]:
        return (pull(), 0.0) if self._rounds is None else self._rounds.pulled(pull, self)

    def learnt(self, sentences: Rehearsed, loss: BlockLoss) -> None:
        if self.rehearsal is not None:
            self.rehearsal.learnt(sentences, loss)
