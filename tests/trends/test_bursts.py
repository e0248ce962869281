"""Bursts of words (Kleinberg 2002)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embedding.kernel.records import Calendar, TokenBlock, WindowUnit
from embedding.trends.arrivals import bursts, emergence
from embedding.trends.frequency import Frequency
from embedding.worker.corpus.authors import Authors
from embedding.worker.corpus.counting import count_words


def test_a_rise_is_one_burst_and_its_windows_are_told():
    read = np.full(10, 1000)
    held = np.array([5, 6, 4, 5, 40, 45, 38, 5, 4, 6])
    (found,) = bursts(held, read)
    assert (found.first, found.last) == (4, 6)
    assert found.weight > 10


def test_a_steady_word_and_chance_do_not_burst():
    rng = np.random.default_rng(0)
    read = np.full(30, 2000)
    assert sum(len(bursts(rng.binomial(2000, 0.03, 30), read)) for _ in range(50)) <= 2


def test_a_window_without_documents_ends_nothing_and_a_silent_word_has_no_burst():
    held, read = np.array([1, 1, 30, 0, 32, 1, 1]), np.array([900, 900, 900, 0, 900, 900, 900])
    (found,) = bursts(held, read)
    assert (found.first, found.last) == (2, 4)
    assert bursts(np.zeros(4, dtype=np.int64), np.full(4, 10)) == []


@pytest.mark.parametrize("held", [[10, 10, 10], [0, 0, 30]])
def test_a_word_in_every_document_is_no_error(held):
    assert all(np.isfinite(one.weight) for one in bursts(np.array(held), np.array([10, 10, 30])))


DAY = 86_400
WRITERS = 2_000


def board(day: int, authors: Authors | None) -> Frequency:
    """A day of a board; on the last one 40 of 2,000 write 떼, and one 혼 a thousand times."""
    said = [
        (who, ["글", "떼"] if who < (40 if day == 9 else 4) else ["글"]) for who in range(WRITERS)
    ]
    alone = [(WRITERS, ["혼", "글"])] * (1_000 if day == 9 else 4)
    block = TokenBlock.build(
        "게시판",
        [[words] for _, words in said + alone],
        published=[float(day * DAY)] * len(said + alone),
        keys=[f"{day}/{at}" for at in range(len(said + alone))],
    )
    block = replace(block, voices=np.array([who for who, _ in said + alone], dtype=np.int64))
    rows = [np.arange(len(block.words), dtype=np.int64)]
    counted = count_words([block], rows, Calendar(WindowUnit.DAY), authors)
    names = [block.words[row] for row in counted.ids.tolist()]
    # As tests count a word: one document of each author.
    held, total = counted.columns[3][:, None], np.array([len(said + alone)])
    return Frequency(names, ("게시판",), counted.counts[:, None], held, total, total)


@pytest.mark.parametrize("told_apart", [True, False])
def test_one_author_does_not_burst_or_rise_above_many(told_apart: bool) -> None:
    authors = Authors() if told_apart else None
    days = [board(day, authors) for day in range(10)]
    read = np.full(10, WRITERS)
    weights = {}
    for word in ("떼", "혼"):
        held = np.array([day.take([word], day.sources)[1].sum() for day in days])
        weights[word] = sum(b.weight for b in bursts(held, read) if b.last == 9)
    judged = emergence(days[9], days[8], ["떼", "혼"], prior_documents=200.0)
    assert weights["떼"] > 20
    assert bool(weights["혼"] < weights["떼"]) is told_apart
    assert bool(judged.score[1] < judged.score[0]) is told_apart
    if told_apart:
        assert weights["혼"] == 0
        assert judged.z[1] < 1
