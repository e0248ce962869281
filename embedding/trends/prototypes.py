"""How differently a word is used at two times, by the mean vectors of its contexts.

The two standard estimators of contextualised models (Kutuzov and Giulianelli 2020, "UiO-UvA at
SemEval-2020 Task 1", section 3), and one that mends the second where a word has few mentions. A
mention says one vector x of unit length, what stands around it. With x̄ and ȳ the means over the
mentions of either time:

- average pairwise cosine distance (APD), over all pairs of a mention before and a mention after:

      APD = 1 − mean_ij x_i·y_j = 1 − x̄·ȳ

  as the mean of scalar products is the scalar product of the means. It is high, too, for a word
  that has many uses at both times.
- distance of prototypes (PRT):

      PRT = 1 − x̄·ȳ / (|x̄| |ȳ|)

- The mean of few mentions is longer than what it estimates, by chance, so PRT says that rare words
  changed. Pairs of different units, which hold different texts, have no chance in common:

      l² = (|Σ_k s_k|² − Σ_k |s_k|²) / (N² − Σ_k n_k²)

  with s_k the sum and n_k the number of mentions in unit k, N = Σ n_k. As few mentions say badly
  how large it is, it is moderated towards its median l₀² over all words (as variances are, Smyth
  2004): |x̄|² ≈ (N l² + PRIOR l₀²) / (N + PRIOR). PRT by these lengths is the cosine distance
  corrected for attenuation (Spearman 1904): about 0 for a word that did not change, however rare.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embedding.kernel.records import FloatArray
from embedding.trends.significance import TestArray

_PRIOR = 10.0
"""Mentions that the median length counts for, chosen on planted petitions."""
_SHORTEST = 1e-4
"""Of a squared length: that of words whose mentions have nothing in common is 0 or below."""


@dataclass(frozen=True)
class PrototypeSums:
    """What stood around n words at one time, in units of different texts.

    counts  float [n, units]: mentions
    sums    float [n, units, dim]: sum of the unit vectors of their contexts
    """

    counts: FloatArray
    sums: FloatArray

    @property
    def mentions(self) -> TestArray:
        """float64 [n]: N."""
        total: TestArray = self.counts.sum(axis=1, dtype=np.float64)
        return total

    @property
    def means(self) -> TestArray:
        """float64 [n, dim]: x̄; NaN for a word without a mention."""
        with np.errstate(invalid="ignore", divide="ignore"):
            means: TestArray = self.sums.sum(axis=1, dtype=np.float64) / self.mentions[:, None]
        return means

    @property
    def squared_lengths(self) -> TestArray:
        """float64 [n]: |x̄|² without chance, moderated towards the median of all n words.

        The median itself for a word whose mentions are all in one unit; NaN without a mention.
        """
        own = np.einsum("nkd,nkd->n", self.sums, self.sums, dtype=np.float64)
        total = self.mentions
        pairs = total**2 - (self.counts.astype(np.float64) ** 2).sum(axis=1)
        known = pairs > 0
        if not known.any():
            return np.full(len(total), np.nan)
        length = np.zeros(len(total))
        whole = (self.sums.sum(axis=1, dtype=np.float64) ** 2).sum(axis=1)
        length[known] = (whole[known] - own[known]) / pairs[known]
        weight = np.where(known, total, 0.0)
        found = (weight * length + _PRIOR * np.median(length[known])) / (weight + _PRIOR)
        found[total == 0] = np.nan
        squares: TestArray = np.maximum(found, _SHORTEST)
        return squares


def average_pairwise_distance(before: PrototypeSums, after: PrototypeSums) -> TestArray:
    """APD float64 [n]; NaN for a word that one time does not mention."""
    return 1.0 - _products(before, after)


def prototype_distance(before: PrototypeSums, after: PrototypeSums) -> TestArray:
    """PRT float64 [n], 0 … 2; NaN for a word that one time does not mention."""
    lengths = [np.linalg.norm(side.means, axis=1) for side in (before, after)]
    return _distance(_products(before, after), lengths[0] * lengths[1])


def unbiased_prototype_distance(before: PrototypeSums, after: PrototypeSums) -> TestArray:
    """PRT float64 [n] by lengths without chance, below 0 for about half of all unchanged words.

    NaN for a word that one time does not mention.
    """
    squares = before.squared_lengths * after.squared_lengths
    return _distance(_products(before, after), np.sqrt(squares))


def _products(before: PrototypeSums, after: PrototypeSums) -> TestArray:
    products: TestArray = np.einsum("nd,nd->n", before.means, after.means)
    return products


def _distance(products: TestArray, lengths: TestArray) -> TestArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        distance: TestArray = 1.0 - products / lengths
    return distance
