"""What is drawn from a replay memory, and what it may be told of its sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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


def of_sentences(priority: FloatArray, documents: CodeArray) -> FloatArray:
    """float32 [m]: sentences inherit the priority of their document.

    priority float32 [d]; documents int32 [d + 1], sentence offsets of documents
    """
    return np.repeat(priority, np.diff(documents))
