"""When a word changed: the date that divides its whole series best, not only its two ends.

The mean shift model of Kulkarni et al. (2015, section 5) with the distance of `usage.py`: for each
date the windows before are one time and those from it on are another, and

    T = h e²,    h = 1 / (1/N_before + 1/N_after)

is how far both lie apart against what chance gives, as the variance of e² falls with h². The date
of the highest T is the change date. Windows in which the model had not settled are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedding.records import IntArray
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.pair import settled
from embedding.trends.replicas import UsedWords
from embedding.trends.usage import usage_pairs, usage_shift


def change_dates(snapshots: Sequence[Snapshot], words: Sequence[str]) -> list[str | None]:
    """Label of the first window of each word's later use; None where it cannot be told.

    snapshots  oldest first, the last one is the reported window
    """
    if not snapshots or not words:
        return [None] * len(words)
    series = settled(snapshots, snapshots[-1])
    used = [UsedWords(usage, one.rows(words)) for one in series if (usage := one.usage) is not None]
    if len(used) < 2:
        return [None] * len(words)
    labels = [one.manifest.window.label for one in series]
    found = np.array([_divided(used, at) for at in range(1, len(used))])
    best: IntArray = np.argmax(np.where(np.isfinite(found), found, -np.inf), axis=0)
    known = np.isfinite(found).any(axis=0)
    return [
        labels[at + 1] if there else None
        for at, there in zip(best.tolist(), known.tolist(), strict=True)
    ]


def _divided(used: Sequence[UsedWords], at: int) -> np.ndarray:
    """T float64 [n] of the windows before `at` against those from it on."""
    before, after = used[:at], used[at:]
    shift = usage_shift(before[-1], after[0], before[:-1], later=after[1:])
    weight = [sum(usage_pairs(window) for window in side) for side in (before, after)]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sign(shift) * shift**2 / (1.0 / weight[0] + 1.0 / weight[1])
