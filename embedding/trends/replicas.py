"""The replicas of two times side by side, and how far two groups of them lie apart.

A replica of a window holds what the contexts of its words say in some of the window's texts
(`snapshots/usage.py`). Replicas of several windows make one time; any split of the replicas into
two groups can be compared, also one that has nothing to do with time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.usage import Usage
from embedding.trends.significance import TestArray

_LEAST = 1e-9
"""N where there is nothing."""


@dataclass(frozen=True)
class UsedWords:
    """The use of n words in a snapshot: usage, and the row int64 [n] of each word in it."""

    usage: Usage
    rows: IntArray

    def take(self, at: IntArray) -> UsedWords:
        """Some of the words."""
        return replace(self, rows=self.rows[at])

    @property
    def busiest(self) -> UsedWords | None:
        """The same words in what the busiest authors wrote; None where that is not known."""
        busiest = self.usage.busiest
        return None if busiest is None else UsedWords(busiest, self.rows)

    def pairs(self, source: str) -> FloatArray:
        """N float32 [n, r] of a source; 0 where it lacks a word."""
        return self._pairs(*self._of(source))

    def replicas(self, source: str) -> tuple[FloatArray, FloatArray]:
        """N and means float32 [n, r] and [n, r, k · dim] of a source; 0 where it lacks a word."""
        there, chosen = self._of(source)
        return self._pairs(there, chosen), self._means(there, chosen)

    def _pairs(self, there: IntArray, chosen: IntArray) -> FloatArray:
        pairs = np.zeros((len(self.rows), self.usage.pairs.shape[1]), dtype=np.float32)
        pairs[there] = self.usage.pairs[chosen]
        return pairs

    def _means(self, there: IntArray, chosen: IntArray) -> FloatArray:
        means = np.zeros((len(self.rows), *self.usage.means.shape[1:]), dtype=np.float32)
        means[there] = self.usage.means[chosen]
        return means

    def _of(self, source: str) -> tuple[IntArray, IntArray]:
        """Which of the words a source has, and where in the sums they are."""
        own = self.usage.by_source.get(source)
        if own is None or not len(own):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        at = positions(self.usage.rows[own], self.rows)
        there = np.flatnonzero(at >= 0)
        return there, own[at[there]]


@dataclass(frozen=True)
class Replicas:
    """One source: pairs float64 [n, r] and means [n, r, dim], of which the first are `earlier`."""

    pairs: TestArray
    means: TestArray
    earlier: int

    @classmethod
    def of(
        cls, before: Sequence[tuple[UsedWords, str]], after: Sequence[tuple[UsedWords, str]]
    ) -> Replicas:
        """The windows of both times, each with the source to take."""
        sides = [words.replicas(source) for words, source in (*before, *after)]
        pairs = np.concatenate([side[0] for side in sides], axis=1, dtype=np.float64)
        means = np.concatenate([side[1] for side in sides], axis=1, dtype=np.float64)
        return cls(pairs, means, sum(side[0].shape[1] for side in sides[: len(before)]))

    @property
    def observed(self) -> tuple[IntArray, IntArray]:
        """The replicas of the earlier time, and of the later one."""
        return np.arange(self.earlier), np.arange(self.earlier, self.pairs.shape[1])


SplitGroups = tuple[IntArray, IntArray]
"""Two groups of a source's replicas."""


SourceSplit = Callable[[Replicas], SplitGroups]
"""Which replicas of a source are compared with which."""


def observed(replicas: Replicas) -> SplitGroups:
    """Those of the earlier time with those of the later one."""
    return replicas.observed


def distance(sources: Iterable[Replicas], split: SourceSplit) -> TestArray:
    """√e² with its sign, float64 [n]; NaN where no source has two replicas in each group."""
    squared, _ = unbiased(sources, [split])
    return signed_root(squared[0])


def signed_root(squares: TestArray) -> TestArray:
    """√|e²| with the sign of e²: an unbiased e² of nothing is below 0 as often as above."""
    roots: TestArray = np.sign(squares) * np.sqrt(np.abs(squares))
    return roots


def unbiased(
    sources: Iterable[Replicas], splits: Sequence[SourceSplit]
) -> tuple[TestArray, TestArray]:
    """e² float64 [k, n] by k splits, and the variance [k, n] taken off; NaN as in `distance`.

    What a split needs of a source's means follows from their inner products, which all of them
    share; only the difference of both groups has as many columns as a mean.
    """
    moved: TestArray | None = None
    noise = weight = np.zeros((len(splits), 0))
    for source in sources:
        n, _, dim = source.means.shape
        if moved is None:
            moved, noise = np.zeros((n, len(splits), dim)), np.zeros((n, len(splits)))
            weight = np.zeros((n, len(splits)))
        groups = [split(source) for split in splits]
        apart = _centred(source)
        products = apart @ apart.transpose(0, 2, 1)
        one, other = (
            _summary(source, products, [pair[side] for pair in groups]) for side in (0, 1)
        )
        both = np.isfinite(one[1] + other[1])
        own = np.where(both, 2.0 / (1.0 / one[2] + 1.0 / other[2]), 0.0)
        moved += (own[..., None] * (other[0] - one[0])) @ apart
        noise += np.where(both, own**2 * (one[1] + other[1]), 0.0)
        weight += own
    if moved is None:
        raise ValueError("there is no source to compare.")
    with np.errstate(invalid="ignore", divide="ignore"):
        noise = noise / weight**2
        return ((moved**2).sum(axis=2) / weight**2 - noise).T, noise.T


def _centred(source: Replicas) -> TestArray:
    """Means less what all replicas of a word have in common, which no difference shows."""
    total = np.maximum(source.pairs.sum(axis=1), _LEAST)
    common = np.einsum("nr,nrd->nd", source.pairs, source.means) / total[:, None]
    centred: TestArray = source.means - common[:, None]
    return centred


def _summary(
    source: Replicas, products: TestArray, groups: Sequence[IntArray]
) -> tuple[TestArray, TestArray, TestArray]:
    """What of each replica is in the mean of a group, float64 [n, k, r], for k groups.

    With it the variance of this mean [n, k] (NaN of fewer than two replicas), and N [n, k].

    products  float64 [n, r, r], of means
    """
    within = np.zeros((len(groups), source.pairs.shape[1]))
    for at, group in enumerate(groups):
        within[at, group] = 1.0
    pairs = source.pairs[:, None, :] * within
    total = np.maximum(pairs.sum(axis=2), _LEAST)
    share = pairs / total[..., None]
    along = share @ products
    length = (along * share).sum(axis=2)
    own = np.einsum("nrr->nr", products)[:, None, :]
    apart = own - 2.0 * along + length[..., None]
    held = (source.pairs > 0).astype(np.float64) @ within.T
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (share**2 * apart).sum(axis=2) * held / (held - 1)
    spread[held < 2] = np.nan
    return share, spread, total
