"""How near a word is to another: cosine of what tells words apart, less what is unsure.

All vectors of a model have a direction in common, the more the less text it has read; cosines then
say how much of it a word has, which is how frequent it is, and everything is near the same few
words. So the mean of the unit vectors of frequent words is taken out before words are compared (Mu
and Viswanath 2018, "All-but-the-top", equation 1; taking leading directions out as well found no
more of a larger model's neighbours, ADR 21):

    d(x) = unit(unit(x) − m),    m = mean of unit(x) over the `_CENTRED` most frequent words

A vector learnt from c mentions is partly what the word means and partly what happened to stand
around it. A cosine with such a vector says too much: of two measurements of which one has the
reliability r, the expected correlation with what was to be measured is √r of what is seen
(Spearman 1904). Among many candidates the unsure ones win by chance, and the nearest words of a
word would be rare ones. So words are ranked by

    nearness(x, y) = d(x)·d(y) · √(c_y / (c_y + UNSURE)),

c_y the running count of the word that is looked for (docs/adr/0018-nearness.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import FloatArray, IntArray

_CENTRED = 3_000
"""Most frequent words whose mean is taken out."""
FEWEST = 100
"""Words below which nothing is taken out: their mean would be the words themselves."""
UNSURE = 20.0
"""Mentions after which half of a vector's variance is chance."""
_BLOCK = 16_384


def sureness(counts: npt.ArrayLike) -> FloatArray:
    """float32 [n]: √(c / (c + UNSURE)) of running counts [n]; one below 1 counts as 1."""
    known = np.maximum(np.asarray(counts, dtype=np.float64), 1.0)
    factors: FloatArray = np.sqrt(known / (known + UNSURE)).astype(np.float32)
    return factors


def frequent(counts: npt.ArrayLike, most: int = _CENTRED) -> npt.NDArray[np.int64]:
    """Increasing rows int64 [≤ most] of the words with the highest counts [n]."""
    known = np.asarray(counts)
    if len(known) <= most:
        return np.arange(len(known), dtype=np.int64)
    return np.sort(np.argsort(-known, kind="stable")[:most]).astype(np.int64)


def centre_of(vectors: FloatArray) -> FloatArray:
    """m float32 [d] of the vectors [n, d] of frequent words; zeros of fewer than `FEWEST`."""
    units = unit_rows(np.asarray(vectors, dtype=np.float32))
    if len(units) < FEWEST:
        return np.zeros(units.shape[1], dtype=np.float32)
    mean: FloatArray = units.mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean


def directions_of(vectors: FloatArray, centre: FloatArray) -> FloatArray:
    """d(x) float32 [n, d] of vectors [n, d]; zeros for a vector of zeros."""
    rows = np.asarray(vectors, dtype=np.float32)
    nonzero = rows.any(axis=1, keepdims=True)
    directions: FloatArray = unit_rows((unit_rows(rows) - centre) * nonzero)
    return directions


def unit_rows(rows: FloatArray) -> FloatArray:
    """float32 [n, d]: rows divided by their length; rows of zeros stay zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units = np.zeros(rows.shape, dtype=np.float32)
    np.divide(rows, lengths, out=units, where=lengths > 0)
    return units


@dataclass(frozen=True)
class RowScales:
    """What nearness needs of n rows beside their product with a query.

    With q = d(query), so that no row has to be centred for it:

        nearness = d(x)·q · sure = (x·q · inverse - m·q) · outer

    centre   m float32 [d]; inverse: float32 [n], 1/|x|
    outer    float32 [n], sure / |unit(x) - m|; 0 for a row of zeros
    """

    centre: FloatArray
    inverse: FloatArray
    outer: FloatArray

    @classmethod
    def of(cls, vectors: FloatArray, centre: FloatArray, sure: FloatArray) -> RowScales:
        """Of vectors float32 [n, d], with their `sureness`."""
        inverse, outer = np.zeros(len(vectors), np.float32), np.zeros(len(vectors), np.float32)
        for start in range(0, len(vectors), _BLOCK):
            rows, part = vectors[start : start + _BLOCK], slice(start, start + _BLOCK)
            lengths = np.linalg.norm(rows, axis=1)
            apart = np.linalg.norm(unit_rows(rows) - centre, axis=1)
            nonzero = (lengths > 0) & (apart > 0)
            np.divide(1.0, lengths, out=inverse[part], where=nonzero, casting="unsafe")
            np.divide(1.0, apart, out=outer[part], where=nonzero, casting="unsafe")
        return cls(centre, inverse, outer * sure)

    def nearest(
        self, vectors: FloatArray, query: FloatArray, n: int, without: int = -1
    ) -> tuple[IntArray, FloatArray]:
        """The n rows nearest to a vector float [d] as `highest` has them, and their nearness.

        vectors  float32 [n, d], the same; without: a row that is left out
        """
        unit = directions_of(query[None], self.centre)[0]
        # Bound by memory: the threads of BLAS would cost more than they save.
        near = (np.vecdot(vectors, unit) * self.inverse - unit @ self.centre) * self.outer
        if without >= 0:
            near[without] = -np.inf
        best = highest(near, n)
        return best, near[best]


def highest(figures: FloatArray, n: int) -> IntArray:
    """int64 [k ≤ n]: places of the highest finite figures of [m], highest first, the first of
    equal ones before the others.
    """
    k = min(n, len(figures))
    best = np.argpartition(-figures, k - 1)[:k] if k < len(figures) else np.arange(k)
    best = best[np.lexsort((best, -figures[best]))]
    finite: IntArray = best[np.isfinite(figures[best])]
    return finite
