"""Vectors of words from how often they stand beside each other in one text.

M counts, both ways, the pairs of words at most `window` words apart within a sentence. The vectors
are those of its positive pointwise mutual information with smoothed shares (Levy, Goldberg and
Dagan 2015, "Improving Distributional Similarity", sections 2.1 and 3.2; smoothed on both sides, so
that P stays symmetric),

    P_wc = max(0, log(M_wc · Σ m^0.75 / (m_w m_c)^0.875)),    m_w = Σ_c M_wc

in its first `dim` directions: P ≈ U S Uᵀ by subspace iteration (Halko, Martinsson and Tropp 2011,
algorithm 4.4), vectors U √S. The columns are few and the rows many, so they are made orthogonal by
the eigenvectors of their products (method of snapshots, Sirovich 1987). They are turned towards a
table of numbers hashed from row ids (orthogonal Procrustes), so nodes that read alike texts have
nearly the same space.

All texts count alike, whenever they were written. A model knows what it learnt last better than
what came before, so that by its vectors two times differ even where nothing changed (ADR 22).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.models.jit import kernel
from embedding.worker.corpus.authors import mixed

SMOOTHED = 0.75
ITERATIONS = 2
TOKENS = 200_000
"""Tokens whose pairs are held one by one at a time."""
_LEAST = 1e-10
"""Part of the largest square of S below which a square is rounding alone."""


def pair_counts(tokens: CodeArray, sentences: IntArray, window: int, words: int) -> Any:
    """M, scipy CSR float32 [words, words].

    tokens     int32 [n], numbers of words, -1 for none
    sentences  int64 [m + 1], token offsets
    """
    # scipy takes a third of a second to import; a node that closes no window never needs it.
    from scipy.sparse import csr_array

    shape = (words, words)
    counts = csr_array(shape, dtype=np.float32)
    first = 0
    while first < len(sentences) - 1:
        stop = int(np.searchsorted(sentences, sentences[first] + TOKENS, side="right")) - 1
        stop = max(stop, first + 1)
        left, right = _pairs(tokens, sentences[first : stop + 1], window)
        ones = np.ones(len(left), dtype=np.float32)
        counts = counts + csr_array((ones, (left, right)), shape=shape)
        first = stop
    return csr_array(counts + counts.T)


def count_vectors(pairs: Any, ids: IntArray, dim: int) -> FloatArray:
    """float32 [v, dim]; 0 for a word beside which nothing stands, and in directions beyond v.

    pairs  M, scipy CSR float32 [v, v]; ids: int64 [v], row ids of the words
    """
    vectors = np.zeros((len(ids), dim), dtype=np.float32)
    counts = pairs.copy()
    total = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    k = min(dim, int((total > 0).sum()))
    if not k:
        return vectors
    logs = np.log(np.maximum(total, 1.0))
    rows = np.repeat(np.arange(len(ids)), np.diff(counts.indptr))
    information = np.log(counts.data) + np.log((total**SMOOTHED).sum())
    information -= (1 + SMOOTHED) / 2 * (logs[rows] + logs[counts.indices])
    counts.data = np.maximum(information, 0.0).astype(np.float32)
    counts.eliminate_zeros()
    drawn = _hashed(ids, dim)
    basis = drawn[:, :k]
    for _ in range(ITERATIONS):
        basis, _ = _axes(counts @ basis)
    axes, sizes = _axes(counts @ basis)
    one, _, other = np.linalg.svd(axes.T @ drawn, full_matrices=False)
    turned: FloatArray = ((axes * np.sqrt(sizes)) @ (one @ other)).astype(np.float32)
    return turned


def _axes(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """U float32 [v, k] and S float32 [k] of columns U S Vᵀ [v, k]; 0 where S says nothing."""
    wide = columns.astype(np.float64)
    squares, turn = np.linalg.eigh(wide.T @ wide)
    there = squares > _LEAST * squares[-1]
    sizes = np.sqrt(np.where(there, squares, 0.0))
    turn[:, ~there] = 0.0
    turn[:, there] /= sizes[there]
    return columns @ turn.astype(np.float32), sizes.astype(np.float32)


def _hashed(ids: IntArray, dim: int) -> FloatArray:
    """float32 [v, dim] in [-1, 1), each row by its id alone."""
    places = ids[:, None] * dim + np.arange(dim)
    found: FloatArray = (mixed(places.astype(np.uint64)) / 2.0**63 - 1.0).astype(np.float32)
    return found


@kernel()
def _pairs(tokens: Any, sentences: Any, window: int) -> Any:
    """Both words of each pair, int32 [m] and int32 [m]: a word, and one before it."""
    n = 0
    for s in range(len(sentences) - 1):
        for at in range(sentences[s], sentences[s + 1]):
            if tokens[at] >= 0:
                for near in range(max(sentences[s], at - window), at):
                    n += tokens[near] >= 0
    words = np.empty(n, dtype=np.int32)
    beside = np.empty(n, dtype=np.int32)
    n = 0
    for s in range(len(sentences) - 1):
        for at in range(sentences[s], sentences[s + 1]):
            if tokens[at] >= 0:
                for near in range(max(sentences[s], at - window), at):
                    if tokens[near] >= 0:
                        words[n], beside[n] = tokens[at], tokens[near]
                        n += 1
    return words, beside
