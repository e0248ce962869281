"""Finding gold words in a vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from embedding.kernel.devices import DeviceArray
from embedding.kernel.records import IntArray

RowLookup = Callable[[Sequence[str]], IntArray]
"""Rows of words, int64, -1 for an unknown one; `Snapshot.rows` is one."""


def find(rows: RowLookup, words: Sequence[str]) -> IntArray:
    """int64 [n]: the row of each word as written, else in lower case, else -1."""
    found = rows(words).copy()
    missing = found < 0
    if missing.any():
        lowered = [word.lower() for word, absent in zip(words, missing, strict=True) if absent]
        found[missing] = rows(lowered)
    return found


def unit(vectors: DeviceArray) -> DeviceArray:
    """float [n, d] rows of length 1, on any device; a row of zeros stays one."""
    if isinstance(vectors, np.ndarray):
        length = np.linalg.norm(vectors, axis=1)
    else:
        length = vectors.norm(dim=1)
    length[length == 0.0] = 1.0
    return vectors / length[:, None]
