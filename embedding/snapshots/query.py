"""Nearest words, exact, in blocks, over memory-mapped tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.nearness import directions_of, unit_rows

BLOCK = 16_384


@dataclass(frozen=True)
class RowScales:
    """What nearness (snapshots/nearness.py) needs of n rows beside their product with a query.

    With q = d(query), so that no row has to be centred for it:

        nearness = d(x)·q · sure = (x·q · inverse - m·q) · outer

    centre   m float32 [d]; inverse: float32 [n], 1/|x|
    outer    float32 [n], sure / |unit(x) - m|; 0 for a row of zeros
    """

    centre: FloatArray
    inverse: FloatArray
    outer: FloatArray

    @classmethod
    def of(
        cls, vectors: FloatArray, centre: FloatArray | None = None, sure: FloatArray | None = None
    ) -> RowScales:
        """Of vectors float32 [n, d]. centre: None takes nothing out; sure: None is 1 for all."""
        if centre is None:
            centre = np.zeros(vectors.shape[1], np.float32)
        inverse, outer = np.zeros(len(vectors), np.float32), np.zeros(len(vectors), np.float32)
        for at in range(0, len(vectors), BLOCK):
            rows, part = vectors[at : at + BLOCK], slice(at, at + BLOCK)
            lengths = np.linalg.norm(rows, axis=1)
            apart = np.linalg.norm(unit_rows(rows) - centre, axis=1)
            nonzero = (lengths > 0) & (apart > 0)
            np.divide(1.0, lengths, out=inverse[part], where=nonzero, casting="unsafe")
            np.divide(1.0, apart, out=outer[part], where=nonzero, casting="unsafe")
        return cls(centre, inverse, outer if sure is None else outer * sure)


def nearest(
    vectors: FloatArray,
    scales: RowScales,
    queries: FloatArray,
    n: int,
    *,
    exclude: IntArray | None = None,
) -> tuple[IntArray, FloatArray]:
    """The n rows nearest to each query.

    vectors  float32 [m, d], may be memory-mapped; scales: theirs
    queries  float32 [q, d]
    exclude  int64 [q]: one row left out for each query (-1: none)
    returns  rows int64 [q, k] and figures float32 [q, k], k = min(n, m), highest first and by row
             where equal; an excluded row has -inf and can only be last
    """
    units = directions_of(queries, scales.centre)
    off = (units @ scales.centre)[:, None]
    best_rows = np.empty((len(queries), 0), np.int64)
    best = np.empty((len(queries), 0), np.float32)
    for at in range(0, len(vectors), BLOCK):
        block, part = vectors[at : at + BLOCK], slice(at, at + BLOCK)
        # One query is bound by memory: the threads of BLAS would cost more than they save.
        figures = np.vecdot(block, units)[None] if len(units) == 1 else units @ block.T
        figures *= scales.inverse[part]
        figures -= off
        figures *= scales.outer[part]
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
