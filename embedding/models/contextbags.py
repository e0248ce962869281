"""Which words stood around words, word by word, in bounded memory (see `inference.py`).

Of the contexts their ids are kept and not what their rows said when they were read: rows move, and
whoever reads a bag later reads it with the rows of that moment.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from embedding.records import CodeArray, FloatArray, HalfArray, IntArray

K = TypeVar("K", bound=Hashable)

MOST = 1024
"""Contexts of one word; at more of them it is thinned. Each takes 12 bytes."""
_LEAST_WEIGHT = 0.5
"""A context that weighs less after thinning is kept with a chance, so that sums stay true."""


class Bags(NamedTuple):
    """Contexts of n words: sizes int64 [n] of their parts; mentions int64 [n]

    contexts int64 or int32 [m], ids, and weights float32 or float16 [m]: Σ of a word's weights is W of `twins.py`
    """

    sizes: IntArray
    contexts: IntArray | CodeArray
    weights: FloatArray | HalfArray
    mentions: IntArray


class Bag(NamedTuple):
    """Contexts of one word, ids int64 [m] and weights float32 [m]; arrays are never changed.

    settled  how many there were when equal ones were last added up
    """

    contexts: IntArray
    weights: FloatArray
    mentions: int
    settled: int

    def joined(self, other: Bag) -> Bag:
        """With what another one holds."""
        contexts = np.concatenate([self.contexts, other.contexts])
        weights = np.concatenate([self.weights, other.weights])
        bag = Bag(contexts, weights, self.mentions + other.mentions, self.settled)
        return bag.distinct() if len(contexts) >= 2 * max(self.settled, 32) else bag

    def distinct(self) -> Bag:
        """Equal contexts added up; halved while there are too many."""
        contexts, at = np.unique(self.contexts, return_inverse=True)
        weights = np.bincount(at, self.weights, len(contexts)).astype(np.float32)
        bag = Bag(contexts, weights, self.mentions, len(contexts))
        while len(bag.contexts) > MOST:
            bag = bag.halved()
        return bag

    def halved(self) -> Bag:
        """Half of the weights, so that what comes later weighs more, and fewer contexts."""
        weights = self.weights * np.float32(0.5)
        light = weights < _LEAST_WEIGHT
        drawn = np.random.default_rng(self.mentions).random(len(weights))
        kept = ~light | (drawn * _LEAST_WEIGHT < weights)
        weights = np.maximum(weights, np.float32(_LEAST_WEIGHT))[kept]
        size = int(kept.sum())
        return Bag(self.contexts[kept], weights, self.mentions // 2, size)


def packed(bags: Sequence[Bag]) -> Bags:
    """As columns."""
    sizes = np.fromiter((len(bag.contexts) for bag in bags), np.int64, count=len(bags))
    mentions = np.fromiter((bag.mentions for bag in bags), np.int64, count=len(bags))
    if not bags:
        return Bags(sizes, np.empty(0, np.int64), np.empty(0, np.float32), mentions)
    contexts = np.concatenate([bag.contexts for bag in bags])
    return Bags(sizes, contexts, np.concatenate([bag.weights for bag in bags]), mentions)


def unpacked(bags: Bags) -> list[Bag]:
    """Inverse of `packed`; copies, so that a bag keeps no message alive."""
    ends = np.cumsum(bags.sizes).tolist()
    contexts, weights = bags.contexts.astype(np.int64), bags.weights.astype(np.float32)
    starts = [0, *ends]
    return [
        Bag(contexts[a:b].copy(), weights[a:b].copy(), mentions, 0)
        for a, b, mentions in zip(starts[:-1], ends, bags.mentions.tolist(), strict=True)
    ]


class ContextBags(Generic[K]):
    """Bags of at most `limit` words, the latest read."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._bags: dict[K, Bag] = {}

    def __len__(self) -> int:
        return len(self._bags)

    def keys(self) -> list[K]:
        """Words that have a bag, the latest read last."""
        return list(self._bags)

    def bags(self) -> list[Bag]:
        """Their bags."""
        return list(self._bags.values())

    def get(self, key: K) -> Bag | None:
        """The bag of a word."""
        return self._bags.get(key)

    def add(self, keys: Sequence[K], bags: Sequence[Bag], fresh: int = 0) -> None:
        """Add to words, which become the latest; the longest unread above `limit` go.

        fresh  mentions at which a bag is halved; 0: never
        """
        for key, bag in zip(keys, bags, strict=True):
            held = self._bags.pop(key, None)
            joined = bag if held is None else held.joined(bag)
            if fresh and joined.mentions > fresh:
                joined = joined.distinct().halved()
            self._bags[key] = joined
        for key in [key for key, _ in zip(self._bags, range(self._over()), strict=False)]:
            del self._bags[key]

    def pop(self, keys: Sequence[K]) -> dict[K, Bag]:
        """Forget these words; what was held of those that had a bag."""
        return {key: self._bags.pop(key) for key in keys if key in self._bags}

    def _over(self) -> int:
        return max(0, len(self._bags) - self.limit)
