"""How much the text of each source weighs in training: a factor of its sentences' learning rate.

Weighing the loss of a group by a factor is the inner step of group DRO (Sagawa et al. 2020,
algorithm 1); `trends/bias.py` proposes the factors.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np

from embedding.kernel.records import FloatArray, IntArray, TokenBlock


class Mixing:
    """Weights of sentences by their source, also of those drawn from a replay memory.

    weights  factor by source; a source that is not named has 1. Without any nothing is weighed
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = dict(weights)
        self._firsts: list[int] = []
        self._sources: list[str] = []

    def use(self, weights: Mapping[str, float]) -> None:
        """Weigh by these from the next block on, also what was remembered before."""
        self._weights = dict(weights)

    @property
    def weights(self) -> dict[str, float]:
        """In use, by source."""
        return dict(self._weights)

    def __bool__(self) -> bool:
        return bool(self._weights)

    def of(self, source: str) -> float:
        return self._weights.get(source, 1.0)

    def fresh(self, blocks: Sequence[TokenBlock]) -> FloatArray | None:
        """float32 [m]: the factor of each sentence of blocks; None when nothing is weighed."""
        if not self:
            return None
        each = [np.full(len(b.sentences) - 1, self.of(b.source), np.float32) for b in blocks]
        return np.concatenate(each) if each else np.empty(0, np.float32)

    def remember(self, source: str, keys: IntArray, held: int) -> None:
        """Sentences of a source were put into a memory, which now holds `held`.

        keys  int64 [m], as the memory numbered them: growing, -1 for one it left out
        """
        known = keys[keys >= 0]
        if not len(known):
            return
        self._firsts.append(int(known[0]))
        self._sources.append(source)
        oldest = int(known[-1]) + 1 - held
        gone = bisect_right(self._firsts, oldest) - 1
        if gone > 0:
            del self._firsts[:gone], self._sources[:gone]

    def past(self, keys: IntArray) -> FloatArray:
        """float32 [m]: the factor of each sentence drawn from that memory."""
        if not self or not self._firsts:
            return np.ones(len(keys), np.float32)
        at = np.searchsorted(np.asarray(self._firsts), keys, side="right") - 1
        held = np.asarray([self.of(source) for source in self._sources], np.float32)
        factors: FloatArray = held[np.maximum(at, 0)]
        return factors
