"""Significance by permuting documents: how far would a word's uses lie apart if time meant nothing?

The replicas of both times hold different documents. Dealt out anew to two groups, they show what
chance alone does (shuffled time); halves of one window show it for a window (same-window halves).
Some deals put half of each time in each group. The mean of a few texts has heavier tails than that
of many, so in others one group holds only as much text as the shorter time has: p is told by these.
A word that did change lies a little apart in them, which would cost it its place in the ranking, so
z is told by the former.

Some words come in few texts that repeat themselves and jump more than others of like frequency, so
shifts are told in units of the word's own null spread, moderated towards that of its band (Smyth
2004). The nulls of all words are pooled, so that few divisions give small p values (SAM, Tusher et
al. 2001).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from embedding.records import IntArray
from embedding.trends.noise import NoiseFloor, noise_floor
from embedding.trends.pair import ANCHORS, SETTLED, Pair
from embedding.trends.replicas import (
    Division,
    Groups,
    Replicas,
    UsedWords,
    signed_root,
    truly,
)
from embedding.trends.significance import Figures, robust_scale
from embedding.trends.usage import drift, usage_pairs, usage_squares

DIVISIONS = 16
"""Ways in which the documents of both times are dealt out."""
PRIOR = 16
"""The band's spread counts as much as that of so many divisions."""
RANKED = 32
"""The same for z: a ranking goes further down than what is sure, and there a word's own spread,
that of sixteen divisions in one training's tables, would be the noise that decides."""
MOVED = 4.0
"""A word further above its band has no part in the null: its documents differ by more than chance,
so dealing them out anew parts them more than chance does (Xie, Pan and Khodursky 2005)."""
TOP = np.arange(ANCHORS)
"""The most frequent words, by which it is told whether the model had settled."""
HALVES = 2
"""Ways in which the documents of the later window are divided."""


@dataclass(frozen=True)
class Permuted:
    """What permuting says of n words.

    z       float64 [n]: shift (`steadied`) in units of the word's own null spread; 0 if it could
            not be compared
    p       float64 [n], one-sided; 1 for a word that could not be compared
    floors  noise floors of shuffled time and of same-window halves
    """

    z: Figures
    p: Figures
    floors: Mapping[str, NoiseFloor] = field(default_factory=dict)


def permuted(pair: Pair, rows: IntArray, exposure: Figures, band_words: int) -> Permuted:
    """Judge the usage of `rows` by permuting.

    Nothing is sure without sums of both windows, or when the model was not settled between them:
    then it moved each word's sums in its own way.
    """
    if pair.used_before is None or pair.used_after is None:
        return Permuted(np.zeros(len(rows)), np.ones(len(rows)))
    top = TOP[: len(pair)]
    settled = drift(pair.used_before.take(top), pair.used_after.take(top)) <= SETTLED
    before, after, *past = pair.used(rows)
    even, uneven = both_deals([before, *past], after)
    halved = [_halved(at) for at in range(HALVES)]
    divisions = [truly, *(dealt(one) for one in (*even, *uneven)), *halved]
    squares, taken = usage_squares(before, after, past, divisions)
    shifts = signed_root(squares)
    timed, small, halves = np.split(shifts, np.cumsum([1 + len(even), len(uneven)]))
    each = zip(squares[: len(timed)], taken[: len(timed)], strict=True)
    steady = np.array([steadied(*one, exposure, band_words) for one in each])
    floors = {
        "shuffled_time": _floor(timed[1:], exposure, band_words),
        "same_window": _floor(halves, exposure, band_words),
    }
    z, p = np.zeros(len(rows)), np.ones(len(rows))
    known = np.isfinite(timed).all(axis=0)
    if known.any():
        told, steady = exposure[known], steady[:, known]
        z[known], _ = judged(steady[0], steady[1:], told, band_words, RANKED)
    known = np.isfinite(shifts[0]) & np.isfinite(small).all(axis=0)
    if known.any() and settled:
        _, p[known] = judged(shifts[0, known], small[:, known], exposure[known], band_words)
    return Permuted(z, p, floors)


def both_deals(earlier: Sequence[UsedWords], later: UsedWords) -> tuple[list[Groups], list[Groups]]:
    """Deals of half of each time, and those of which one group is as small as the shorter time."""
    parts = sum(window.usage.means.shape[1] for window in earlier), later.usage.means.shape[1]
    told = sum(float(usage_pairs(window).sum()) for window in earlier)
    return deals(*parts), deals(*parts, told / max(float(usage_pairs(later).sum()), 1.0))


