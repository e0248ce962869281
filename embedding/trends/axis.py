"""Where a word stands between two poles that are given as word lists, by source and over time.

SemAxis (An, Kwak and Ahn 2018, equation 1): the axis leads from the mean of one list to the mean of
the other, a word's position is its cosine with it. Here words are the means of their contexts
(`usage.py`), without what all words have in common; so a word has a position for each window and
source, and one for each replica, whose spread gives the interval (Student's t).
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.usage import Usage
from embedding.trends.config import TrendsConfig
from embedding.trends.distributions import student_half_width
from embedding.trends.likeness import pooled
from embedding.trends.lineage import lineage
from embedding.trends.material import Snapshots

AxisCache = MutableMapping[
    tuple[str, tuple[str, ...], tuple[str, ...]], tuple[FloatArray, FloatArray]
]

ALL = "all"
"""Stands for all sources together."""


@dataclass(frozen=True)
class AxisPoint:
    """A word's position in one window and source, with a 95 % interval; None: too few mentions."""

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
    id: str = "latest",  # noqa: A002 - as the store names it
    kept: AxisCache | None = None,
) -> AxisHistory:
    """Follow a word along an axis through the windows up to snapshot `id`.

    kept  remembers the axes of snapshots from one word to the next

    Raises InputError when a list has no word that the last window used, or there are no sums of
    usage; SnapshotError when the last snapshot cannot be read.
    """
    config = config or TrendsConfig()
    last = store.open(id)
    if last.usage is None:
        raise InputError(
            f"snapshot {last.id} does not say how words were used: too little was read in its "
            "window, or it was trained without `server.usage`. An axis needs it."
        )
    known = tuple(len(_known(last, names)) for names in (positive, negative))
    for side, names, n in zip(("positive", "negative"), (positive, negative), known, strict=True):
        if not n:
            raise InputError(
                f"{side}: none of {', '.join(names)[:200] or 'no words'} was used in "
                f"{last.manifest.window.label}; give words that were."
            )
    points: list[AxisPoint] = []
    for ref in lineage(store.list(), last.ref)[-config.history_windows :]:
        points += _points(store.open(ref.id), word, positive, negative, kept)
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
    kept: AxisCache | None,
) -> list[AxisPoint]:
    usage, row = snapshot.usage, snapshot.index(word)
    if usage is None or row is None:
        return []
    key = (snapshot.id, tuple(positive), tuple(negative))
    found = None if kept is None else kept.get(key)
    if found is None:
        found = _axis(snapshot, usage, positive, negative)
        if kept is not None:
            kept[key] = found
    centre, axis = found
    if not len(axis):
        return []
    own = np.flatnonzero(usage.rows == row)
    by_source = [(usage.sources[at], np.array([at])) for at in own.tolist()]
    groups = [(ALL, own), *by_source] if len(own) > 1 else [(ALL, own)] if len(own) else []
    return [_point(snapshot, name, at, usage, centre, axis) for name, at in groups]


def _axis(
    snapshot: Snapshot, usage: Usage, positive: Sequence[str], negative: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """What all words have in common and the axis, float32 [dim]; the axis is empty where a list
    has no word that was used.
    """
    poles = [_known(snapshot, names) for names in (positive, negative)]
    none = np.empty(0, dtype=np.float32)
    if not all(len(pole) for pole in poles):
        return none, none
    rows, means = pooled(usage)
    ends = [means[np.isin(rows, pole)].mean(axis=0) for pole in poles]
    return means.mean(axis=0).astype(np.float32), ends[0] - ends[1]


def _point(
    snapshot: Snapshot,
    source: str,
    at: IntArray,
    usage: Usage,
    centre: FloatArray,
    axis: FloatArray,
) -> AxisPoint:
    pairs = usage.pairs[at].astype(np.float64)
    means = usage.means[at].astype(np.float64)
    total = pairs.sum(axis=0)
    held = np.flatnonzero(total > 0)
    replicas = np.einsum("nr,nrd->rd", pairs, means)[held] / total[held, None]
    share = total[held] / total.sum()
    position = _cosine(share @ replicas - centre, axis)
    low = high = None
    if len(held) > 1:
        each = np.array([_cosine(one - centre, axis) for one in replicas])
        spread = np.sqrt(
            (share**2 * (each - share @ each) ** 2).sum() * len(held) / (len(held) - 1)
        )
        half = student_half_width(0.95, len(held) - 1) * float(spread)
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
    """Rows of those words that were used in the window."""
    rows = [row for name in names if (row := snapshot.index(name)) is not None]
    used = np.empty(0, np.int64) if snapshot.usage is None else snapshot.usage.rows
    found: IntArray = np.intersect1d(np.array(rows, dtype=np.int64), used)
    return found


def _cosine(vector: FloatArray, axis: FloatArray) -> float:
    length = float(np.linalg.norm(vector) * np.linalg.norm(axis))
    return float(vector @ axis) / length if length else 0.0
