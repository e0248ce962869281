"""Which known word a young one may be another name of, by what stands around both.

Bayes' rule for a mixture. x is the mean of what stood around a word (`inference.py`); one from
contexts of the weight W lies N(0, c/W Σ) away from the word's own mean, Σ the covariance of single
contexts. A word is another name of a known one with the small chance π, which of them is open, and
otherwise a word of its own, somewhere near the known ones:

    p(x | k)      = N(x; x_k, c (1/W + 1/W_k) Σ)                     another name of k
    p(x | none)   = mean over k of N(x; x_k, τ² S + c (1/W + 1/W_k) Σ)
    p(k | x)      = π/K p(x | k) / (π/K Σ_j p(x | j) + (1 - π) p(x | none))

S is the covariance of means between words. c, τ: the likelihood of halves of known words, and of
known words left out (benchmarks/results/young-2026-11-22-bags.md); π lies below what it would say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.records import FloatArray

Floats = npt.NDArray[np.float64]

PRIOR = 0.01
"""π."""
_NOISE = 1.2
"""c; contexts of one text are alike, so it is more than that of contexts drawn one by one."""
_NEAR = 0.5
"""τ."""
_BLOCK = 2048
"""Words at a time, each with a chance for every known word."""


@dataclass(frozen=True)
class Twins:
    """Means of known words on axes where Σ is the unit matrix and S a diagonal one.

    axes     float64 [d, d], x @ axes is x there
    between  float64 [d], the diagonal of S
    places   float32 [K, d]; noise float64 [K], c/W_k
    """

    axes: Floats
    between: Floats
    places: FloatArray
    noise: Floats

    @classmethod
    def of(cls, means: Floats, weights: FloatArray, second: Floats) -> Twins | None:
        """From means x_k [K, d] less their own mean, W_k [K] and Σ [d, d] of single contexts.

        None when Σ or S says nothing: contexts that are all alike, or means that are nothing but
        noise.
        """
        noise = _NOISE / np.asarray(weights, dtype=np.float64)
        try:
            size, turn = np.linalg.eigh(second)
            if not size.mean() > 0:
                return None
            axes = turn / np.sqrt(np.maximum(size, 1e-3 * size.mean()))
            placed = means @ axes
            spread = placed.T @ placed / len(placed) - noise.mean() * np.eye(len(second))
            between, turn = np.linalg.eigh(spread)
        except np.linalg.LinAlgError:
            return None
        if not between.mean() > 0:
            return None
        between = np.maximum(between, 1e-2 * between.mean())
        return cls(axes @ turn, between, (placed @ turn).astype(np.float32), _rounded(noise))

    def shares(self, means: Floats, weights: FloatArray) -> FloatArray:
        """p(k | x), float32 [n, K], of words from their x less the same mean [n, d] and W [n]."""
        placed = (means @ self.axes).astype(np.float32)
        noise = _rounded(_NOISE / np.asarray(weights, dtype=np.float64))
        found = np.empty((len(placed), len(self.places)), dtype=np.float32)
        for at in range(0, len(placed), _BLOCK):
            part = slice(at, at + _BLOCK)
            found[part] = self._posterior(placed[part], noise[part])
        return found

    def _posterior(self, placed: FloatArray, noise: Floats) -> FloatArray:
        same = self._likelihood(placed, noise, 0.0) + np.float32(np.log(PRIOR))
        own = self._likelihood(placed, noise, _NEAR**2) + np.float32(np.log1p(-PRIOR))
        most = np.maximum(same.max(axis=1), own.max(axis=1))[:, None]
        chance: FloatArray = np.exp(same - most)
        total = chance.sum(axis=1) + np.exp(own - most).sum(axis=1)
        chance /= total[:, None]
        return chance

    def _likelihood(self, placed: FloatArray, noise: Floats, near: float) -> FloatArray:
        """log N(x; x_k, near S + noise), up to a constant, float32 [n, K].

        Words with as much noise have the same covariance, so that there is one product for all.
        """
        found = np.empty((len(placed), len(self.places)), dtype=np.float32)
        for one in np.unique(noise):
            rows = np.flatnonzero(noise == one)
            for other in np.unique(self.noise):
                columns = np.flatnonzero(self.noise == other)
                spread = near * self.between + one + other
                scale = (1.0 / np.sqrt(spread)).astype(np.float32)
                asked, known = placed[rows] * scale, self.places[columns] * scale
                away = (asked**2).sum(axis=1)[:, None] + (known**2).sum(axis=1)
                away -= 2.0 * (asked @ known.T)
                found[np.ix_(rows, columns)] = -0.5 * (away + np.log(spread).sum())
        return found


def _rounded(noise: Floats) -> Floats:
    """To half octaves: a few kinds of words instead of one for each."""
    found: Floats = np.exp2(np.round(2.0 * np.log2(noise)) / 2.0)
    return found