def deals(earlier: int, later: int, longer: float | None = None) -> list[Groups]:
    """Different ways to deal out replicas of both times to two groups.

    longer  how many times as much text the earlier time has as the later one: the first group holds
            as much as the shorter of them, half of it from either; None: half of each time
    """
    rng = np.random.default_rng(0)
    cuts = [earlier // 2, later // 2]
    if longer is not None:
        cuts = [_share(earlier, longer), _share(later, 1.0 / max(longer, 1e-9))]
    times = np.arange(earlier), np.arange(earlier, earlier + later)
    found: dict[tuple[int, ...], Groups] = {}
    for _ in range(20 * DIVISIONS):
        mixed = [rng.permutation(side) for side in times]
        parts = [np.split(side, [cut]) for side, cut in zip(mixed, cuts, strict=True)]
        first, second = (np.sort(np.concatenate(group)) for group in zip(*parts, strict=True))
        key = min(tuple(first.tolist()), tuple(second.tolist()))
        if len(found) < DIVISIONS:
            found.setdefault(key, (first, second))
    return list(found.values())


def _share(replicas: int, longer: float) -> int:
    """How many of a time's replicas hold half of the text of the shorter time."""
    return max(1, min(round(replicas / 2 / max(longer, 1.0)), replicas // 2))


def steadied(squared: Figures, noise: Figures, exposure: Figures, band_words: int) -> Figures:
    """√e² with its sign float64 [n], half of whose variance is that of the band; NaN stays NaN.

    A few replicas say badly how large the variance of a mean is, and what is taken off too much or
    too little of it moves a word up and down the ranking (moderated variances, Smyth 2004).

    squared, noise  e² float64 [n] and what was taken off it (`usage_squares`)
    """
    known = np.isfinite(squared)
    found = np.full(len(squared), np.nan)
    own = noise[known]
    band = np.exp(_at(np.log(np.maximum(own, 1e-18)), exposure[known], band_words))
    found[known] = signed_root(squared[known] + (own - band) / 2)
    return found


def judged(
    observed: Figures,
    null: Figures,
    exposure: Figures,
    band_words: int,
    prior: int = PRIOR,
) -> tuple[Figures, Figures]:
    """z float64 [n], and p: share of all words' null shifts that are as high as each observed one.

    null   float64 [divisions, n]
    prior  divisions that the band's spread counts for (PRIOR, RANKED)

    The space of a model that goes on learning drifts, which lifts all observed e² alike: what the
    median of a band is above that of its null is taken off, and what is left of it in the spread of
    all words widens the unit. For p the unit of a word is its root mean square over all divisions,
    the true one too, so that it is the same for each of them; for z that of its null alone.
    """
    squares, chance = _squared(observed), np.median(_squared(null), axis=0)
    drifted = _at(squares, exposure, band_words) - _at(chance, exposure, band_words)
    every = np.concatenate([signed_root(squares - drifted)[None], null])
    units = every / _unit(every, exposure, band_words, prior)
    pooled = np.sort(units[1:, units[0] < MOVED], axis=None)
    wider = max(robust_scale(units[0])[1] / max(robust_scale(pooled)[1], 1e-9), 1.0)
    above = len(pooled) - np.searchsorted(pooled, units[0] / wider, side="left")
    z: Figures = every[0] / _unit(null, exposure, band_words, prior) / wider
    return z, (1 + above) / (1 + len(pooled))


def _unit(shifts: Figures, exposure: Figures, band_words: int, prior: int) -> Figures:
    """Root mean square float64 [n] of shifts [divisions, n], moderated towards that of the band."""
    own = (shifts**2).mean(axis=0)
    band = np.exp(_at(np.log(np.maximum(own, 1e-18)), exposure, band_words))
    unit: Figures = np.sqrt((prior * band + len(shifts) * own) / (prior + len(shifts)))
    return unit


def _squared(shift: Figures) -> Figures:
    """Inverse of `signed_root`."""
    squares: Figures = np.sign(shift) * shift**2
    return squares


def _at(values: Figures, exposure: Figures, band_words: int) -> Figures:
    """The median of each word's band."""
    return noise_floor(values, exposure, band_words).at(exposure)[0]


def dealt(groups: Groups) -> Division:
    """The same deal for every source."""

    def divide(replicas: Replicas) -> Groups:
        del replicas
        return groups

    return divide


def _halved(seed: int) -> Division:
    """Half of the replicas of the later window against its other half."""

    def divide(replicas: Replicas) -> Groups:
        later = np.random.default_rng(seed).permutation(replicas.truly[1])
        return later[: len(later) // 2], later[len(later) // 2 :]

    return divide


def _floor(shifts: Figures, exposure: Figures, band_words: int) -> NoiseFloor:
    """The floor of several divisions together."""
    values, where = shifts.reshape(-1), np.tile(exposure, len(shifts))
    known = np.isfinite(values)
    return noise_floor(values[known], where[known], band_words * len(shifts))
