"""Sums of what stood around words, word by word, in bounded memory (see `inference.py`)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from embedding.records import FloatArray, IntArray

K = TypeVar("K", bound=Hashable)


class ContextSums(Generic[K]):
    """Sums of at most `limit` words, the latest read; places of forgotten words are reused.

    sums float32 [p, dim] and weights float32 [p], Σ w u/|u| and Σ w of `inference.py`; mentions
    int64 [p]
    """

    def __init__(self, dim: int, limit: int) -> None:
        self.limit = limit
        self.sums = np.zeros((0, dim), dtype=np.float32)
        self.weights = np.zeros(0, dtype=np.float32)
        self.mentions = np.zeros(0, dtype=np.int64)
        self._places: dict[K, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._places)

    def keys(self) -> list[K]:
        """Words that have sums, the latest read last."""
        return list(self._places)

    def add(
        self, keys: Sequence[K], sums: FloatArray, weights: FloatArray, mentions: IntArray
    ) -> None:
        """Add to words (distinct), which become the latest; the longest unread above `limit` go."""
        at = np.fromiter((self._touch(key) for key in keys), np.int64, count=len(keys))
        self._reserve(int(at.max(initial=-1)) + 1)
        self.sums[at] += sums
        self.weights[at] += weights
        self.mentions[at] += mentions
        over = len(self._places) - self.limit
        if over > 0:
            self.forget([key for key, _ in zip(self._places, range(over), strict=False)])

    def places(self, keys: Sequence[K]) -> IntArray:
        """Where the sums of words are, int64 [n]; -1 for a word without."""
        get = self._places.get
        return np.fromiter((get(key, -1) for key in keys), np.int64, count=len(keys))

    def forget(self, keys: Sequence[K]) -> None:
        """Forget these words; others than those that have sums are passed over."""
        gone = [self._places.pop(key) for key in keys if key in self._places]
        self._free += gone
        self.sums[gone], self.weights[gone], self.mentions[gone] = 0.0, 0.0, 0

    def halve(self, mentions: int) -> None:
        """Halve the sums of words with more mentions than so many: the latest weigh most."""
        many = self.mentions > mentions
        self.sums[many] *= np.float32(0.5)
        self.weights[many] *= np.float32(0.5)
        self.mentions[many] //= 2

    def _touch(self, key: K) -> int:
        place = self._places.pop(key, None)
        if place is None:
            place = self._free.pop() if self._free else len(self._places)
        self._places[key] = place
        return place

    def _reserve(self, size: int) -> None:
        if size <= len(self.weights):
            return
        size = max(64, size, 2 * len(self.weights))
        for name in ("sums", "weights", "mentions"):
            old = getattr(self, name)
            grown = np.zeros((size, *old.shape[1:]), dtype=old.dtype)
            grown[: len(old)] = old
            setattr(self, name, grown)
