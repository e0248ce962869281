"""The replay memory in a tick: what is drawn from it, and the losses that it takes afterwards.

One thread draws for the next tick while another reports on the last: a lock keeps them apart.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from embedding.kernel.records import FloatArray, IntArray, TokenBlock
from embedding.models.base import BlockLoss, Track
from embedding.stream.replay import ReplayMemory
from embedding.stream.ring import Sample, of_sentences
from embedding.worker.config import NodeConfig
from embedding.worker.learning.mixing import Mixing
from embedding.worker.learning.planning import BlockPlan, CodedText
from embedding.worker.words.latewords import LateWords

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


@dataclass(frozen=True)
class Rehearsed:
    """The sentences of a tick as the replay memory knows them.

    keys     int64 [m], the memory's key of each drawn sentence, -1 for a fresh one: that keeps
             its first priority until it is drawn
    weights  float32 [m], importance weights times those of the sources; None: all 1
    track    what the memory wants to know of each
    """

    keys: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    weights: FloatArray | None = None
    track: Track = Track.NONE

    def paced(self, factors: FloatArray | None, sentences: int) -> Rehearsed:
        """With other rates for what is fresh.

        factors    float32 [f], of the fresh sentences, which come first; None: 1
        sentences  how many there are with what is drawn from the past
        """
        if factors is None:
            return self
        weights = np.ones(sentences, np.float32) if self.weights is None else self.weights.copy()
        weights[: len(factors)] *= factors
        return replace(self, weights=weights)

    def longer(self, sentences: int) -> Rehearsed:
        """With so many sentences behind, that are not in the memory."""
        if self.weights is None and self.track is Track.NONE:
            return self
        weights = np.empty(0, np.float32) if self.weights is None else self.weights
        return replace(
            self,
            keys=np.concatenate([self.keys, np.full(sentences, -1, dtype=np.int64)]),
            weights=np.concatenate([weights, np.ones(sentences, np.float32)]),
        )

    def into(self, planned: BlockPlan) -> BlockPlan:
        """The plan whose block is weighted and measured."""
        if self.weights is None and self.track is Track.NONE:
            return planned
        block = replace(planned.block, weights=self.weights, track=self.track)
        return replace(planned, block=block)


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
            factors = self._mixing.past(sample.keys)
        past = [CodedText.of_ids(sample.tokens, sample.sentences)] if len(sample.tokens) else []
        track, alike = _TRACKED[self._memory.measure], self._mixing.fresh(blocks)
        if track is Track.NONE and alike is None:
            return past, Rehearsed()
        n_fresh = sum(len(part.sentences) - 1 for part in fresh)
        alike = np.ones(n_fresh, dtype=np.float32) if alike is None else alike
        keys = np.concatenate([np.full(n_fresh, -1, dtype=np.int64), sample.keys])
        weights = np.concatenate([alike, sample.weights * factors])
        return past, Rehearsed(keys, weights, track)

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
            ours = 0 if evenly else min(tokens // 2, self._fresh)
            drawn = [self._sample(ours, max(self._since, 0)), self._sample(tokens - ours)]
            weights = [sample.weights * self._mixing.past(sample.keys) for sample in drawn]
        parts = [CodedText.of_ids(one.tokens, one.sentences) for one in drawn if len(one.tokens)]
        track = _TRACKED[self._memory.measure]
        if track is Track.NONE and not self._mixing:
            return parts, Rehearsed()
        keys = np.concatenate([sample.keys for sample in drawn])
        return parts, Rehearsed(keys, np.concatenate(weights), track)

    def _sample(self, tokens: int, since: int | None = None) -> Sample:
        sample = self._memory.sample(tokens, since)
        return replace(sample, tokens=self._late.rows(sample.tokens))

    def recall(self, tokens: int) -> Sample:
        """About `tokens` tokens of the past, whose losses the memory does not take."""
        with self._lock:
            sample = self._sample(tokens)
            weights = sample.weights * self._mixing.past(sample.keys)
        return replace(sample, weights=weights)

    def learnt(self, sentences: Rehearsed, loss: BlockLoss) -> None:
        """Tell the memory what the sentences of a tick cost or moved."""
        figures = {Track.LOSS: loss.sentence_loss, Track.GRADIENT: loss.sentence_gradient}
        measured = figures.get(sentences.track)
        if measured is None or loss.sentence_pairs is None:
            return
        known = (sentences.keys >= 0) & (loss.sentence_pairs > 0)
        with self._lock:
            self._memory.update(sentences.keys[known], measured[known])
