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
from embedding.records import FloatArray, IntArray

LEAST_PAIRS = 20
"""Pairs of a word before the window and in it, below which its contexts are not told."""
WORDS = 4_000
"""Words that are told: those that shifted most, against chance."""
CONTEXTS = 8
"""Contexts of each word, the largest shares first."""
_ROWS = 256


def context_shift(
    window: int, before: Any, after: Any, ids: IntArray, says: FloatArray
) -> ContextShift | None:
    """What to send of a window (Unix seconds of its start); None where no word can be told.

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
    order = np.argsort(-weights * lengths, kind="stable")[:WORDS]
    order = np.sort(order[lengths[order] > 0])
    found: list[tuple[int, IntArray, FloatArray]] = []
    for first in range(0, len(order), _ROWS):
        part = order[first : first + _ROWS]
        along = (shift[part] / lengths[part, None].astype(np.float32)) @ says.T
        for place, at in enumerate(part.tolist()):
            own = slice(moved.indptr[at], moved.indptr[at + 1])
            contexts = moved.indices[own]
            pulls = moved.data[own] * along[place, contexts]
            best = np.argsort(-np.abs(pulls), kind="stable")[:CONTEXTS]
            near = contexts[best].astype(np.int64)
            figures = [_of(one, at, near) for one in shares] + [pulls[best]]
            found.append((at, near, np.stack(figures, axis=1).astype(np.float32)))
    if not found:
        return None
    told = np.array([at for at, _, _ in found])
    heavy = weights[told].astype(np.float32)
    sizes = np.array([len(near) for _, near, _ in found], dtype=np.int64)
    figures = np.concatenate([each for *_, each in found]) * np.repeat(heavy, sizes)[:, None]
    contexts = ids[np.concatenate([near for _, near, _ in found])]
    return ContextShift(window, ids[rows[told]], heavy, sizes, contexts, figures)


def _shares(counts: Any, total: Any) -> Any:
    """CSR with rows that add up to 1."""
    counts = counts.copy()
    counts.data = (counts.data / np.repeat(total, np.diff(counts.indptr))).astype(np.float32)
    return counts


def _of(shares: Any, row: int, contexts: IntArray) -> FloatArray:
    """Shares of some contexts in a row; 0 where it has none."""
    own = slice(shares.indptr[row], shares.indptr[row + 1])
    found = np.zeros(len(contexts), dtype=np.float32)
    there = shares.indices[own]
    for at, context in enumerate(contexts.tolist()):
        held = np.flatnonzero(there == context)
        if len(held):
            found[at] = shares.data[own][held[0]]
    return found
