"""Which words stood around words, word by word, in bounded memory (see `inference.py`).

Of the contexts their ids are kept and not what their rows said when they were read: rows move, and
whoever reads a bag later reads it with the rows of that moment.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import repeat
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from embedding.kernel.positions import ranges
from embedding.kernel.records import CodeArray, FloatArray, HalfArray, IntArray

K = TypeVar("K", bound=Hashable)

MAX_CONTEXTS = 1024
"""Contexts of one word; at more of them it is thinned. Each takes 12 bytes."""
_LEAST_WEIGHT = 0.5
"""A context that weighs less after thinning is kept with a chance, so that sums stay true."""
_SMALL = 8192
"""Pairs that are merged at once with those that came before them."""
_CONTEXT = (1 << 32) - 1


class ContextBag(NamedTuple):
    """Contexts of n words, one word's after another's.

    sizes     int64 [n], contexts of each; mentions int64 [n], occurrences that are in them
    contexts  int32 or int64 [m], ids below 2³¹, a word's distinct and increasing
    weights   float32 or float16 [m]; a word's sum is W of `twins.py`
    """

    sizes: IntArray
    contexts: IntArray | CodeArray
    weights: FloatArray | HalfArray
    mentions: IntArray

    def of(self, chosen: npt.NDArray[np.bool_]) -> ContextBag:
        """Those of some of its words, bool [n]."""
        entries = np.repeat(chosen, self.sizes)
        return ContextBag(
            self.sizes[chosen], self.contexts[entries], self.weights[entries], self.mentions[chosen]
        )

    def and_of(self, others: ContextBag) -> ContextBag:
        return ContextBag(
            np.concatenate([self.sizes, others.sizes]),
            np.concatenate([self.contexts, others.contexts]),
            np.concatenate([self.weights, others.weights]),
            np.concatenate([self.mentions, others.mentions]),
        )


class _Pairs(NamedTuple):
    """Words and their contexts, owner << 32 | context, increasing and distinct, with weights."""

    codes: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, codes: IntArray, weights: FloatArray | HalfArray) -> _Pairs:
        """In order, with equal ones added up."""
        # A stable sort merges what is in order already.
        order = np.argsort(codes, kind="stable")
        codes, weights = codes[order], weights[order].astype(np.float32)
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        return cls(codes[first], np.add.reduceat(weights, first) if len(first) else weights)

    def within(self, owners: IntArray) -> tuple[IntArray, IntArray]:
        """Where those of some owners are, and to which of these they belong; -1 has none."""
        starts = np.searchsorted(self.codes, owners << 32)
        sizes = np.searchsorted(self.codes, (owners + 1) << 32) - starts
        return ranges(starts, sizes), np.repeat(np.arange(len(owners)), sizes)


def added_up(
    owners: IntArray,
    contexts: IntArray | CodeArray,
    weights: FloatArray | HalfArray,
    mentions: IntArray,
) -> ContextBag:
    """Bags of n words from contexts in any order: owners int64 [m] below n, mentions int64 [n]."""
    return _bags(_Pairs.of(owners << 32 | contexts, weights), mentions)


def _bags(pairs: _Pairs, mentions: IntArray) -> ContextBag:
    sizes = np.bincount(pairs.codes >> 32, minlength=len(mentions)).astype(np.int64)
    contexts = (pairs.codes & _CONTEXT).astype(np.int32)
    return ContextBag(sizes, contexts, pairs.weights, mentions)


class ContextBags(Generic[K]):
    """Bags of at most `limit` words, the latest read, of about `most` contexts each.

    Pairs of words and contexts are kept in a few sorted arrays, each more than twice as long as the
    next, so that what comes is merged and nothing is done word by word.
    """

    def __init__(self, limit: int, most: int = MAX_CONTEXTS) -> None:
        self.limit = limit
        self.most = most
        self._levels: list[_Pairs] = []
        self._places: dict[K, int] = {}
        self._mentions = np.zeros(0, dtype=np.int64)
        self._free: list[int] = []
        self._gone: list[int] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: K) -> bool:
        return key in self._places

    def keys(self) -> list[K]:
        """Words that have a bag, the latest read last."""
        return list(self._places)

    def mentions(self, keys: Sequence[K]) -> IntArray:
        """Occurrences of words, int64 [n]; 0 of one without a bag."""
        at = self._at(keys)
        return np.where(at >= 0, self._mentions[at], 0) if len(self._mentions) else at + 1

    def of(self, keys: Sequence[K]) -> ContextBag:
        """Copies of the bags of words; a word without has no contexts and no mentions."""
        at = self._at(keys)
        levels = [(level.within(at), level) for level in self._levels]
        codes = [owners << 32 | level.codes[i] & _CONTEXT for (i, owners), level in levels]
        weights = [level.weights[i] for (i, _), level in levels]
        mentions = self.mentions(keys)
        if not levels:
            return _bags(_Pairs(at[:0], np.empty(0, np.float32)), mentions)
        pairs = _together(codes, weights) if len(levels) > 1 else _Pairs(codes[0], weights[0])
        return _bags(_only(pairs, pairs.weights > 0), mentions)

    def copied(self) -> ContextBags[K]:
        """The same as it is now: quick, what others wait for; its bags are put together later."""
        other: ContextBags[K] = ContextBags(self.limit, self.most)
        # Codes are never changed in place, weights are.
        other._levels = [_Pairs(codes, weights.copy()) for codes, weights in self._levels]
        other._places, other._mentions = dict(self._places), self._mentions.copy()
        other._free, other._gone, other._next = list(self._free), list(self._gone), self._next
        return other

    def contexts(self) -> IntArray:
        """Ids that stand in any bag, int64 [c], increasing."""
        ids = [level.codes & _CONTEXT for level in self._levels]
        used = np.zeros(max((int(part.max(initial=0)) for part in ids), default=0) + 1, np.bool_)
        for part in ids:
            used[part] = True
        return np.flatnonzero(used)

    def add(self, keys: Sequence[K], bags: ContextBag, fresh: int = 0) -> None:
        """Add to words (distinct), which become the latest; the longest unread above `limit` go.

        fresh  mentions at which a bag is halved; 0: never
        """
        if not len(keys):
            return
        at = np.fromiter((self._touch(key) for key in keys), np.int64, count=len(keys))
        self._mentions[at] += bags.mentions
        codes = np.repeat(at, bags.sizes) << 32 | bags.contexts
        self._levels.append(_Pairs.of(codes, bags.weights))
        self._merge()
        if fresh:
            self._halve(self._levels, at[self._mentions[at] > fresh])
        over = len(self._places) - self.limit
        if over > 0:
            self.forget([key for key, _ in zip(self._places, range(over), strict=False)])

    def forget(self, keys: Sequence[K]) -> None:
        """Forget these words; others than those that have a bag are passed over."""
        gone = [self._places.pop(key) for key in keys if key in self._places]
        self._gone += gone
        self._mentions[gone] = 0

    def _at(self, keys: Sequence[K]) -> IntArray:
        places = map(self._places.get, keys, repeat(-1))
        return np.fromiter(places, np.int64, count=len(keys))

    def _touch(self, key: K) -> int:
        place = self._places.pop(key, None)
        if place is None:
            place = self._free.pop() if self._free else self._next
            if place == self._next:
                self._next += 1
                if place >= len(self._mentions):
                    more = np.zeros(max(64, 2 * place), dtype=np.int64)
                    more[:place] = self._mentions
                    self._mentions = more
        self._places[key] = place
        return place

    def _merge(self) -> None:
        """Merge the last arrays; places whose pairs are nowhere any more are free again."""
        levels = self._levels
        while len(levels) > 1 and len(levels[-2].codes) <= max(_SMALL, 2 * len(levels[-1].codes)):
            last, other = levels.pop(), levels.pop()
            codes, weights = [other.codes, last.codes], [other.weights, last.weights]
            both = _together(codes, weights)
            stay = (self._mentions[both.codes >> 32] > 0) & (both.weights > 0)
            levels.append(self._bounded(_only(both, stay)))
            if len(levels) == 1:
                self._free += self._gone
                self._gone = []

    def _bounded(self, pairs: _Pairs) -> _Pairs:
        """Bags of too many contexts are halved until they have fewer."""
        while True:
            many = np.flatnonzero(np.bincount(pairs.codes >> 32) > self.most)
            if not len(many):
                return pairs
            self._halve([pairs], many)
            pairs = _only(pairs, pairs.weights > 0)

    def _halve(self, levels: Sequence[_Pairs], places: IntArray) -> None:
        """Half of the weights, so that what comes later weighs more, and fewer contexts."""
        if not len(places):
            return
        drawn = np.random.default_rng(int(self._mentions[places].sum()))
        for pairs in levels:
            at = pairs.within(places)[0]
            weights = pairs.weights[at] * np.float32(0.5)
            stay = drawn.random(len(at)) * _LEAST_WEIGHT < weights
            pairs.weights[at] = np.where(stay, np.maximum(weights, _LEAST_WEIGHT), 0.0)
        self._mentions[places] = np.maximum(self._mentions[places] // 2, 1)


def _together(codes: Sequence[IntArray], weights: Sequence[FloatArray]) -> _Pairs:
    return _Pairs.of(np.concatenate(codes), np.concatenate(weights))


def _only(pairs: _Pairs, stay: npt.NDArray[np.bool_]) -> _Pairs:
    return pairs if stay.all() else _Pairs(pairs.codes[stay], pairs.weights[stay])
