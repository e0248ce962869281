"""Which contexts pulled a word: what stands beside it more, or less, than before the window.

Let f and g be the shares that a context c has of all pairs of a word before the window and in it
(`countvectors.py`), and s_c what c says (`usage.py`). By its pairs the word's use shifted by

    Δ = Σ_c (g_c - f_c) s_c,    so that    1 = Σ_c (g_c - f_c) s_c·Δ / |Δ|².

The terms are the shares of the contexts, as in a word-shift graph (Dodds et al. 2011; Gallagher et
al. 2021): they add up to 1, and a context that works against the shift has a negative one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.exchange.payload import ContextShift
from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray
from embedding.models.jit import kernel

LEAST_PAIRS = 20
"""Pairs of a word before the window and in it, below which its contexts are not told."""
MAX_SHIFTED_WORDS = 2_000
"""Words that are told: those that shifted most, against chance."""
CONTEXTS_PER_WORD = 8
"""Contexts of each word, the largest shares first."""


def context_shift(
    window: int, before: Any, after: Any, ids: IntArray, says: FloatArray
) -> ContextShift | None:
    """What to send of a window (Unix seconds of its start); None where no word has enough pairs.

    before, after  scipy CSR float32 [v, v], pairs of words before the window and in it
    ids            int64 [v]; says: float32 [v, dim]
    """
    pairs = [np.asarray(one.sum(axis=1), dtype=np.float64).ravel() for one in (before, after)]
    rows = np.flatnonzero((pairs[0] >= LEAST_PAIRS) & (pairs[1] >= LEAST_PAIRS))
    if not len(rows):
        return None
    shares = [
        _shares(one[rows], total[rows]) for one, total in zip((before, after), pairs, strict=True)
    ]
    moved = (shares[1] - shares[0]).tocsr()
    shift = np.asarray(moved @ says, dtype=np.float32)
    weights = 1.0 / (1.0 / pairs[0][rows] + 1.0 / pairs[1][rows])
    lengths = np.einsum("nd,nd->n", shift, shift).astype(np.float64)
    order = np.argsort(-weights * lengths, kind="stable")[:MAX_SHIFTED_WORDS]
    order = np.sort(order[lengths[order] > 0])
    if not len(order):
        return None
    sizes = np.minimum(np.diff(moved.indptr)[order], CONTEXTS_PER_WORD).astype(np.int64)
    along = (shift[order] / lengths[order, None]).astype(np.float32)
    near, pulls = _largest(moved.indptr, moved.indices, moved.data, order, along, says, sizes)
    told = np.repeat(order, sizes)
    figures = np.stack([_of(shares[0], told, near), _of(shares[1], told, near), pulls], axis=1)
    heavy = weights[order].astype(np.float32)
    figures = (figures * np.repeat(heavy, sizes)[:, None]).astype(np.float32)
    return ContextShift(window, ids[rows[order]], heavy, sizes, ids[near], figures)


def _shares(counts: Any, total: Any) -> Any:
    """CSR with rows that add up to 1, columns in order."""
    counts = counts.copy()
    counts.sort_indices()
    counts.data = (counts.data / np.repeat(total, np.diff(counts.indptr))).astype(np.float32)
    return counts


def _of(shares: Any, rows: IntArray, columns: IntArray) -> FloatArray:
    """float32 [m]: some entries; 0 where there is none."""
    width = np.int64(shares.shape[1])
    owners = np.repeat(np.arange(shares.shape[0], dtype=np.int64), np.diff(shares.indptr))
    at = positions(owners * width + shares.indices, rows * width + columns)
    found: FloatArray = np.where(at >= 0, shares.data[np.maximum(at, 0)], np.float32(0.0))
    return found


@kernel()
def _largest(
    starts: Any, columns: Any, values: Any, rows: Any, along: Any, says: Any, sizes: Any
) -> Any:
    """The entries of rows int64 [n] of a CSR whose value · (says · along) is largest, by size.

    along  float32 [n, dim]; sizes int64 [n]: how many of each row
    Returns columns int64 [m] and the products float32 [m], largest first in each row.
    """
    total = 0
    for size in sizes:
        total += size
    found = np.empty(total, dtype=np.int64)
    products = np.empty(total, dtype=np.float32)
    first = 0
    for at in range(len(rows)):
        held = 0
        for place in range(starts[rows[at]], starts[rows[at] + 1]):
            context = columns[place]
            product = np.float32(0.0)
            for i in range(along.shape[1]):
                product += says[context, i] * along[at, i]
            product *= values[place]
            to = first + held
            if held == sizes[at]:
                to -= 1
                if abs(product) <= abs(products[to]):
                    continue
            else:
                held += 1
            while to > first and abs(products[to - 1]) < abs(product):
                products[to], found[to] = products[to - 1], found[to - 1]
                to -= 1
            products[to], found[to] = product, context
        first += sizes[at]
    return found, products
