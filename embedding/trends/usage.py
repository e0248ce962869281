"""How differently a word is used in two windows, from sums of its contexts in replicas.

Temporal referencing (Dubossarsky et al. 2019) in closed form: a word has a row for each window and
source, the mean m of what its contexts say (`worker/usage.py`), in the one space of a model that
went on learning, so that nothing has to be aligned. Two windows are compared within each source,
so a change in the mix of sources is no change of meaning.

The squared length of a difference of means is never 0, however alike the uses are: its expectation
holds the variance of both means. The replicas hold different texts and say how large it is, so it
can be taken off (as in the cross-validated Mahalanobis distance, Walther et al. 2016):

    e² = |Σ_s w_s (m_s,after − m_s,before)|² − Σ_s w_s² (v_s,after + v_s,before)
    v = r/(r−1) Σ_k |N_k (m_k − m)|² / N²,    N = Σ_k N_k,    Σ_s w_s = 1

with weights w_s of the harmonic mean of both N of a source, and r replicas that hold anything. e²
is unbiased, and below 0 for about half of all words whose use did not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.records import IntArray
from embedding.snapshots.usage import Usage
from embedding.trends.significance import Figures

_BLOCK = 2048


@dataclass(frozen=True)
class UsedWords:
    """The use of n words in a snapshot: usage, and the row int64 [n] of each word in it."""

    usage: Usage
    rows: IntArray

    def take(self, at: IntArray) -> UsedWords:
        """Some of the words."""
        return UsedWords(self.usage, self.rows[at])


def usage_shift(before: UsedWords, after: UsedWords) -> Figures:
    """float64 [n]: √e² with the sign of e²; NaN for a word that no source used at both times."""
    both = sorted(set(before.usage.by_source) & set(after.usage.by_source))
    return _blockwise(before, after, [(source, source) for source in both])


def usage_between(words: UsedWords, first: str, second: str) -> Figures:
    """float64 [n]: the same between two sources of one window; NaN where one lacks the word."""
    return _blockwise(words, words, [(first, second)])


def _blockwise(before: UsedWords, after: UsedWords, sources: Sequence[tuple[str, str]]) -> Figures:
    found = np.full(len(before.rows), np.nan)
    for start in range(0, len(found), _BLOCK):
        part = np.arange(start, min(start + _BLOCK, len(found)))
        found[part] = _shift(before.take(part), after.take(part), sources)
    return found


def _shift(before: UsedWords, after: UsedWords, sources: Sequence[tuple[str, str]]) -> Figures:
    n, dim = len(before.rows), before.usage.means.shape[2]
    moved, noise, weight = np.zeros((n, dim)), np.zeros(n), np.zeros(n)
    for earlier, later in sources:
        old, new = _places(before, earlier), _places(after, later)
        both = np.flatnonzero((old >= 0) & (new >= 0))
        mean_old, noise_old, pairs_old = _summary(before.usage, old[both])
        mean_new, noise_new, pairs_new = _summary(after.usage, new[both])
        sure = np.isfinite(noise_old + noise_new)
        both, own = both[sure], 2.0 / (1.0 / pairs_old[sure] + 1.0 / pairs_new[sure])
        moved[both] += own[:, None] * (mean_new[sure] - mean_old[sure])
        noise[both] += own**2 * (noise_old[sure] + noise_new[sure])
        weight[both] += own
    with np.errstate(invalid="ignore", divide="ignore"):
        squared = ((moved**2).sum(axis=1) - noise) / weight**2
    shift: Figures = np.sign(squared) * np.sqrt(np.abs(squared))
    return shift


def _places(words: UsedWords, source: str) -> IntArray:
    """int64 [n]: where each word's sums of a source are, -1 for none."""
    own = words.usage.by_source[source]
    rows = words.usage.rows[own]
    at = np.minimum(np.searchsorted(rows, words.rows), len(rows) - 1)
    found: IntArray = np.where(rows[at] == words.rows, own[at], -1)
    return found


def _summary(usage: Usage, at: IntArray) -> tuple[Figures, Figures, Figures]:
    """Mean float64 [n, dim], its variance [n] (NaN of fewer than two replicas), and N [n]."""
    pairs = usage.pairs[at].astype(np.float64)
    means = usage.means[at].astype(np.float64)
    total = np.maximum(pairs.sum(axis=1), 1e-9)
    mean = np.einsum("nr,nrd->nd", pairs, means) / total[:, None]
    held = (pairs > 0).sum(axis=1)
    apart = ((means - mean[:, None]) ** 2).sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (pairs**2 * apart).sum(axis=1) / total**2 * held / (held - 1)
    spread[held < 2] = np.nan
    return mean, spread, total
