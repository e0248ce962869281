"""The replicas of two times side by side, and how far two groups of them lie apart.

A replica of a window holds what the contexts of its words say in some of the window's texts
(`snapshots/usage.py`). Replicas of several windows make one time; any division of the replicas into
two groups can be compared, also one that has nothing to do with time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from embedding.positions import positions
from embedding.records import FloatArray, IntArray
from embedding.snapshots.usage import Usage
from embedding.trends.significance import Figures


@dataclass(frozen=True)
class UsedWords:
    """The use of n words in a snapshot: usage, and the row int64 [n] of each word in it.

    axes  for each table whose means are taken (`Usage.table`), float64 [dim, dim] by which they are
          multiplied (`wiener.py`); None: as they are
    """

    usage: Usage
    rows: IntArray
    axes: tuple[Figures | None, ...] = (None,)

    def take(self, at: IntArray) -> UsedWords:
        """Some of the words."""
        return replace(self, rows=self.rows[at])

    def replicas(self, source: str) -> tuple[Figures, Figures]:
        """N float64 [n, r] and means [n, r, k · dim] of a source; N is 0 where it lacks a word."""
        own = self.usage.by_source.get(source)
        n, (r, dim) = len(self.rows), self.usage.means.shape[1:]
        pairs, means = np.zeros((n, r)), np.zeros((n, r, len(self.axes) * dim))
        if own is None or not len(own):
            return pairs, means
        held = self.usage.rows[own]
        at = positions(held, self.rows)
        there = np.flatnonzero(at >= 0)
        chosen = own[at[there]]
        pairs[there] = self.usage.pairs[chosen]
        for table, axes in enumerate(self.axes):
            said = self.usage.table(table)[chosen]
            columns = slice(table * dim, (table + 1) * dim)
            means[there, :, columns] = said if axes is None else said @ axes
        return pairs, means


@dataclass(frozen=True)
class Replicas:
    """One source: pairs float64 [n, r] and means [n, r, dim], of which the first are `earlier`."""

    pairs: Figures
    means: Figures
    earlier: int

    @classmethod
    def of(
        cls, before: Sequence[tuple[UsedWords, str]], after: Sequence[tuple[UsedWords, str]]
    ) -> Replicas:
        """The windows of both times, each with the source to take."""
        sides = [words.replicas(source) for words, source in (*before, *after)]
        pairs = np.concatenate([side[0] for side in sides], axis=1)
        means = np.concatenate([side[1] for side in sides], axis=1)
        return cls(pairs, means, sum(side[0].shape[1] for side in sides[: len(before)]))

    @property
    def truly(self) -> tuple[IntArray, IntArray]:
        """The replicas of the earlier time, and of the later one."""
        return np.arange(self.earlier), np.arange(self.earlier, self.pairs.shape[1])


Groups = tuple[IntArray, IntArray]
"""Two groups of a source's replicas."""


def distance(sources: Sequence[Replicas], groups: Sequence[Groups]) -> Figures:
    """√e² with its sign, float64 [n]; NaN where no source has two replicas in each group."""
    squared, _ = unbiased(sources, groups)
    return signed_root(squared)


def signed_root(squares: Figures) -> Figures:
    """√|e²| with the sign of e²: an unbiased e² of nothing is below 0 as often as above."""
    roots: Figures = np.sign(squares) * np.sqrt(np.abs(squares))
    return roots


def unbiased(sources: Sequence[Replicas], groups: Sequence[Groups]) -> tuple[Figures, Figures]:
    """e² float64 [n], and the variance [n] that was taken off it; NaN as in `distance`."""
    n, dim = len(sources[0].pairs), sources[0].means.shape[2]
    moved, noise, weight = np.zeros((n, dim)), np.zeros(n), np.zeros(n)
    for source, (first, second) in zip(sources, groups, strict=True):
        one, other = _summary(source, first), _summary(source, second)
        both = np.flatnonzero(np.isfinite(one[1] + other[1]))
        own = 2.0 / (1.0 / one[2][both] + 1.0 / other[2][both])
        moved[both] += own[:, None] * (other[0][both] - one[0][both])
        noise[both] += own**2 * (one[1][both] + other[1][both])
        weight[both] += own
    with np.errstate(invalid="ignore", divide="ignore"):
        noise = noise / weight**2
        return (moved**2).sum(axis=1) / weight**2 - noise, noise


def _summary(source: Replicas, group: IntArray) -> tuple[FloatArray, Figures, Figures]:
    """Mean float64 [n, dim], its variance [n] (NaN of fewer than two replicas), and N [n]."""
    pairs, means = source.pairs[:, group], source.means[:, group]
    total = np.maximum(pairs.sum(axis=1), 1e-9)
    mean = np.einsum("nr,nrd->nd", pairs, means) / total[:, None]
    held = (pairs > 0).sum(axis=1)
    apart = ((means - mean[:, None]) ** 2).sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (pairs**2 * apart).sum(axis=1) / total**2 * held / (held - 1)
    spread[held < 2] = np.nan
    return mean, spread, total
