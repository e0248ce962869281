"""A filter for sums of usage: axes on which words hardly differ count little.

Sums of usage lie in the space of one training's output rows. Words differ much along some axes of
it and hardly along others, and a training that only drew other numbers has about as much noise on
each; so small axes hold less of what the texts say and more of how this training came out. Wiener's
filter (Wiener 1949; for a spectrum of principal axes: the shrinkage of ridge regression) takes each
axis at

    w / (w + λ),    λ = SHARE · mean w

of its length, w the variance of words' means along it. Nothing of it hangs on which words moved:
both times go into one mean of each word.

Where contexts were added up by several vectors (`snapshots/usage.py`), each kind is filtered by
itself and brought to its `WEIGHTS` of the first one's spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from embedding.trends.replicas import UsedWords
from embedding.trends.significance import Figures

SHARE = 0.25
"""λ against the mean variance of an axis (benchmarks/results/drift-2026-11-23T0545.md)."""
WEIGHTS = (1.0, 1.0, 0.5)
"""What output rows, input rows and what stands around contexts count, squared (ADR 19)."""
LEAST = 2
"""Words for each axis below which their spread is not known, and nothing is filtered."""


def wiener(windows: Sequence[UsedWords], tables: int = 1) -> tuple[Figures, ...] | None:
    """float64 [dim, dim] for each table, by which its sums are multiplied.

    None of too few words, or of no spread.

    windows  the same words at both times, the most frequent ones
    tables   how many of those that are compared, if all windows have them
    """
    tables = min(tables, len(WEIGHTS), *(window.usage.tables for window in windows))
    placed = _placed([replace(window, axes=(None,) * tables) for window in windows])
    found: list[Figures] = []
    whole = 0.0
    for columns, weight in zip(np.split(placed, tables, axis=1), WEIGHTS, strict=False):
        if len(columns) < LEAST * columns.shape[1]:
            return None
        variance, axes = np.linalg.eigh(columns.T @ columns / len(columns))
        variance = np.maximum(variance, 0.0)
        noise = SHARE * variance.mean()
        if not noise > 0 and not found:
            return None
        share = variance / (variance + noise) if noise > 0 else np.zeros(len(variance))
        spread = float((variance * share**2).sum())
        whole = whole or spread
        found.append(axes * (share * np.sqrt(weight * whole / max(spread, 1e-30))))
    return tuple(found)


def _placed(windows: Sequence[UsedWords]) -> Figures:
    """float64 [m, k · dim]: means over both times of the words used, less what all of them have."""
    n, dim = len(windows[0].rows), windows[0].usage.means.shape[2]
    total, summed = np.zeros(n), np.zeros((n, len(windows[0].axes) * dim))
    for window in windows:
        for source in window.usage.by_source:
            pairs, means = window.replicas(source)
            total += pairs.sum(axis=1)
            summed += np.einsum("nr,nrd->nd", pairs, means)
    known = total > 0
    placed: Figures = summed[known] / total[known, None]
    return placed - placed.mean(axis=0) if len(placed) else placed
