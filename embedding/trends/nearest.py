"""Nearest words of many words at once: blocked matrix products and a partial sort."""

from __future__ import annotations

import numpy as np

from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray

CANDIDATE_WORDS = 10_000
"""Nearest words are looked for among this many most frequent common words."""
BLOCK_ROWS = 1024
"""Words whose similarities are computed at once: that takes 4 · CANDIDATE_WORDS bytes each."""


def nearest(
    vectors: FloatArray,
    sure: FloatArray,
    queries: IntArray,
    candidates: IntArray,
    k: int,
    block: int = BLOCK_ROWS,
) -> IntArray:
    """The k candidates nearest to each query, a word itself left out.

    vectors     float32 [n, d], unit rows
    sure        float32 [n], `sureness` of their counts; ones for plain cosines
    queries     int64 [q], rows of `vectors`
    candidates  int64 [m], strictly increasing rows of `vectors`
    returns     int64 [q, min(k, m − 1)], rows of `vectors`, nearest first
    """
    k = max(min(k, len(candidates) - 1), 0)
    found = np.empty((len(queries), k), dtype=np.int64)
    if k == 0:
        return found
    scaled = vectors[candidates] * sure[candidates, None]
    pool = np.ascontiguousarray(scaled.T)
    own = positions(candidates, queries)
    for at in range(0, len(queries), block):
        part = slice(at, at + block)
        near = vectors[queries[part]] @ pool
        mine = np.flatnonzero(own[part] >= 0)
        near[mine, own[part][mine]] = -np.inf
        found[part] = candidates[_highest(near, k)]
    return found


def _highest(figures: FloatArray, k: int) -> IntArray:
    """int64 [q, k]: columns of the k highest figures of each line of [q, m], highest first."""
    best = np.argpartition(figures, figures.shape[1] - k, axis=1)[:, figures.shape[1] - k :]
    order = np.argsort(-np.take_along_axis(figures, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def highest(figures: FloatArray, n: int) -> IntArray:
    """int64 [k ≤ n]: places of the highest finite figures of [m], highest first, the first of
    equal ones before the others.
    """
    k = min(n, len(figures))
    best = np.argpartition(-figures, k - 1)[:k] if k < len(figures) else np.arange(k)
    best = best[np.lexsort((best, -figures[best]))]
    found: IntArray = best[np.isfinite(figures[best])]
    return found


def shared(first: IntArray, second: IntArray, n: int, block: int = 256) -> IntArray:
    """int64 [q]: how many of the row numbers (< n) of each line stand in both tables."""
    total = np.zeros(len(first), dtype=np.int64)
    mark = np.zeros((min(block, len(first)), n), dtype=bool)
    for at in range(0, len(first), block):
        a, b = first[at : at + block], second[at : at + block]
        lines = np.arange(len(a))[:, None]
        mark[lines, a] = True
        total[at : at + block] = mark[lines, b].sum(axis=1)
        mark[lines, a] = False
    return total
