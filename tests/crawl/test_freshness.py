"""The optimal sharing of polls, against the closed form and against any other sharing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.crawl.schedule import ChangeRates, poll_rates, price_of

RATES = st.lists(st.tuples(st.floats(1e-3, 50), st.floats(0.1, 10)), min_size=1, max_size=30)


def changes(pairs: list[tuple[float, float]], least: float = 0.0, most: float = 1e9) -> ChangeRates:
    rates, weights = np.array(pairs).T
    n = len(rates)
    return ChangeRates(
        quiet=rates,
        heard=np.zeros(n),
        signals=np.zeros(n),
        weight=weights,
        cost=np.ones(n),
        least=np.full(n, least),
        most=np.full(n, most),
    )


def closed_form(one: ChangeRates, budget: float) -> np.ndarray:
    """Azar et al. 2018: the k sources of largest weight / rate are polled, for the right k."""
    order = np.argsort(-one.weight / one.rate)
    for k in range(len(order), 0, -1):
        chosen = order[:k]
        root = np.sqrt(one.weight * one.rate)[chosen]
        polls = root * (budget + one.rate[chosen].sum()) / root.sum() - one.rate[chosen]
        if polls.min() >= 0:
            found = np.zeros(len(order))
            found[chosen] = polls
            return found
    raise AssertionError


@given(RATES, st.floats(0.01, 100))
@settings(deadline=None)
def test_the_price_finds_the_closed_form(pairs: list[tuple[float, float]], budget: float) -> None:
    one = changes(pairs)
    polls = poll_rates(one, price_of(one, budget))
    assert polls == pytest.approx(closed_form(one, budget), rel=1e-4, abs=1e-4 * budget)


@given(RATES, st.floats(0.1, 100), st.floats(0, 0.01), st.integers(0, 1000))
@settings(deadline=None)
def test_no_other_sharing_within_the_bounds_is_fresher(
    pairs: list[tuple[float, float]], budget: float, least: float, seed: int
) -> None:
    one = changes(pairs, least, 5.0)
    if len(pairs) * least > budget:
        return
    polls = poll_rates(one, price_of(one, budget))
    assert polls.sum() <= budget * (1 + 1e-6)
    assert ((polls >= least) & (polls <= 5.0)).all()

    def freshness(rates: np.ndarray) -> float:
        return float(np.sum(one.weight * rates / (rates + one.rate)))

    # Any move of polls from one source to another loses.
    rng = np.random.default_rng(seed)
    for _ in range(10):
        i, j = rng.integers(len(pairs), size=2)
        step = min(1e-3 * budget, polls[i] - least, 5.0 - polls[j])
        if i != j and step > 0:
            moved = polls.copy()
            moved[i] -= step
            moved[j] += step
            assert freshness(moved) <= freshness(polls) * (1 + 1e-9)


def test_what_changes_too_often_is_polled_least_and_weight_brings_it_back() -> None:
    plain = changes([(1.0, 1.0), (1.0, 1.0), (50.0, 1.0)], least=0.01)
    assert poll_rates(plain, price_of(plain, 1.0))[2] == pytest.approx(0.01)
    weighty = changes([(1.0, 1.0), (1.0, 1.0), (50.0, 100.0)], least=0.01)
    assert poll_rates(weighty, price_of(weighty, 1.0))[2] > 0.1


def test_a_budget_that_is_large_enough_has_no_price() -> None:
    one = changes([(1.0, 1.0), (2.0, 1.0)], most=3.0)
    assert price_of(one, 6.0) == 0.0
    assert poll_rates(one, 0.0) == pytest.approx([3.0, 3.0])
