"""When a word changed: the date that divides its whole series best, not only its two ends.

The mean shift model of Kulkarni et al. (2015, section 5) with the distance of `usage.py`: for each
date the windows before are one time and those from it on are another, and

    T = h e²,    h = 1 / (1/N_before + 1/N_after)

is how far both lie apart against what chance gives, as the variance of e² falls with h². The date
of the highest T is the change date. Windows in which the model had not converged are left out. The
replicas hold different texts: leaving out each of them in turn gives the interval of the date.

A word that never changed has such a date, too. Whether it means anything is judged against words of
like frequency, which the space carries along as it drifts: by e² over its variance at their dates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.kernel.records import IntArray
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.config import TrendsConfig
from embedding.trends.material import Snapshots, windows_up_to
from embedding.trends.pair import stationary
from embedding.trends.replicas import UsedWords
from embedding.trends.significance import TestArray

LIKE = 200
"""Words of like frequency that a word's date is held against."""
_LEAST = 20
"""Fewer than these say nothing."""


@dataclass(frozen=True)
class ChangeDate:
    """Labels of the first window of a word's later use, and of the ends of its interval."""

    since: str
    low: str
    high: str


@dataclass(frozen=True)
class WordChange:
    """A word's change date; None where it is unknown.

    p      share of the words of like frequency whose own date divides them as clearly; None where
           there are too few of them
    clear  whether p is at most the configured false-discovery rate
    """

    word: str
    date: ChangeDate | None
    p: float | None
    clear: bool


def change_dates(snapshots: Sequence[Snapshot], words: Sequence[str]) -> list[ChangeDate | None]:
    """The change date of each word; None where it is unknown.

    snapshots  oldest first, the last one is the reported window
    """
    if not snapshots or not words:
        return [None] * len(words)
    labels, used = _used(snapshots, words)
    return _dated(labels, used) if len(used) > 1 else [None] * len(words)


