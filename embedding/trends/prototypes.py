"""How much the use of a word differs between two times: the cosine distance of its prototypes.

A document that uses a word gives one unit vector, and the mean x̄ of all of one time is the word's
prototype. Their distance (PRT; Kutuzov and Giulianelli 2020, "UiO-UvA at SemEval-2020 Task 1",
section 3) is 1 − x̄·ȳ / (|x̄| |ȳ|). It is what people's judgements of change agree with, where the
plain |x̄ − ȳ|² does not (ADR 37): that is large for words whose documents are alike, changed or not.

The mean of few documents is longer than what it estimates, by chance, so PRT says that rare words
changed. Pairs of different units, which hold different texts, have no chance in common:

    l² = (|Σ_k s_k|² − Σ_k |s_k|²) / (N² − Σ_k n_k²)

with s_k the sum and n_k the documents of unit k, N = Σ n_k. As few documents say badly how large it
is, it is moderated towards its median l₀² over all words (as variances are, Smyth 2004): |x̄|² ≈
(N l² + _PRIOR l₀²) / (N + _PRIOR). PRT by these lengths is the cosine distance corrected for
attenuation (Spearman 1904): about 0 for a word that did not change, however rare, and below it for
half of these. Of several sources the products and the squared lengths are means, weighted by
N1 N2 / (N1 + N2) of each, so that another mix of sources is no change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from embedding.kernel.records import FloatArray
from embedding.trends.replicas import Units
from embedding.trends.significance import TestArray

_PRIOR = 10.0
"""Documents that the median length counts for, chosen on planted petitions."""
_SHORTEST = 1e-4
"""Of a squared length: that of words whose documents have nothing in common is 0 or below."""
_WITHIN = 1.96
"""Standard errors on either side of an interval of 95 %."""


@dataclass(frozen=True)
class Prototypes:
    """Of n words, at both times.

    product    float64 [n]: x̄·ȳ; NaN where no source has two units of each time
    squares    float64 [2, n]: l² before and after
    documents  float64 [2, n]: N
    """

    product: TestArray
    squares: TestArray
    documents: TestArray

    @classmethod
    def of(cls, units: Units, common: FloatArray) -> Prototypes:
        """common: float32 [dim, c], directions that are taken out."""
        n = len(units.documents)
        means, weights = np.zeros((3, n)), np.zeros(n)
        totals = np.zeros((2, n))
        for source in np.unique(units.source).tolist():
            sums, squares = [], []
            seen = np.zeros((2, n))
            for time, later in enumerate((False, True)):
                own = (units.source == source) & (units.later == later)
                documents = units.documents[:, own].astype(np.float64)
                vectors = units.sums[:, own] - (units.sums[:, own] @ common) @ common.T
                whole = vectors.sum(axis=1, dtype=np.float64)
                alone = np.einsum("nkd,nkd->n", vectors, vectors, dtype=np.float64)
                seen[time] = documents.sum(axis=1)
                pairs = seen[time] ** 2 - (documents**2).sum(axis=1)
                with np.errstate(invalid="ignore", divide="ignore"):
                    squares.append(
                        np.where(pairs > 0, ((whole**2).sum(axis=1) - alone) / pairs, np.nan)
                    )
                    sums.append(whole / seen[time][:, None])
            figures = np.stack([np.einsum("nd,nd->n", *sums), *squares])
            known = np.isfinite(figures).all(axis=0)
            weight = np.where(known, seen[0] * seen[1] / np.maximum(seen.sum(axis=0), 1.0), 0.0)
            means += weight * np.where(known, figures, 0.0)
            weights += weight
            totals += np.where(known, seen, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            means /= weights
        return cls(means[0], means[1:], totals)

    @classmethod
    def joined(cls, parts: list[Prototypes]) -> Prototypes:
        """Of all words of some parts."""
        figures = [(part.product, part.squares, part.documents) for part in parts]
        return cls(*(np.concatenate(columns, axis=-1) for columns in zip(*figures, strict=True)))

    def usual(self) -> TestArray:
        """l₀² float64 [2], before and after: the medians over all words."""
        known = np.isfinite(self.product)
        return np.median(self.squares[:, known], axis=1) if known.any() else np.ones(2)

    def lengths(self, usual: TestArray) -> TestArray:
        """|x̄| |ȳ| float64 [n], without chance. usual: l₀² [2]."""
        squares = self.documents * self.squares + _PRIOR * usual[:, None]
        squares /= self.documents + _PRIOR
        lengths: TestArray = np.sqrt(np.maximum(squares, _SHORTEST).prod(axis=0))
        return lengths

    def distance(self, usual: TestArray) -> TestArray:
        """PRT float64 [n], 0 where nothing is known. usual: l₀² [2]."""
        distances = 1.0 - self.product / self.lengths(usual)
        return np.where(np.isfinite(distances), distances, 0.0)


def interval(
    units: Units, common: FloatArray, usual: TestArray, chance: float
) -> tuple[float, float]:
    """Between what the distance of one word lies with 95 %.

    Each unit is left out in turn (the jackknife by strata of Jones 1974): of each source and time
    the r units that have any documents add (r − 1)/r Σ (d_k − d̄)² to the variance, d_k the distance
    without unit k. Near 0 the distance has no slope, and this says too little; there the deviation
    is that of |x̄ − ȳ|² where nothing changed, `chance`, over 2 |x̄| |ȳ|. Both are added up.
    """
    used = np.flatnonzero(units.documents[0] > 0)
    others = ~np.eye(len(units.later), dtype=bool)[used]
    documents, sums = units.documents * others, units.sums * others[..., None]
    without = replace(units, documents=documents, sums=sums)
    whole = Prototypes.of(units, common)
    distance = float(whole.distance(usual)[0])
    distances = Prototypes.of(without, common).distance(usual)
    strata = 2 * units.source[used] + units.later[used]
    variance = (chance / float(whole.lengths(usual)[0]) / 2.0) ** 2
    for stratum in np.unique(strata):
        own = distances[strata == stratum]
        variance += (len(own) - 1) / len(own) * float(((own - own.mean()) ** 2).sum())
    return distance - _WITHIN * variance**0.5, distance + _WITHIN * variance**0.5
