"""Rates of change learnt from looks that only tell whether something has changed."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from embedding.sources.changes import ChangeRate

LOOKS = st.lists(
    st.tuples(st.floats(1e-3, 1e7), st.booleans(), st.integers(0, 50)), min_size=1, max_size=60
)


@given(LOOKS, st.floats(1e-6, 10))
@settings(deadline=None)
def test_beliefs_stay_sane_whatever_is_seen(
    looks: list[tuple[float, bool, int]], rate: float
) -> None:
    changes = ChangeRate(rate)
    for elapsed, changed, signals in looks:
        changes.observe(elapsed, changed, signals)
        for value in (changes.rate, changes.quiet.shape, changes.quiet.inverse):
            assert 0 < value < math.inf
        assert 0 <= changes.precision <= 1
    again = ChangeRate(rate)
    again.restore(json.loads(json.dumps(changes.state())))
    assert again.rate == pytest.approx(changes.rate)
    assert again.state() == changes.state()


def test_a_change_seen_raises_the_rate_and_quiet_lowers_it() -> None:
    for elapsed in (0.01, 1.0, 100.0):
        up, down = ChangeRate(1.0), ChangeRate(1.0)
        up.observe(elapsed, True)
        down.observe(elapsed, False)
        assert down.rate < 1.0 < up.rate


@pytest.mark.parametrize("interval", [0.3, 1.0, 2.5])
def test_the_estimate_agrees_with_maximum_likelihood(interval: float) -> None:
    """Of the censored likelihood, as in Cho and Garcia-Molina 2003, at unequal intervals."""
    rng = np.random.default_rng(3)
    ratios = []
    for _ in range(20):
        changes = ChangeRate(1.0)
        spans = rng.uniform(0.5, 1.5, 100) * interval
        seen = rng.random(100) < -np.expm1(-spans * 0.7)
        for span, changed in zip(spans, seen, strict=True):
            changes.observe(float(span), bool(changed))

        def loss(rate: float, spans: object = spans, seen: object = seen) -> float:
            gone = np.log(-np.expm1(-rate * spans[seen])).sum()
            return float(rate * spans[~seen].sum() - gone)

        best = minimize_scalar(loss, bounds=(1e-4, 20), method="bounded").x
        ratios.append(changes.rate / best)
    assert np.exp(np.mean(np.log(ratios))) == pytest.approx(1.0, abs=0.08)
    assert np.std(np.log(ratios)) < 0.25


def test_a_rate_that_moves_is_followed() -> None:
    rng = np.random.default_rng(5)
    changes = ChangeRate(1.0)
    for rate in (0.2, 3.0, 0.2):
        for _ in range(400):
            changes.observe(0.7, bool(rng.random() < -math.expm1(-0.7 * rate)))
        assert rate / 1.5 < changes.rate < rate * 1.5


@pytest.mark.parametrize(("precision", "recall"), [(0.9, 0.8), (0.2, 0.5), (0.5, 0.1)])
def test_precision_and_recall_of_signals_are_learnt(precision: float, recall: float) -> None:
    rng = np.random.default_rng(7)
    changes = ChangeRate(1.0)
    for _ in range(1500):
        elapsed = float(rng.exponential(0.7))
        n = int(rng.poisson(elapsed))
        true = int(rng.binomial(n, recall))
        false = int(rng.poisson(elapsed * recall * (1 / precision - 1)))
        changes.observe(elapsed, n > 0, true + false)
    assert changes.precision == pytest.approx(precision, abs=0.2)
    assert changes.recall == pytest.approx(recall, abs=0.3)
    assert changes.rate == pytest.approx(1.0, rel=0.35)


@pytest.mark.parametrize(
    "broken", [{}, {"looks": 1}, {"looks": "x"}, {"quiet_shape": math.nan}, {"time": -1.0}]
)
def test_a_broken_state_is_refused(broken: dict[str, float]) -> None:
    changes = ChangeRate(1.0)
    state = changes.state() | broken if len(broken) and "looks" not in broken else broken
    with pytest.raises((ValueError, KeyError)):
        changes.restore(state)
    assert changes.rate == pytest.approx(1.0)