def word_change(store: Snapshots, word: str, config: TrendsConfig | None = None) -> WordChange:
    """One word's change date over all windows, and whether it stands out.

    Raises SnapshotError when the last snapshot cannot be read; earlier ones that cannot are left
    out.
    """
    config = config or TrendsConfig()
    last = store.open()
    snapshots, _ = windows_up_to(store, last, config.history_windows)
    row = last.index(word)
    if row is None:
        return WordChange(word, None, None, clear=False)
    order = np.argsort(-np.asarray(last.counts), kind="stable")
    at = int(np.flatnonzero(order == row)[0])
    start = max(0, min(at - LIKE // 2, len(order) - LIKE - 1))
    others = [int(o) for o in order[start : start + LIKE + 1] if o != row]
    names = [word, *(last.words[o] for o in others)]
    labels, used = _used(snapshots, names)
    if len(used) < 2:
        return WordChange(word, None, None, clear=False)
    date = _dated(labels, [one.take(np.zeros(1, np.int64)) for one in used])[0]
    if date is None:
        return WordChange(word, None, None, clear=False)
    height, clearness = _profile(used)
    found = _best(height, clearness)
    rest = found[1:][np.isfinite(found[1:])]
    if len(rest) < _LEAST:
        return WordChange(word, date, None, clear=False)
    p = float((1 + np.count_nonzero(rest >= found[0])) / (1 + len(rest)))
    return WordChange(word, date, p, clear=p <= config.false_discovery)


def _used(snapshots: Sequence[Snapshot], words: Sequence[str]) -> tuple[list[str], list[UsedWords]]:
    """Stationary windows that have sums of usage: their labels, and the use of `words` in them."""
    labels, used = [], []
    for one in stationary(snapshots, snapshots[-1]):
        if one.usage is not None:
            labels.append(one.manifest.window.label)
            used.append(UsedWords(one.usage, one.rows(words)))
    return labels, used


def _dated(labels: Sequence[str], used: Sequence[UsedWords]) -> list[ChangeDate | None]:
    height = _profile(used)[0]
    replicas = used[0].usage.pairs.shape[1]
    tries = [height, *(_profile(used, without)[0] for without in range(replicas))]
    dates = np.stack([_argmax(one) for one in tries])
    return [
        ChangeDate(*(labels[at + 1] for at in (own[0], min(own), max(own))))
        if own[0] >= 0
        else None
        for own in _filled(dates).T.tolist()
    ]


def _argmax(height: TestArray) -> IntArray:
    """int64 [n]: the best date of each word, -1 where there is none."""
    best = np.argmax(np.where(np.isfinite(height), height, -np.inf), axis=1)
    return np.where(np.isfinite(height).any(axis=1), best, -1)


def _filled(dates: IntArray) -> IntArray:
    """A split that gives no date, for want of texts, says nothing of the interval."""
    return np.where(dates < 0, dates[:1], dates)


def _best(height: TestArray, clearness: TestArray) -> TestArray:
    """The clearness float64 [n] at each word's date; NaN where there is none."""
    at = _argmax(height)
    found: TestArray = clearness[np.arange(len(at)), np.maximum(at, 0)]
    return np.where(at < 0, np.nan, found)


def _profile(used: Sequence[UsedWords], without: int | None = None) -> tuple[TestArray, TestArray]:
    """T and e² over its variance, float64 [n, windows - 1]; NaN as in `replicas.unbiased`.

    without  a replica that is left out
    """
    n, dates, dim = len(used[0].rows), len(used) - 1, used[0].usage.means.shape[2]
    moved, noise, weight = np.zeros((n, dates, dim)), np.zeros((n, dates)), np.zeros((n, dates))
    totals = np.zeros((2, n, dates))
    for source in sorted({s for window in used for s in window.usage.by_source}):
        sides = _sides(used, source, without)
        for total, side in zip(totals, sides, strict=True):
            total += side[2]
        finite = np.isfinite(sides[0][1] + sides[1][1])
        with np.errstate(divide="ignore"):
            own = np.where(finite, 2.0 / (1.0 / sides[0][2] + 1.0 / sides[1][2]), 0.0)
        moved += own[..., None] * np.where(finite[..., None], sides[1][0] - sides[0][0], 0.0)
        noise += own**2 * np.where(finite, sides[0][1] + sides[1][1], 0.0)
        weight += own
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = noise / weight**2
        squared = (moved**2).sum(axis=2) / weight**2 - variance
        return squared / (1.0 / totals[0] + 1.0 / totals[1]), squared / variance


DateSide = tuple[TestArray, TestArray, TestArray]
"""Mean [n, dates, dim], its variance [n, dates] (NaN of fewer than two replicas), and N."""


def _sides(
    used: Sequence[UsedWords], source: str, without: int | None
) -> tuple[DateSide, DateSide]:
    """The windows before each date, and those from it on, as in `replicas.py`, by running sums."""
    n, dim = len(used[0].rows), used[0].usage.means.shape[2]
    total, square, held, length = (np.zeros((n, len(used))) for _ in range(4))
    sums, heavy = np.zeros((n, len(used), dim)), np.zeros((n, len(used), dim))
    for at, window in enumerate(used):
        pairs, means = (each.astype(np.float64) for each in window.replicas(source))
        if without is not None and without < pairs.shape[1]:
            pairs[:, without] = 0.0
        total[:, at], square[:, at] = pairs.sum(axis=1), (pairs**2).sum(axis=1)
        held[:, at] = (pairs > 0).sum(axis=1)
        sums[:, at] = np.einsum("nr,nrd->nd", pairs, means)
        heavy[:, at] = np.einsum("nr,nrd->nd", pairs**2, means)
        length[:, at] = (pairs**2 * (means**2).sum(axis=2)).sum(axis=1)
    columns = (total, square, held, length, sums, heavy)
    before = [np.cumsum(column, axis=1)[:, :-1] for column in columns]
    after = [column.sum(axis=1)[:, None] - b for column, b in zip(columns, before, strict=True)]
    return _side(*before), _side(*after)


def _side(
    total: TestArray,
    square: TestArray,
    held: TestArray,
    length: TestArray,
    sums: TestArray,
    heavy: TestArray,
) -> DateSide:
    whole = np.maximum(total, 1e-9)
    mean = sums / whole[..., None]
    apart = length - 2 * (mean * heavy).sum(axis=2) + (mean**2).sum(axis=2) * square
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.maximum(apart, 0.0) / whole**2 * held / (held - 1)
    spread[held < 1.5] = np.nan
    return mean, spread, whole
