"""Nearest words, exact, in blocks, over memory-mapped tables."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedding.nearness import directions_of
from embedding.records import FloatArray, IntArray

BLOCK = 16_384


def inverse_norms(vectors: FloatArray) -> FloatArray:
    """float32 [n]: 1/‖row‖, 0 for a row of zeros (its cosine with anything is 0)."""
    out = np.zeros(len(vectors), np.float32)
    for at in range(0, len(vectors), BLOCK):
        norms = np.linalg.norm(vectors[at : at + BLOCK], axis=1)
        np.divide(1.0, norms, out=out[at : at + BLOCK], where=norms > 0, casting="unsafe")
    return out


def nearest(
    vectors: FloatArray,
    scale: FloatArray,
    queries: FloatArray,
    n: int,
    *,
    exclude: IntArray | None = None,
    centre: FloatArray | None = None,
) -> tuple[IntArray, FloatArray]:
    """The n rows nearest to each query.

    vectors  float32 [m, d], may be memory-mapped
    scale    float32 [m]: `inverse_norms` for cosines; with a centre `sureness`, for nearness
    centre   float32 [d] of embedding/nearness.py, which is taken out; None: plain cosines
    queries  float32 [q, d]
    exclude  int64 [q]: one row left out for each query (-1: none)
    returns  rows int64 [q, k] and figures float32 [q, k], k = min(n, m), highest first and by row
             where equal; an excluded row has -inf and can only be last
    """
    if centre is None:
        units = queries * inverse_norms(queries)[:, None]
    else:
        units = directions_of(queries, centre)
    best_rows = np.empty((len(queries), 0), np.int64)
    best = np.empty((len(queries), 0), np.float32)
    for at in range(0, len(vectors), BLOCK):
        block = vectors[at : at + BLOCK]
        block = block if centre is None else directions_of(block, centre)
        # One query is bound by memory: the threads of BLAS would cost more than they save.
        figures = np.vecdot(block, units)[None] if len(units) == 1 else units @ block.T
        figures *= scale[at : at + BLOCK]
        rows = np.broadcast_to(np.arange(at, at + figures.shape[1]), figures.shape)
        if exclude is not None:
            figures[rows == exclude[:, None]] = -np.inf
        best_rows, best = _top(
            np.concatenate([best_rows, rows], axis=1), np.concatenate([best, figures], axis=1), n
        )
    return best_rows, best


def _top(rows: IntArray, figures: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
    """Keep the n best columns of each line, sorted by (−cosine, row)."""
    if figures.shape[1] > n:
        part: npt.NDArray[np.intp] = np.argpartition(-figures, max(n - 1, 0), axis=1)[:, :n]
        rows, figures = np.take_along_axis(rows, part, 1), np.take_along_axis(figures, part, 1)
    order = np.lexsort((rows, -figures), axis=1)
    return np.take_along_axis(rows, order, 1), np.take_along_axis(figures, order, 1)
