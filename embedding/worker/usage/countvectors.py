"""Vectors of words from how often they stand beside each other in one text.

M counts, both ways, the pairs of words at most `window` words apart within a sentence. The vectors
are those of its positive pointwise mutual information with smoothed shares (Levy, Goldberg and
Dagan 2015, "Improving Distributional Similarity", sections 2.1 and 3.2; smoothed on both sides, so
that P stays symmetric),

    P_wc = max(0, log(M_wc · Σ m^0.75 / (m_w m_c)^0.875)),    m_w = Σ_c M_wc

in its first `dim` directions: P ≈ U S Uᵀ by subspace iteration (Halko, Martinsson and Tropp 2011,
algorithm 4.4), vectors U √S. The columns are few and the rows many, so they are made orthogonal by
the eigenvectors of their products (method of snapshots, Sirovich 1987). The iteration begins with
a table of numbers hashed from the words, and the vectors are turned towards it (orthogonal
Procrustes), so nodes that read alike texts have nearly the same space. A few iterations leave much
of where they begin: a table by row ids would give each training of one text other directions.

All texts count alike, whenever they were written. A model knows what it learnt last better than
what came before, so that by its vectors two times differ even where nothing changed (ADR 22).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.kernel.records import FloatArray
from embedding.models.jit import kernel
from embedding.worker.corpus.authors import Marks, mixed
from embedding.worker.usage.paircounts import PairCounts

SMOOTHED = 0.75
ITERATIONS = 2
_LEAST = 1e-10
"""Part of the largest square of S below which a square is rounding alone."""


def count_vectors(pairs: PairCounts, marks: Marks, dim: int) -> FloatArray:
    """float32 [v, dim]; 0 for a word beside which nothing stands, and in directions beyond v.

    pairs  M, both parts of the text together; marks: uint64 [v], a hash of each word
    """
    vectors = np.zeros((len(marks), dim), dtype=np.float32)
    total = pairs.totals().sum(axis=1)
    k = min(dim, int((total > 0).sum()))
    if not k:
        return vectors
    values = np.empty(len(pairs.contexts), dtype=np.float32)
    whole = np.log((total**SMOOTHED).sum())
    shares = (1 + SMOOTHED) / 2 * np.log(np.maximum(total, 1.0))
    _information(pairs.starts, pairs.contexts, pairs.counts, whole, shares, values)
    drawn = _hashed(marks, dim)
    basis = drawn[:, :k]
    for _ in range(ITERATIONS):
        basis, _ = _axes(_product(pairs, values, basis))
    axes, sizes = _axes(_product(pairs, values, basis))
    left, _, right = np.linalg.svd(axes.T @ drawn, full_matrices=False)
    turned: FloatArray = ((axes * np.sqrt(sizes)) @ (left @ right)).astype(np.float32)
    return turned


def _product(pairs: PairCounts, values: FloatArray, basis: FloatArray) -> FloatArray:
    """P float32 [v, v], by its values, times basis [v, k]."""
    product = np.zeros((len(pairs), basis.shape[1]), dtype=np.float32)
    _add_products(pairs.starts, pairs.contexts, values, np.ascontiguousarray(basis), product)
    return product


def _axes(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """U float32 [v, k] and S float32 [k] of columns U S Vᵀ [v, k]; 0 where S says nothing."""
    wide = columns.astype(np.float64)
    squares, turn = np.linalg.eigh(wide.T @ wide)
    above = squares > _LEAST * squares[-1]
    sizes = np.sqrt(np.where(above, squares, 0.0))
    turn[:, ~above] = 0.0
    turn[:, above] /= sizes[above]
    return columns @ turn.astype(np.float32), sizes.astype(np.float32)


def _hashed(marks: Marks, dim: int) -> FloatArray:
    """float32 [v, dim] in [-1, 1), each row by its word alone."""
    cells: Marks = np.add.outer(marks, np.arange(dim, dtype=np.uint64))
    return (mixed(cells) / 2.0**63 - 1.0).astype(np.float32)


@kernel()
def _information(
    starts: Any, contexts: Any, counts: Any, whole: float, shares: Any, values: Any
) -> None:
    """P of each pair; whole: log Σ m^0.75; shares: float64 [v], 0.875 log m."""
    for word in range(len(shares)):
        for place in range(starts[word], starts[word + 1]):
            both = counts[place, 0] + counts[place, 1]
            logs = np.log(both) + whole - (shares[word] + shares[contexts[place]])
            values[place] = max(logs, 0.0)


@kernel()
def _add_products(starts: Any, contexts: Any, values: Any, basis: Any, product: Any) -> None:
    for word in range(len(product)):
        for place in range(starts[word], starts[word + 1]):
            value, context = values[place], contexts[place]
            if value > 0.0:
                for i in range(basis.shape[1]):
                    product[word, i] += value * basis[context, i]
