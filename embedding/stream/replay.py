"""Replay memory: recent sentences kept as row ids, so that gradients never wait for the crawl.

Reverb and Ape-X (Horgan et al. 2018) use the same split: one side inserts, the other samples.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from embedding.kernel.records import CodeArray, FloatArray, IntArray, TokenBlock
from embedding.kernel.registry import NoTraits
from embedding.stream.config import REPLAYS, StreamConfig
from embedding.stream.ring import Measure, Sample, SentenceRing, check_priority, sample_alike


@runtime_checkable
class ReplayMemory(Protocol):
    """A bounded memory of sentences. Draws are with replacement."""

    capacity: int
    measure: Measure

    def add(
        self, tokens: IntArray, sentences: CodeArray, priority: FloatArray | None = None
    ) -> IntArray:
        """Insert sentences: tokens int64 [n], sentences int32 [m+1]; returns keys int64 [m].

        priority  float32 [m] by whoever adds them, 1 for one like any other; None: not known
        The key of a sentence that was left out (an empty one) is -1.
        """

    def sample(self, n_tokens: int, since: int | None = None) -> Sample:
        """Draw sentences of `n_tokens` tokens in all (the last is cut to fit).

        since  draw from those with this key or a later one only, all alike; without any: nothing
        """

    def update(self, keys: IntArray, priority: FloatArray) -> None:
        """Set priorities, as `measure` says; keys that are no longer held are passed over."""

    def __len__(self) -> int:
        """Sentences held."""

    @property
    def tokens(self) -> int:
        """Tokens held, at most `capacity`."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory taken; does not grow."""


@REPLAYS.register("uniform", NoTraits())
class UniformReplay:
    """Draws every sentence that is held with the same probability.

    A token is drawn as often as its sentence, so tokens are uniform too. `capacity_tokens` bounds
    memory; the oldest sentences leave first. The same seed and calls give the same draws. It is a
    ReplayKind as well.
    """

    def __init__(self, capacity_tokens: int, seed: int = 0) -> None:
        self.capacity = capacity_tokens
        self.measure: Measure = "none"
        self._ring = SentenceRing(capacity_tokens)
        self._random = np.random.default_rng(seed)

    def add(
        self, tokens: IntArray, sentences: CodeArray, priority: FloatArray | None = None
    ) -> IntArray:
        """Insert sentences; priorities are accepted and have no effect."""
        check_priority(priority, len(sentences) - 1)
        return self._ring.add(tokens, sentences)

    def sample(self, n_tokens: int, since: int | None = None) -> Sample:
        return sample_alike(self._ring, n_tokens, self._random, since)

    def update(self, keys: IntArray, priority: FloatArray) -> None:
        """Has no effect beyond checking its arguments."""
        check_priority(priority, len(keys))

    def __len__(self) -> int:
        return len(self._ring)

    @property
    def tokens(self) -> int:
        return self._ring.tokens

    @property
    def nbytes(self) -> int:
        return self._ring.nbytes

    @classmethod
    def memory(cls, config: StreamConfig, seed: int) -> UniformReplay:
        return cls(config.replay_tokens, seed)

    @staticmethod
    def ranking(sample: float, min_count: int, capacity: int) -> None:
        """All documents are alike."""
        del sample, min_count, capacity


class Ranking(Protocol):
    """What ranks documents before they are learnt."""

    def priorities(self, block: TokenBlock) -> FloatArray:
        """float32 [n_documents], 1 for the usual one: what a block's documents may teach."""


class ReplayKind(Protocol):
    """A way of drawing sentences again."""

    @staticmethod
    def memory(config: StreamConfig, seed: int) -> ReplayMemory:
        """A memory of `replay_tokens`."""

    @staticmethod
    def ranking(sample: float, min_count: int, capacity: int) -> Ranking | None:
        """For the crawling side, which knows words but no model; None: all documents are alike.

        sample     subsampling threshold of the model; min_count: mentions before a word has a row
        capacity   words remembered
        """


def make_replay(config: StreamConfig, seed: int = 0) -> ReplayMemory:
    """The replay memory that `config` names."""
    kind: type[ReplayKind] = REPLAYS.get(config.replay)
    return kind.memory(config, seed)


def ranking(config: StreamConfig, sample: float, min_count: int, capacity: int) -> Ranking | None:
    """What ranks documents for that memory; see ReplayKind."""
    kind: type[ReplayKind] = REPLAYS.get(config.replay)
    return kind.ranking(sample, min_count, capacity)
