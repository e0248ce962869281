"""Word analogies: a is to b as c is to d, answered by 3CosAdd."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.evaluation.gold import Analogy, AnalogyGold
from embedding.evaluation.lookup import RowLookup, find, unit
from embedding.kernel.devices import DeviceArray, to_host

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


@dataclass(frozen=True)
class Analogies:
    """Results by section; `total` is their sum."""

    sections: dict[str, Section]

    @property
    def total(self) -> Section:
        parts = self.sections.values()
        return Section(
            correct=sum(part.correct for part in parts),
            asked=sum(part.asked for part in parts),
            questions=sum(part.questions for part in parts),
        )


def analogy(vectors: DeviceArray, rows: RowLookup, gold: AnalogyGold) -> Analogies:
    """Answer each question with the word nearest to b − a + c (unit vectors).

    3CosAdd, Mikolov et al. 2013 (Linguistic Regularities in Continuous Space Word
    Representations), equation 2; the three words of the question are no candidates. Questions
    with an unknown word are not asked.

    vectors  float [n, d] on any device; rows gives the row of a word
    """
    table = unit(vectors)
    return Analogies(
        {name: _section(table, rows, questions) for name, questions in gold.sections.items()}
    )


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
