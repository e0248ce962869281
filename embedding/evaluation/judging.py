"""How vectors do on gold sets: similarity, the rank correlation between cosines and human scores,
and analogies, a is to b as c is to d, answered by 3CosAdd."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.evaluation.gold import Analogy, AnalogyGold, PairGold
from embedding.kernel.devices import DeviceArray, to_host
from embedding.kernel.records import FloatArray, IntArray

RowLookup = Callable[[Sequence[str]], IntArray]
"""Rows of words, int64, -1 for an unknown one; `Snapshot.rows` is one."""


def find(rows: RowLookup, words: Sequence[str]) -> IntArray:
    """int64 [n]: the row of each word as written, else in lower case, else -1."""
    indices = rows(words).copy()
    missing = indices < 0
    if missing.any():
        lowered = [word.lower() for word, absent in zip(words, missing, strict=True) if absent]
        indices[missing] = rows(lowered)
    return indices


def unit(vectors: DeviceArray) -> DeviceArray:
    """float [n, d] rows of length 1, on any device; a row of zeros stays one."""
    if isinstance(vectors, np.ndarray):
        length = np.linalg.norm(vectors, axis=1)
    else:
        length = vectors.norm(dim=1)
    length[length == 0.0] = 1.0
    return vectors / length[:, None]


class NearestRows:
    """Keeps the n rows nearest to one query (snapshots/nearness.py).

    query   float [d] on any device; blocks that are shown come from the same device
    centre  float [d], what all words have in common; None: nothing
    """

    def __init__(self, query: DeviceArray, n: int, centre: DeviceArray | None = None) -> None:
        self._centre = query * 0.0 if centre is None else centre
        self._query = unit(unit(query[None]) - self._centre)[0]
        self._n = n
        self._near: FloatArray = np.empty(0, dtype=np.float32)
        self._rows: IntArray = np.empty(0, dtype=np.int64)

    def show(self, rows: IntArray, vectors: DeviceArray, sure: FloatArray) -> None:
        """A block: rows int64 [m] by which vectors float [m, d] are known, `sureness` float [m].

        Zeros are left out.
        """
        nearness = to_host(unit(unit(vectors) - self._centre) @ self._query) * sure
        nearness[~to_host((vectors != 0).any(1))] = -np.inf
        near, rows = np.concatenate([self._near, nearness]), np.concatenate([self._rows, rows])
        best = np.argsort(-near, kind="stable")[: self._n]
        self._near, self._rows = near[best], rows[best]

    def best(self) -> list[tuple[int, float]]:
        """(row, nearness), highest first."""
        pairs = zip(self._rows.tolist(), self._near.tolist(), strict=True)
        return [(row, near) for row, near in pairs if near > -2.0]


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


_BLOCK = 256


@dataclass(frozen=True)
class Section:
    """Questions asked (all four words known), answered right, and in the gold file."""

    correct: int
    asked: int
    questions: int

    @property
    def accuracy(self) -> float:
        """Share of the asked questions answered right, nan when none could be asked."""
        return self.correct / self.asked if self.asked else math.nan


def analogy(
    vectors: DeviceArray, rows: RowLookup, gold: AnalogyGold
) -> tuple[Section, dict[str, Section]]:
    """Answer each question with the word nearest to b − a + c (unit vectors); the sum of all
    sections, and each by its name.

    3CosAdd, Mikolov et al. 2013 (Linguistic Regularities in Continuous Space Word
    Representations), equation 2; the three words of the question are no candidates. Questions
    with an unknown word are not asked.

    vectors  float [n, d] on any device; rows gives the row of a word
    """
    table = unit(vectors)
    sections = {name: _section(table, rows, questions) for name, questions in gold.sections.items()}
    parts = [(part.correct, part.asked, part.questions) for part in sections.values()]
    return Section(*map(sum, zip((0, 0, 0), *parts, strict=True))), sections


def _section(table: DeviceArray, rows: RowLookup, questions: Sequence[Analogy]) -> Section:
    flat = find(rows, [word for question in questions for word in question])
    asked = flat.reshape(-1, 4)
    asked = asked[(asked >= 0).all(axis=1)]
    correct = 0
    for start in range(0, len(asked), _BLOCK):
        a, b, c, d = asked[start : start + _BLOCK].T
        scores = (table[b] - table[a] + table[c]) @ table.T
        every = np.arange(len(d))
        for own in (a, b, c):
            scores[every, own] = -np.inf
        correct += int((to_host(scores.argmax(1)) == d).sum())
    return Section(correct=correct, asked=len(asked), questions=len(questions))
