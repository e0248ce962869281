"""Word similarity: rank correlation between cosines and human scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.evaluation.gold import PairGold
from embedding.evaluation.lookup import RowLookup, find, unit
from embedding.kernel.devices import DeviceArray, to_host


@dataclass(frozen=True)
class Similarity:
    """Spearman's ρ over the pairs whose two words are known (nan below three such pairs)."""

    rho: float
    covered: int
    pairs: int

    @property
    def coverage(self) -> float:
        return self.covered / self.pairs


def spearman(left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> float:
    """Spearman's rank correlation of two float [n], ties at their mean rank (Spearman 1904).

    nan for fewer than three values or when one side is constant.
    """
    if len(left) < 3:
        return math.nan
    a, b = _ranks(left), _ranks(right)
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / scale if scale > 0 else math.nan


def similarity(vectors: DeviceArray, rows: RowLookup, gold: PairGold) -> Similarity:
    """Compare cosines of `vectors` (float [n, d], any device) with a gold set.

    `rows` gives the row of a word; pairs with an unknown word are left out and show in the
    coverage. Cosines are taken in float64 so that equal words tie.
    """
    left = find(rows, [pair[0] for pair in gold.pairs])
    right = find(rows, [pair[1] for pair in gold.pairs])
    known = (left >= 0) & (right >= 0)
    a = unit(to_host(vectors[left[known]]).astype(np.float64))
    b = unit(to_host(vectors[right[known]]).astype(np.float64))
    human = np.array([pair[2] for pair in gold.pairs], dtype=np.float64)
    rho = spearman((a * b).sum(1), human[known])
    return Similarity(rho=rho, covered=int(known.sum()), pairs=len(gold.pairs))


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """float64 [n]: rank of each value from 1, ties at their mean."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    mean = np.cumsum(sizes) - (sizes - 1) / 2
    ranks: npt.NDArray[np.float64] = mean[group]
    return ranks
