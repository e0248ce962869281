"""The count baseline: shifted positive PMI and its truncated SVD.

Levy and Goldberg 2014, "Neural Word Embedding as Implicit Matrix Factorization": cell (w, c) is
max(log(#(w,c)·D / (#(w)·#(c))) - log k, 0); vectors are U·√S, contexts V·√S. Contexts are
smoothed by counts ** noise_exponent (Levy, Goldberg and Dagan 2015, section 3.1).

It is counted once and factorised once, so it is no `Trainer`.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray, IntArray
from embedding.models.base import LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.sampling import kept_tokens
from yeoron_lab.counts.cooccurrence import CooccurrenceTable, refuse_weights


def sppmi_matrix(
    rows: IntArray,
    columns: IntArray,
    counts: FloatArray,
    size: int,
    *,
    shift: float = 1.0,
    exponent: float = 0.75,
) -> scipy.sparse.csr_array:
    """float64 sparse [size, size] of the cells whose shifted PMI is positive."""
    values = counts.astype(np.float64)
    total = values.sum()
    if not total > 0:
        raise InputError("no co-occurrence was counted: at least two words in a sentence needed.")
    by_row = np.bincount(rows, values, size)
    by_column = np.bincount(columns, values, size)
    smooth = np.zeros(size)
    seen = by_column > 0
    smooth[seen] = by_column[seen] ** exponent
    smooth /= smooth.sum()
    chance = by_row[rows] * smooth[columns]
    shifted = np.log(np.maximum(values, 1e-300) / chance) - math.log(shift)
    keep = shifted > 0
    return scipy.sparse.csr_array((shifted[keep], (rows[keep], columns[keep])), shape=(size, size))


def factorise(matrix: scipy.sparse.csr_array, dim: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """(vectors, contexts) float32 [n, dim] whose product is the best rank-dim approximation.

    A matrix smaller than `dim` gets columns of zeros. Signs are fixed: the largest entry of each
    left singular vector is positive, so that the same matrix gives the same bytes.
    """
    size = matrix.shape[0]
    rank = min(dim, size)
    if rank < size - 1 and size > 3:
        start = np.random.default_rng(seed).standard_normal(size)
        left, scale, right = scipy.sparse.linalg.svds(matrix, k=rank, v0=start)
    else:
        left, scale, right = np.linalg.svd(matrix.toarray())
        left, scale, right = left[:, :rank], scale[:rank], right[:rank]
    order = np.argsort(-scale)
    left, scale, right = left[:, order], scale[order], right[order]
    largest = np.abs(left).argmax(axis=0)
    signs = np.where(left[largest, np.arange(rank)] < 0, -1.0, 1.0)
    root = np.sqrt(scale) * signs
    vectors, contexts = np.zeros((size, dim), np.float32), np.zeros((size, dim), np.float32)
    vectors[:, :rank] = left * root
    contexts[:, :rank] = right.T * root
    return vectors, contexts


class CountModel:
    """Counts blocks into a bounded table, then factorises."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self.table = CooccurrenceTable(config.cells)

    def count(self, block: LocalBlock, seed: int) -> int:
        """Add a block's co-occurrences, by stable ids where it has them; returns words counted."""
        refuse_weights(block, "sppmi")
        words, ends = kept_tokens(block.tokens, block.sentences, block.keep, seed)
        if len(words):
            known = int(words.max()) + 1
            ids = np.arange(known) if block.ids is None else block.ids
            self.table.add(words, ends, ids, self._config.window)
        return len(words)

    def fit(self, size: int) -> tuple[FloatArray, FloatArray]:
        """(vectors, contexts) float32 [size, dim] for ids 0..size-1.

        Raises InputError when no two words stand together more often than by chance.
        """
        rows, columns, counts = self.table.cells()
        if len(rows) and int(rows.max()) >= size:
            raise InputError(f"id {int(rows.max())} was counted: fit needs {int(rows.max()) + 1}.")
        config = self._config
        matrix = sppmi_matrix(
            rows, columns, counts, size, shift=config.shift, exponent=config.noise_exponent
        )
        if not matrix.nnz:
            raise InputError(
                "no two words stand together more often than by chance, so there is nothing to "
                "factorise: give more text, or a smaller shift."
            )
        return factorise(matrix, config.dim, config.seed)
