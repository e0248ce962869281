"""Which known word a young one may be another name of, by what stands around both.

Bayes' rule for a mixture. x is the mean of what stood around a word (`inference.py`); one from
contexts of the weight W lies N(0, c/W Σ) away from the word's own mean, Σ the covariance of single
contexts. A word is another name of a known one with the small chance π, which of them is open, and
otherwise a word of its own, somewhere near the known ones:

    p(x | k)      = N(x; x_k, c (1/W + 1/W_k) Σ)                     another name of k
    p(x | none)   = mean over k of N(x; x_k, τ² S + c (1/W + 1/W_k) Σ)
    p(k | x)      = π/K p(x | k) / (π/K Σ_j p(x | j) + (1 - π) p(x | none))

S is the covariance of means between words. c, τ: the likelihood of halves of known words, and of
known words left out (docs/adr/0008-young-words.md); π lies below what it would say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_Floats = npt.NDArray[np.float64]

PRIOR = 0.01
"""π."""
_NOISE = 1.2
"""c; contexts of one text are alike, so it is more than that of contexts drawn one by one."""
_NEAR = 0.5
"""τ."""
_BLOCK = 256
"""Words at a time, each with a chance for every known word: they stay in the processor's cache."""
_LEAST_SHARE = 2 * PRIOR
"""A word that is another name with less than this chance is taken for one of its own."""
_FEW = 24.0
"""W up to which nothing is asked: about four mentions with windows of five."""
_LEAST = 1e-5
"""A known word with less than this chance has none."""


@dataclass(frozen=True)
class Twins:
    """Means of known words on axes where Σ is the unit matrix and S a diagonal one.

    axes     float64 [d, d], x @ axes is x there
    between  float64 [d], the diagonal of S
    places   float32 [K, d]; noise float64 [K], c/W_k, a few values
    """

    axes: _Floats
    between: _Floats
    places: FloatArray
    noise: _Floats

    @classmethod
    def of(cls, means: _Floats, weights: FloatArray, second: _Floats) -> Twins | None:
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

    def shares(self, means: _Floats, weights: FloatArray) -> csr_array:
        """p(k | x), float32 [n, K], of words from their x less the same mean [n, d] and W [n]."""
        from scipy.sparse import csr_array  # only here: most servers and shards read no words

        placed = (means @ self.axes).astype(np.float32)
        noise = _rounded(_NOISE / np.asarray(weights, dtype=np.float64))
        none = np.empty(0, dtype=np.int64)
        parts = [(none, none, np.empty(0, dtype=np.float32))]
        for level in np.unique(noise).tolist():
            if level > _NOISE / _FEW:
                break
            rows, density = np.flatnonzero(noise == level), self._densities(level)
            for at in range(0, len(rows), _BLOCK):
                part = rows[at : at + _BLOCK]
                word, known, chance = self._posterior(placed[part], density, level)
                parts.append((part[word], known, chance))
        word, known, chance = (np.concatenate(each) for each in zip(*parts, strict=True))
        shape = (len(placed), len(self.places))
        shares: csr_array = csr_array((chance, (word, known)), shape=shape)
        return shares

    def _densities(self, noise: float) -> FloatArray:
        """Factors [d + 2, K] of (x, |x|², 1) in log π N(x; x_k, noise + noise_k)."""
        scale = 1.0 / (noise + self.noise)
        length = (self.places.astype(np.float64) ** 2).sum(axis=1)
        constant = 0.5 * (len(self.between) * np.log(scale) - length * scale) + np.log(PRIOR)
        rows = [self.places.T * scale, -0.5 * scale[None], constant[None]]
        return np.concatenate(rows).astype(np.float32)

    def _posterior(
        self, placed: FloatArray, density: FloatArray, noise: float
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Words, known words and chances, where there is one."""
        length = (placed**2).sum(axis=1, keepdims=True)
        chance = np.concatenate([placed, length, np.ones_like(length)], axis=1) @ density
        best = chance.argmax(axis=1)
        most = chance[np.arange(len(chance)), best]
        chance -= most[:, None]
        np.exp(chance, out=chance)
        same = chance.sum(axis=1)
        # What is alike most makes at least so much of the other sum: most words need no more.
        spread = _NEAR**2 * self.between + (noise + self.noise[best])[:, None]
        own = ((placed - self.places[best]) ** 2 / spread + np.log(spread)).sum(axis=1)
        ratio = np.exp(np.clip(np.log1p(-PRIOR) - 0.5 * own - most, -80.0, 80.0))
        fit = np.flatnonzero(same > _LEAST_SHARE * (same + ratio))
        others = np.exp(np.minimum(self._own(placed[fit], noise) - most[fit], 80.0))
        total = same[fit] + others
        shares = chance[fit] / total[:, None]
        shares[same[fit] < _LEAST_SHARE * total] = 0.0
        word, known = np.nonzero(shares > _LEAST)
        return fit[word], known, shares[word, known].astype(np.float32)

    def _own(self, placed: FloatArray, noise: float) -> _Floats:
        """log (1 - π) Σ_k N(x; x_k, τ² S + noise + noise_k) [n], up to the constant of `same`."""
        logs = np.full(len(placed), -np.inf)
        for other in np.unique(self.noise).tolist():
            spread = _NEAR**2 * self.between + noise + other
            scale = (1.0 / np.sqrt(spread)).astype(np.float32)
            asked, known = placed * scale, self.places[self.noise == other] * scale
            near = asked @ known.T
            near -= 0.5 * (known**2).sum(axis=1)
            most = near.max(axis=1, initial=-np.inf)
            near -= most[:, None]
            log = most + np.log(np.exp(near).sum(axis=1)) - 0.5 * (asked**2).sum(axis=1)
            logs = np.logaddexp(logs, log - 0.5 * np.log(spread).sum())
        logs += np.log1p(-PRIOR)
        return logs


def _rounded(noise: _Floats) -> _Floats:
    """To half octaves: a few kinds of words instead of one for each."""
    return np.exp2(np.round(2.0 * np.log2(noise)) / 2.0)
