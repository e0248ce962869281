"""A young word's vector from the contexts it was read in, as known words teach it.

The à la carte embedding of Khodak et al. (2018, section 3, equation 4): a linear map from the mean
of what stood around a word to its vector, learnt from words whose vectors are trained. Here the
mean is of output rows of length 1, nearer ones weigh more, and the map is a ridge regression:

    x_w = Σ_c w_c u_c/|u_c| / Σ_c w_c
    A = argmin Σ_w |v_w - μ - Aᵀ(x_w - x̄)|² + r |A|²
    v = ½ μ + L · Aᵀ(x - x̄) / |Aᵀ(x - x̄)|,    L² = E|v_w - μ|²

Where x says that the word is another name of a known word k, with the chance p_k (`twins.py`), it
gets that word's vector in this share: Σ p_k v_k + (1 - Σ p_k) v.

u_c are output rows of the contexts c, w_c their weights, μ and x̄ the means over known words. The
length L is put back because a regression from few contexts gives short vectors: these would all
point along μ and stand beside each other. Half of μ was measured
(docs/adr/0008-young-words.md). A word's contexts come in by two sums alone, which nodes
can add up each by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import FloatArray
from embedding.models.twins import Twins

Squares = npt.NDArray[np.float64]

MEAN_SHARE = 0.5
"""Of μ, in an inferred vector."""
_RIDGE = 0.003
"""r, in the mean variance of x along one of its directions."""


def directions(contexts: FloatArray) -> FloatArray:
    """Output rows [m, d] at length 1, float32; a row of nought stays so."""
    lengths = np.linalg.norm(contexts, axis=1, keepdims=True)
    units: FloatArray = (contexts / np.maximum(lengths, np.float32(1e-12))).astype(np.float32)
    return units


@dataclass(frozen=True)
class Frame:
    """How vectors of known words follow from what stands around them; d is the dimension.

    centre   float32 [d], μ; origin  float32 [d], x̄
    mapping  float64 [d, d], A
    length   L
    vectors  float32 [n, d], of known words
    twins    what stands around them; None when it does not tell them apart
    """

    centre: FloatArray
    origin: FloatArray
    mapping: npt.NDArray[np.float64]
    length: float
    vectors: FloatArray
    twins: Twins | None

    @classmethod
    def of(
        cls, vectors: FloatArray, sums: FloatArray, weights: FloatArray, contexts: FloatArray
    ) -> Frame | None:
        """From vectors [n, d] of known words, Σ w u/|u| [n, d] and Σ w [n] of their contexts.

        contexts  output rows [m, d] of single contexts, as they are drawn from the text

        None when there are fewer known words than a map needs (2 d), or it is not finite.
        """
        size, dim = vectors.shape
        if size < 2 * dim or not bool((weights > 0).all()):
            return None
        means = (sums / weights[:, None]).astype(np.float64)
        centre, origin = vectors.mean(axis=0), means.mean(axis=0)
        means -= origin
        spread = (vectors - centre).astype(np.float64)
        second = means.T @ means / size
        second += _RIDGE * (np.trace(second) / dim) * np.eye(dim)
        length = float(np.sqrt((spread**2).sum() / size))
        try:
            mapping = np.linalg.solve(second, means.T @ spread / size)
        except np.linalg.LinAlgError:
            return None
        if not (length > 0 and np.isfinite(mapping).all()):
            return None
        twins = Twins.of(means, weights, _within(directions(contexts), means, weights))
        return cls(centre, origin.astype(np.float32), mapping, length, vectors, twins)

    def infer(
        self, sums: FloatArray, weights: FloatArray, *, other_names: bool = True
    ) -> FloatArray:
        """Vectors float32 [n, d] of words from their Σ w u/|u| [n, d] and Σ w [n], above 0.

        other_names  they may be other names of known words; False: they are known themselves
        """
        means = (sums / weights[:, None] - self.origin).astype(np.float64)
        away = means @ self.mapping
        away *= self.length / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12)
        vectors: FloatArray = (MEAN_SHARE * self.centre + away).astype(np.float32)
        if self.twins is None or not other_names:
            return vectors
        shares = self.twins.shares(means, weights)
        vectors *= 1.0 - np.asarray(shares.sum(axis=1), dtype=np.float32)[:, None]
        vectors += shares @ self.vectors
        return vectors


def _within(drawn: FloatArray, means: Squares, weights: FloatArray) -> Squares:
    """Σ, of single contexts around one word: of all contexts, less that of means [n, d]."""
    away = drawn.astype(np.float64) - drawn.mean(axis=0)
    covariance: Squares = away.T @ away / max(len(away), 1)
    covariance -= (means * (weights / weights.sum())[:, None]).T @ means
    return covariance
