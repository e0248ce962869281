"""What a replay memory is, and what all of them share.

Reverb and Ape-X (Horgan et al. 2018) use the same split: one side inserts, the other samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.stream.ring import SentenceRing

Measure = Literal["none", "loss", "gradient"]
"""What `update` wants to be told of a sentence: nothing, its loss or the norm of its gradient."""


@dataclass(frozen=True)
class Sample:
    """Sentences drawn from a replay memory.

    tokens     int64 [n] row ids
    sentences  int32 [m+1] token offsets
    keys       int64 [m] what `update` expects for each sentence
    weights    float32 [m] importance weight of each sentence (1 for uniform draws)
    """

    tokens: IntArray
    sentences: CodeArray
    keys: IntArray
    weights: FloatArray


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


def sample_alike(
    ring: SentenceRing, n_tokens: int, random: np.random.Generator, since: int | None = None
) -> Sample:
    """Sentences drawn uniformly from a ring, of those from key `since` on."""
    first = max(ring.oldest, ring.oldest if since is None else since)

    def draw(count: int) -> IntArray:
        return random.integers(first, ring.next, size=count)

    tokens, sentences, keys = ring.gather(n_tokens if first < ring.next else min(n_tokens, 0), draw)
    return Sample(tokens, sentences, keys, np.ones(len(keys), np.float32))


def check_priority(priority: FloatArray | None, expected: int) -> None:
    """Raise InputError unless `priority` is None or `expected` finite numbers, none negative."""
    if priority is None:
        return
    values = np.asarray(priority)
    if values.shape != (expected,):
        raise InputError(
            f"replay memory: {expected} priorities expected, one a sentence, got {values.shape}."
        )
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError("replay memory: priorities must be finite and not negative.")
