"""A new word's vector from the contexts it was read in, in closed form.

One maximisation step of the skip-gram objective in the new word's vector v alone, from the mean of
the vectors of known words, with their covariance as prior and with the curvature of the logistic
function bounded by 1/4 (Böhning 1992, Multinomial logistic regression algorithm, section 3):

    v = μ + (k/4 · W · E[u uᵀ] + λ Σ⁻¹)⁻¹ (s - k · W · E[σ(u·μ) u])
    s = Σ_c w_c (1 - σ(u_c·μ)) u_c,    W = Σ_c w_c

u_c are output rows of the contexts c, w_c their weights; E is over the noise distribution with k
noise words a pair; μ and Σ are mean and covariance of known words' vectors. So a word's contexts
come in by their sum alone, through one linear map, as with the à la carte embedding of Khodak et
al. (2018, equation 4), whose map is a regression.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.records import FloatArray

CURVATURE = 0.25
PRIOR = 0.03
"""λ: pairs of one text say less than independent ones would, so the prior counts for less, too."""
_RIDGE = 1e-4


@dataclass(frozen=True)
class Frame:
    """The tables as they look to a new word; d is their dimension.

    centre    float32 [d], μ
    noise     float32 [d], k · E[σ(u·μ) u]
    basis     float64 [d, d] with basisᵀ Σ⁻¹ basis = 1 and basisᵀ k/4 E[u uᵀ] basis = diag(stiff)
    """

    centre: FloatArray
    noise: FloatArray
    basis: npt.NDArray[np.float64]
    stiff: npt.NDArray[np.float64]

    @classmethod
    def of(cls, known: FloatArray, noise: FloatArray, negative: int) -> Frame | None:
        """From vectors of known words [n, d] and output rows drawn from the noise distribution.

        None when there are fewer known words than their covariance needs (2 d), or it is not
        finite.
        """
        size, dim = known.shape
        if size < 2 * dim or len(noise) < 2 * dim:
            return None
        centre = known.mean(axis=0)
        spread = known - centre
        covariance = (spread.T @ spread / size).astype(np.float64)
        covariance += _RIDGE * (np.trace(covariance) / dim) * np.eye(dim)
        second = (noise.T @ noise / len(noise)).astype(np.float64)
        try:
            lower = np.linalg.cholesky(covariance)
            stiff, turn = np.linalg.eigh(lower.T @ second @ lower)
        except np.linalg.LinAlgError:
            return None
        pushed = _sigmoid(noise @ centre) @ noise / len(noise)
        return cls(
            centre,
            (negative * pushed).astype(np.float32),
            lower @ turn,
            negative * CURVATURE * np.maximum(stiff, 0.0),
        )

    def surprise(self, contexts: FloatArray) -> FloatArray:
        """1 - σ(u·μ) of output rows [m, d]: how much each has to say; float32 [m]."""
        return _sigmoid(-(contexts @ self.centre))

    def infer(self, sums: FloatArray, weights: FloatArray) -> FloatArray:
        """Vectors float32 [n, d] of words from s [n, d] and W [n] (above)."""
        slope = (sums - weights[:, None] * self.noise).astype(np.float64) @ self.basis
        step = slope / (weights[:, None].astype(np.float64) * self.stiff + PRIOR)
        found: FloatArray = (self.centre + step @ self.basis.T).astype(np.float32)
        return found


def _sigmoid(values: FloatArray) -> FloatArray:
    found: FloatArray = 0.5 * (1.0 + np.tanh(0.5 * values))
    return found
