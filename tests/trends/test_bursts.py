"""Bursts of words (Kleinberg 2002)."""

from __future__ import annotations

import numpy as np
import pytest

from embedding.trends.bursts import bursts


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
