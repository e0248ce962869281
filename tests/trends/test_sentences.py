"""A corpus whose lines are sentences of longer texts: nothing changed, and nothing is called."""

from __future__ import annotations

import random

import pytest

from benchmarks.nulluses import Corpus, calls

TEXTS, SENTENCES, WINDOWS, SUBJECTS = 240, 30, 4, 12


def corpus() -> Corpus:
    """Each text speaks of one subject in all of its sentences."""
    dice = random.Random(5)
    common = [f"말{i}" for i in range(40)]
    subjects = [[f"주제{i}낱말{j}" for j in range(25)] for i in range(SUBJECTS)]

    def text() -> list[list[str]]:
        words = dice.sample(dice.choice(subjects), 12)
        return [dice.choices(common, k=5) + dice.choices(words, k=5) for _ in range(SENTENCES)]

    return Corpus([text() for _ in range(TEXTS)])


@pytest.mark.parametrize("lines", [1, 100])
def test_sentences_of_one_text_are_no_witnesses_of_their_own(lines: int) -> None:
    found = [one["moved"] for one in calls(corpus(), 0, WINDOWS, 0, lines)]
    assert any(found) == (lines == 1)
