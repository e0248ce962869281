"""Means of rows over their last ticks."""

from __future__ import annotations

import numpy as np
import pytest

from embedding.records import Table
from embedding.worker.smoothing import LATER, LEAST, MANY, RowMeans

DIM = 4


def means_of(*ids: int) -> RowMeans:
    means = RowMeans(DIM)
    means.begin(np.array(ids, dtype=np.int64))
    return means


def rows(*values: float) -> np.ndarray:
    return np.repeat(np.array(values, dtype=np.float32)[:, None], DIM, axis=1)


def take(means: RowMeans, word: int, value: float, table: Table = Table.OUT) -> float:
    return float(means.smooth(table, means.places(np.array([word])), rows(value))[0, 0])


def test_a_row_is_its_own_mean_at_first_and_later_rows_count_more():
    means, expected = means_of(2, 5), 0.0
    for n, value in enumerate((3.0, -1.0, 4.0, 1.0, -5.0), start=1):
        weight = (1 + LATER) / (n + LATER)
        expected += weight * (value - expected)
        assert take(means, 5, value) == pytest.approx(expected, rel=1e-5)
    assert take(means, 2, 7.0) == 7.0, "each word for itself"
    assert take(means, 5, 7.0, Table.IN) == 7.0, "each table for itself"


def test_of_a_row_that_comes_often_the_last_ones_count():
    means = means_of(1)
    for _ in range(1_000):
        take(means, 1, 8.0)
    for n in range(1, 40):
        assert take(means, 1, 0.0) == pytest.approx(8.0 * (1 - LEAST) ** n, rel=1e-4)


def test_chance_goes_out_of_a_row_that_moves_about_a_place():
    rng = np.random.default_rng(1)
    means, ids = means_of(*range(200)), np.arange(200)
    for _ in range(100):
        drawn = rng.normal(1.0, 0.5, (200, DIM)).astype(np.float32)
        smooth = means.smooth(Table.IN, means.places(ids), drawn)
    assert smooth.mean() == pytest.approx(1.0, abs=0.02)
    assert smooth.std() < 0.25 * drawn.std()


def test_what_is_given_stays_as_it_is_and_younger_words_are_given_back():
    means, given = means_of(3), rows(1.0, 2.0)
    take(means, 3, 0.0)
    found = means.smooth(Table.OUT, means.places(np.array([3, 9])), given)
    assert given[:, 0].tolist() == [1.0, 2.0]
    assert found[:, 0].tolist() == [pytest.approx(0.8), 2.0]
    assert means.smooth(Table.OUT, means.places(np.array([9])), rows(5.0))[0, 0] == 5.0


def test_words_that_stay_keep_their_means_and_one_that_left_is_forgotten():
    means = means_of(3, 4, 8)
    take(means, 4, 1.0)
    take(means, 8, 1.0)
    means.begin(np.array([4, 9]))
    assert take(means, 4, 0.0) == pytest.approx(0.2)
    assert take(means, 9, 6.0) == 6.0
    means.begin(np.array([4, 8, 9]))
    assert take(means, 8, 0.0) == 0.0


def test_half_precision_rows_are_taken():
    found = means_of(1).smooth(Table.IN, np.array([0]), rows(0.5).astype(np.float16))
    assert found.dtype == np.float32
    assert found[0, 0] == 0.5


def test_words_that_come_while_a_stream_is_young_have_means_too():
    means = RowMeans(DIM)
    means.meet(np.array([3, 5]))
    assert take(means, 3, 1.0) == 1.0
    means.meet(np.array([3, 4]))
    assert take(means, 3, 0.0) == pytest.approx(0.2), "its mean was kept"
    assert take(means, 4, 1.0) == 1.0
    assert take(means, 4, 0.0) == pytest.approx(0.2)


def test_a_few_younger_words_wait_until_they_are_many_or_a_window_begins():
    means = means_of(*range(1_000))
    held = means.ids
    few = np.arange(1_000, 1_000 + int(1_000 * MANY))
    means.meet(few)
    assert means.ids is held, "nothing is copied for them"
    means.meet(np.array([7, 2_000]))
    assert means.ids.tolist() == [*range(1_000), *few.tolist(), 2_000]
    means.meet(np.array([3_000]))
    means.begin(np.array([1, 2, 3_000]))
    assert means.ids.tolist() == [1, 2, 3_000]
