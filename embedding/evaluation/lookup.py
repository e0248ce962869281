"""Finding gold words in a vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

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


def unit(vectors: Tensor) -> Tensor:
    """float [n, d] rows of length 1; a row of zeros stays one."""
    length = vectors.norm(dim=1, keepdim=True).clamp_min(torch.finfo(vectors.dtype).tiny)
    normed: Tensor = vectors / length
    return normed
