"""The kernel that adds up what the contexts of words say (`usage.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.models.jit import bare, kernel
from embedding.models.simd import dot, prefetch, weighted

MOST = 60_000.0
"""Within float16."""
MILDER = 0.5
"""τ: the part of u·v by which a context is expected. How much a row expects a context is known from
one training; half of it agrees more between two of them and finds as much (ADR 17)."""
AHEAD = 2
"""Tokens by which rows are asked for before they are needed: a quarter of the time was waiting."""
_FLOAT = 4
"""Bytes."""


@kernel()
def add_usage(
    owners: Any,
    tokens: Any,
    sentences: Any,
    keep: Any,
    vectors: Any,
    contexts: Any,
    around: Any,
    window: int,
    slopes: Any,
    pairs: Any,
) -> None:
    """Add g and N of each token to the row `owners` of `slopes` and `pairs`; -1: to none.

    around  as many rows as `contexts`; slopes  [n, said(dim)], in the order of `payload.SAID`. All
    rows are float32 and C-contiguous.
    """
    n = np.int64(contexts.shape[1])
    tables = contexts.ctypes.data, vectors.ctypes.data, around.ctypes.data
    sums = slopes.ctypes.data
    others = np.empty(2 * window, dtype=np.int64)
    weights = np.empty(2 * window, dtype=np.float32)
    told = np.empty(2 * window, dtype=np.float32)
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        for i in range(first, last):
            _foresee(i, last, window, owners, tokens, tables, sums, n)
            if owners[i] < 0 or tokens[i] < 0:
                continue
            row = tables[1] + _FLOAT * n * np.int64(tokens[i])
            k = 0
            for j in range(max(first, i - window), min(last, i + window + 1)):
                if j == i or tokens[j] < 0:
                    continue
                others[k] = tokens[j]
                weights[k] = (window + 1 - abs(i - j)) / window
                if len(keep):
                    weights[k] *= keep[others[k]]
                told[k] = dot(tables[0] + _FLOAT * n * others[k], row, n)
                pairs[owners[i]] += weights[k]
                k += 1
            for at in range(k):
                told[at] = weights[at] / (np.float32(1.0) + np.exp(np.float32(MILDER) * told[at]))
            sink = sums + len(tables) * _FLOAT * n * np.int64(owners[i])
            for at, table in enumerate(tables):
                into = sink + at * _FLOAT * n
                weighted(told.ctypes.data, others.ctypes.data, np.int64(k), table, into, n)


@bare
def _foresee(
    i: int, last: int, window: int, owners: Any, tokens: Any, tables: Any, sums: int, n: int
) -> None:
    """Ask for the rows that the tokens after the i-th will be the first to touch."""
    ahead = i + window + AHEAD
    if ahead < last and tokens[ahead] >= 0:
        for table in tables:
            prefetch(table + _FLOAT * n * np.int64(tokens[ahead]), n)
    if i + AHEAD < last and owners[i + AHEAD] >= 0:
        wide = len(tables) * n
        prefetch(sums + _FLOAT * wide * np.int64(owners[i + AHEAD]), wide)
