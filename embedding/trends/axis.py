"""Where a word stands between two poles that are given as word lists, by source and over time.

SemAxis (An, Kwak and Ahn 2018, equation 1): the axis leads from the mean of one list to the mean of
the other, a word's position is its cosine with it. Here words are the means of their contexts
(`usage.py`), without what all words have in common; so a word has a position for each window and
source. The interval is of two parts: one position for each replica of the text, and one with each
word of the lists left out (Student's t; the jackknife of Efron and Stein 1981, equation 1.5). For
between any two lists a word stands somewhere: without the second part lists drawn at random put
four words of five on a side. How many standard errors the second part has is what 19 of 20 lists
stay within that are drawn from the words of both (a studentised permutation test; Janssen 1997). Of
two lists of three words and fewer, so many draws are the lists themselves that no word is on one.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.usage import Usage
from embedding.trends.config import TrendsConfig
from embedding.trends.likeness import pooled
from embedding.trends.material import Snapshots, lineage, needed_usage
from embedding.trends.significance import TestArray, student_half_width

ALL = "all"
"""Stands for all sources together."""
_DRAWS = 399
_ROUNDED = 1 + 1e-6
"""The same lists in another order say the same but for rounding."""
LEAST_POLES = 2
"""Words of each list that must have been used for an interval."""


@dataclass(frozen=True)
class SemAxis:
    """Of one snapshot: what all words have in common, float32 [dim], and the words of each list
    that were used, float32 [k, dim].
    """

    centre: FloatArray
    positive: FloatArray
    negative: FloatArray

    @cached_property
    def line(self) -> FloatArray:
        """From the mean of one list to that of the other, float32 [dim]."""
        line: FloatArray = self.positive.mean(axis=0) - self.negative.mean(axis=0)
        return line

    def position(self, vector: FloatArray) -> float:
        """Of a word that is used so, [dim]."""
        away = vector - self.centre
        length = float(np.linalg.norm(away) * np.linalg.norm(self.line))
        return float(away @ self.line) / length if length else 0.0

    def half_width(self, vector: FloatArray) -> float | None:
        """Half of the interval for which words the lists have; None: one has a single word."""
        sizes = len(self.positive), len(self.negative)
        if min(sizes) < LEAST_POLES:
            return None
        words = np.concatenate([self.positive, self.negative])
        sides = np.tile(np.repeat([True, False], sizes), (1 + _DRAWS, 1))
        sides[1:] = np.random.default_rng(0).permuted(sides[1:], axis=1)
        away, errors = _positions(vector - self.centre, words, sides)
        deviates = np.abs(away) / np.maximum(errors, 1e-12)
        most = float(np.quantile(deviates[1:], 0.95, method="higher"))
        return most * float(errors[0]) * _ROUNDED


AxisCache = MutableMapping[tuple[str, tuple[str, ...], tuple[str, ...]], "SemAxis | None"]


@dataclass(frozen=True)
class AxisPoint:
    """A word's position in one window and source, with a 95 % interval.

    low, high  None: the word has too few mentions, or only one word of a list was used
    """

    snapshot: str
    label: str
    source: str
    mentions: int
    position: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class AxisHistory:
    """A word between two poles: -1 at all of `negative`, 1 at all of `positive`.

    poles   how many words of the lists the last window knows
    unused  words of both lists that the last window did not use
    """

    word: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    poles: tuple[int, int]
    points: tuple[AxisPoint, ...]
    unused: tuple[str, ...] = ()


def axis_history(
    store: Snapshots,
    word: str,
    positive: Sequence[str],
    negative: Sequence[str],
    config: TrendsConfig | None = None,
    *,
    id: str = "latest",
    cache: AxisCache | None = None,
) -> AxisHistory:
    """Follow a word along an axis through the windows up to snapshot `id`.

    cache  remembers the axes of snapshots from one word to the next

    Raises InputError when a list has no word that the last window used, or there are no sums of
    usage; SnapshotError when the last snapshot cannot be read.
    """
    config = config or TrendsConfig()
    last = store.open(id)
    needed_usage(last, "An axis")
    known = tuple(len(_known(last, names)) for names in (positive, negative))
    for side, names, n in zip(("positive", "negative"), (positive, negative), known, strict=True):
        if not n:
            raise InputError(
                f"{side}: none of {', '.join(names)[:200] or 'no words'} was used in "
                f"{last.manifest.window.label}; give words that were."
            )
    points: list[AxisPoint] = []
    for ref in lineage(store.list(), last.ref)[-config.history_windows :]:
        points += _points(store.open(ref.id), word, positive, negative, cache)
    return AxisHistory(
        word=word,
        positive=tuple(positive),
        negative=tuple(negative),
        poles=(known[0], known[1]),
        points=tuple(points),
        unused=tuple(name for name in (*positive, *negative) if not len(_known(last, [name]))),
    )


def _points(
    snapshot: Snapshot,
    word: str,
    positive: Sequence[str],
    negative: Sequence[str],
    cache: AxisCache | None,
) -> list[AxisPoint]:
    usage, row = snapshot.usage, snapshot.index(word)
    if usage is None or row is None:
        return []
    key = (snapshot.id, tuple(positive), tuple(negative))
    cache = {} if cache is None else cache
    if key not in cache:
        cache[key] = _axis(snapshot, usage, positive, negative)
    axis = cache[key]
    if axis is None:
        return []
    own = np.flatnonzero(usage.rows == row)
    by_source = [(usage.sources[at], np.array([at])) for at in own.tolist()]
    groups = [(ALL, own), *by_source] if len(own) > 1 else [(ALL, own)] if len(own) else []
    return [_point(snapshot, name, at, usage, axis) for name, at in groups]


def _axis(
    snapshot: Snapshot, usage: Usage, positive: Sequence[str], negative: Sequence[str]
) -> SemAxis | None:
    poles = [_known(snapshot, names) for names in (positive, negative)]
    if not all(len(pole) for pole in poles):
        return None
    rows, means = pooled(usage)
    centre = means.mean(axis=0).astype(np.float32)
    return SemAxis(centre, *(means[np.isin(rows, pole)] for pole in poles))


def _point(snapshot: Snapshot, source: str, at: IntArray, usage: Usage, axis: SemAxis) -> AxisPoint:
    pairs = usage.pairs[at].astype(np.float64)
    means = usage.means[at].astype(np.float64)
    total = pairs.sum(axis=0)
    used = np.flatnonzero(total > 0)
    replicas = np.einsum("nr,nrd->rd", pairs, means)[used] / total[used, None]
    share = total[used] / total.sum()
    position = axis.position(share @ replicas)
    choice = axis.half_width(share @ replicas)
    low = high = None
    if len(used) > 1 and choice is not None:
        along = np.array([axis.position(replica) for replica in replicas])
        spread = np.sqrt(
            (share**2 * (along - share @ along) ** 2).sum() * len(used) / (len(used) - 1)
        )
        texts = student_half_width(0.95, len(used) - 1) * float(spread)
        half = (texts**2 + choice**2) ** 0.5
        low, high = max(position - half, -1.0), min(position + half, 1.0)
    return AxisPoint(
        snapshot=snapshot.id,
        label=snapshot.manifest.window.label,
        source=source,
        mentions=int(usage.mentions[at].sum()),
        position=position,
        low=low,
        high=high,
    )


def _known(snapshot: Snapshot, names: Sequence[str]) -> IntArray:
    rows = [row for name in names if (row := snapshot.index(name)) is not None]
    used = np.empty(0, np.int64) if snapshot.usage is None else snapshot.usage.rows
    known: IntArray = np.intersect1d(np.array(rows, dtype=np.int64), used)
    return known


def _positions(
    vector: FloatArray, words: FloatArray, sides: npt.NDArray[np.bool_]
) -> tuple[TestArray, TestArray]:
    """Position of a vector [dim] between lists of words [k, dim], and its standard error by the
    lists, float64 [n] each. sides: bool [n, k], which words are the positive ones.
    """
    size = np.where(sides, sides.sum(axis=1, keepdims=True), (~sides).sum(axis=1, keepdims=True))
    signed = np.where(sides, 1.0, -1.0)
    lines = (signed / size) @ words
    own = np.where(
        sides[..., None], *(((side / size) @ words)[:, None] for side in (sides, ~sides))
    )
    rest = lines[:, None] + (signed / (size - 1))[..., None] * (own - words)
    lengths = np.linalg.norm(vector) * np.linalg.norm(rest, axis=2)
    positions = (rest @ vector) / np.maximum(lengths, 1e-12)
    means = np.where(
        sides,
        *(
            (positions * side).sum(axis=1, keepdims=True) / side.sum(axis=1, keepdims=True)
            for side in (sides, ~sides)
        ),
    )
    variance = ((size - 1) / size * (positions - means) ** 2).sum(axis=1)
    whole = np.linalg.norm(vector) * np.linalg.norm(lines, axis=1)
    return (lines @ vector) / np.maximum(whole, 1e-12), np.sqrt(variance)
