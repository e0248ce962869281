"""Which words stand beside a word, by what the model foresees.

A skip-gram model is trained to foresee contexts. With negatives drawn by n(c) ∝ f(c)^0.75 its dot
product is the logarithm of how much more often a context stands beside the word than it is drawn
(Levy and Goldberg 2014, equation 7, up to the constant log k), so that

    P(c | w) ∝ n(c) · exp(v_w · u_c).

A context says something of the word as far as it is more frequent beside it than anywhere, which is
its part of the divergence of P(c | w) from P(c), the mean of P(c | w) over all words (by the
frequency of w):

    said(c) = P(c | w) · log(P(c | w) / P(c)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import FloatArray
from embedding.snapshots.nearness import frequent
from embedding.snapshots.snapshot import Snapshot

_POWER = 0.75
_SAMPLED = 300
"""Most frequent words whose mean is what stands beside any word."""
CONTEXT_CANDIDATES = 3_000
"""Most frequent words that are looked at."""
LEAST_TIMES = 1.5
"""A word is named when it stands beside at least so many times as often as beside any word."""


@dataclass(frozen=True)
class Beside:
    """A word that stands beside another; `times` as often as beside any word."""

    word: str
    times: float


@dataclass(frozen=True)
class UsualContexts:
    """What stands beside any word of a snapshot.

    rows   int64 [m], increasing: the contexts that are looked at
    drawn  float64 [m], n(c) without its scale
    usual  float64 [m], P(c)
    """

    rows: npt.NDArray[np.int64]
    drawn: npt.NDArray[np.float64]
    usual: npt.NDArray[np.float64]

    @classmethod
    def of(cls, snapshot: Snapshot, candidates: int = CONTEXT_CANDIDATES) -> UsualContexts:
        """Those of the `candidates` most frequent words."""
        rows = frequent(snapshot.counts, candidates)
        drawn = np.maximum(snapshot.counts[rows], 1).astype(np.float64) ** _POWER
        words = frequent(snapshot.counts, _SAMPLED)
        vectors = np.asarray(snapshot.vectors[words], np.float32)
        foreseen = _foreseen(vectors, _contexts(snapshot, rows), drawn)
        weight = np.maximum(snapshot.counts[words], 1).astype(np.float64)
        return cls(rows, drawn, weight @ foreseen / weight.sum())


def beside(
    snapshot: Snapshot, word: str, n: int, contexts: UsualContexts | None = None
) -> list[Beside]:
    """The n words that tell most of what stands beside `word`, those that tell most first.

    contexts  of the snapshot, where they are known

    None without a vector of the word, and while vectors cannot be read (snapshots/readability.py).
    """
    row = snapshot.index(word)
    if snapshot.unreadable is not None or row is None or not np.any(snapshot.vectors[row]):
        return []
    usual = contexts or UsualContexts.of(snapshot)
    vector = np.asarray(snapshot.vectors[row], np.float32)[None]
    own = _foreseen(vector, _contexts(snapshot, usual.rows), usual.drawn)[0]
    ratio = own / np.maximum(usual.usual, np.finfo(np.float64).tiny)
    gain = own * np.log(np.maximum(ratio, np.finfo(np.float64).tiny))
    gain[usual.rows == row] = -np.inf
    chosen = [i for i in np.argsort(-gain, kind="stable")[:n] if ratio[i] >= LEAST_TIMES]
    return [Beside(snapshot.words[int(usual.rows[i])], float(ratio[i])) for i in chosen]


def _contexts(snapshot: Snapshot, rows: npt.NDArray[np.int64]) -> FloatArray:
    table: FloatArray = np.asarray(snapshot.contexts[rows], np.float32)
    return table


def _foreseen(
    vectors: FloatArray, contexts: FloatArray, drawn: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """P(c | w) float64 [words, contexts]."""
    dots = (vectors @ contexts.T).astype(np.float64)
    weights = np.exp(dots - dots.max(axis=1, keepdims=True)) * drawn
    foreseen: npt.NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return foreseen
