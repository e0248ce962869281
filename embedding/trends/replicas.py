"""The replicas of two times side by side, and how far both times lie apart.

A replica of a window holds what the contexts of its words say in some of the window's texts
(`snapshots/usage.py`). Replicas of several windows make one time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
        placed, chosen = self._of(source)
        return self._pairs(placed, chosen), self._means(placed, chosen)

    def _pairs(self, placed: IntArray, chosen: IntArray) -> FloatArray:
        pairs = np.zeros((len(self.rows), self.usage.pairs.shape[1]), dtype=np.float32)
        pairs[placed] = self.usage.pairs[chosen]
        return pairs

    def _means(self, placed: IntArray, chosen: IntArray) -> FloatArray:
        means = np.zeros((len(self.rows), *self.usage.means.shape[1:]), dtype=np.float32)
        means[placed] = self.usage.means[chosen]
        return means

    def _of(self, source: str) -> tuple[IntArray, IntArray]:
        """Which of the words a source has, and where in the sums they are."""
        own = self.usage.by_source.get(source)
        if own is None or not len(own):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        at = positions(self.usage.rows[own], self.rows)
        placed = np.flatnonzero(at >= 0)
        return placed, own[at[placed]]


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


def signed_root(squares: TestArray) -> TestArray:
    """√|e²| with the sign of e²: an unbiased e² of nothing is below 0 as often as above."""
    roots: TestArray = np.sign(squares) * np.sqrt(np.abs(squares))
    return roots


def unbiased(sources: Iterable[Replicas]) -> tuple[TestArray, TestArray]:
    """e² float64 [n] of the earlier and the later time, and the variance [n] taken off.

    NaN where no source has two replicas at each time.
    """
    moved: TestArray | None = None
    noise = weight = np.zeros(0)
    for source in sources:
        n, _, dim = source.means.shape
        if moved is None:
            moved, noise, weight = np.zeros((n, dim)), np.zeros(n), np.zeros(n)
        before, after = slice(source.earlier), slice(source.earlier, None)
        centred = _centred(source)
        (one, one_noise, one_n), (other, other_noise, other_n) = (
            _summary(source.pairs[:, part], centred[:, part]) for part in (before, after)
        )
        both = np.isfinite(one_noise + other_noise)
        own = np.where(both, 2.0 / (1.0 / one_n + 1.0 / other_n), 0.0)
        moved += own[:, None] * (other - one)
        noise += np.where(both, own**2 * (one_noise + other_noise), 0.0)
        weight += own
    if moved is None:
        raise ValueError("there is no source to compare.")
    with np.errstate(invalid="ignore", divide="ignore"):
        noise = noise / weight**2
        return (moved**2).sum(axis=1) / weight**2 - noise, noise


def _centred(source: Replicas) -> TestArray:
    """Means less what all replicas of a word have in common, which no difference shows."""
    total = np.maximum(source.pairs.sum(axis=1), _LEAST)
    common = np.einsum("nr,nrd->nd", source.pairs, source.means) / total[:, None]
    centred: TestArray = source.means - common[:, None]
    return centred


def _summary(pairs: TestArray, means: TestArray) -> tuple[TestArray, TestArray, TestArray]:
    """Mean of one time [n, dim], its variance [n] (NaN of fewer than two replicas), and N [n].

    pairs float64 [n, r] and means [n, r, dim] of the replicas of that time
    """
    total = np.maximum(pairs.sum(axis=1), _LEAST)
    share = pairs / total[:, None]
    mean = (share[:, None] @ means)[:, 0]
    rest = means - mean[:, None]
    apart = np.einsum("nrd,nrd->nr", rest, rest)
    held = (pairs > 0).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (share**2 * apart).sum(axis=1) * held / (held - 1)
    spread[held < 2] = np.nan
    return mean, spread, total
