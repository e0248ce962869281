"""A young word's vector from the contexts it was read in, in closed form.

One maximisation step of the skip-gram objective in the word's vector v alone, from the mean of the
vectors of known words, with their covariance as prior and with the curvature of the logistic
function bounded by 1/4 (Böhning 1992, Multinomial logistic regression algorithm, section 3):

    v = μ + (N/4 · E[u uᵀ] + λ Σ⁻¹)⁻¹ g
    g = Σ_c w_c (1 - σ(u_c·μ)) u_c - N · E[σ(u·μ) u],    N = k · Σ_c w_c

u_c are output rows of the contexts c, w_c their weights; E is over the noise distribution with k
noise words a pair; μ and Σ are mean and covariance of known words' vectors. So a word's contexts
come in by two sums alone, g and N, which nodes can add up each by itself; then one linear map
follows, as in the à la carte embedding of Khodak et al. (2018, equation 4), whose map is a
regression.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.records import FloatArray, IntArray, TimeArray

KNOWN = 100
"""Running count from which a word's vector says what vectors of known words look like."""
SAMPLE = 2048
"""Rows of known words, and of noise words, that stand for all of them."""
CURVATURE = 0.25
PRIOR = 0.03
"""λ: pairs of one text say less than independent ones would, so the prior counts for less, too."""
_RIDGE = 1e-4
_EXPONENT = 0.75
"""Of counts, for the noise distribution: it only scales the bound on the curvature here."""


@dataclass(frozen=True)
class Viewpoint:
    """From where the contexts of young words are weighed; d is the tables' dimension.

    centre    float32 [d], μ
    noise     float32 [d], E[σ(u·μ) u]
    """

    centre: FloatArray
    noise: FloatArray

    @classmethod
    def of(cls, known: FloatArray, noise: FloatArray) -> Viewpoint | None:
        """From vectors of known words [n, d] and output rows drawn from the noise distribution.

        None when they are fewer than 2 d or not finite.
        """
        if min(len(known), len(noise)) < 2 * known.shape[1]:
            return None
        centre = known.mean(axis=0)
        pushed: FloatArray = _sigmoid(noise @ centre) @ noise / np.float32(len(noise))
        return cls(centre, pushed) if np.isfinite(centre @ pushed) else None

    def surprise(self, contexts: FloatArray) -> FloatArray:
        """1 - σ(u·μ) of output rows [m, d]: how much each has to say; float32 [m]."""
        return _sigmoid(-(contexts @ self.centre))


@dataclass(frozen=True)
class Frame:
    """The tables as they look to a young word; d is their dimension.

    centre    float32 [d], μ
    basis     float64 [d, d] with basisᵀ Σ⁻¹ basis = 1 and basisᵀ 1/4 E[u uᵀ] basis = diag(stiff)
    """

    centre: FloatArray
    basis: npt.NDArray[np.float64]
    stiff: npt.NDArray[np.float64]

    @classmethod
    def of(cls, known: FloatArray, noise: FloatArray) -> Frame | None:
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
        return cls(centre, lower @ turn, CURVATURE * np.maximum(stiff, 0.0))

    def infer(self, slopes: FloatArray, pairs: FloatArray) -> FloatArray:
        """Vectors float32 [n, d] of words from g [n, d] and N [n] (above)."""
        slope = slopes.astype(np.float64) @ self.basis
        step = slope / (pairs[:, None].astype(np.float64) * self.stiff + PRIOR)
        found: FloatArray = (self.centre + step @ self.basis.T).astype(np.float32)
        return found


def sampled(counts: TimeArray) -> tuple[IntArray, IntArray]:
    """Which words stand for the known ones, and for the noise distribution; places int64 in counts.

    counts  float64 [n], running counts; the same counts give the same words
    """
    rng = np.random.default_rng(0)
    known = np.flatnonzero(counts >= KNOWN)
    if len(known) > SAMPLE:
        known = np.sort(rng.choice(known, SAMPLE, replace=False))
    weights = np.maximum(counts, 0.0) ** _EXPONENT
    total = weights.sum()
    noise = rng.choice(len(counts), SAMPLE, p=weights / total) if total else known[:0]
    return known, noise


def _sigmoid(values: FloatArray) -> FloatArray:
    found: FloatArray = 0.5 * (1.0 + np.tanh(0.5 * values))
    return found
