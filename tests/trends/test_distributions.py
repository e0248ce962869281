"""Tails by scipy.special are those of scipy.stats, which takes half a second to import."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from embedding.trends.distributions import (
    generalized_pareto_tail,
    log_binomial_tail,
    normal_from_tail,
    pearson3_tail,
    student_quantile,
)


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_normal_of_its_tail():
    p = np.concatenate([10.0 ** -np.arange(300.0), [0.0, 0.3, 1.0 - 1e-9]])
    np.testing.assert_array_equal(normal_from_tail(p), stats.norm.isf(p))


@pytest.mark.parametrize("freedom", [1, 2, 5, 30, 1000])
def test_quantiles_of_student(freedom):
    assert student_quantile(0.975, freedom) == stats.t.ppf(0.975, freedom)


def test_tails_of_pearson_s_third_type_on_both_sides_of_its_end(random):
    x, skew = random.normal(size=5000) * 6, np.clip(random.exponential(size=5000), 0.05, 10.0)
    np.testing.assert_array_equal(pearson3_tail(x, skew), stats.pearson3.sf(x, skew))


def test_tails_of_a_generalised_pareto_that_ends_and_that_does_not(random):
    x, shape = random.normal(size=5000) * 3 + 2, random.normal(size=5000)
    scale = np.abs(random.normal(size=5000))
    scale[:10], shape[10:20] = 0.0, 0.0
    with np.errstate(all="ignore"):
        expected = stats.genpareto.sf(x, shape, scale=scale)
    np.testing.assert_array_equal(generalized_pareto_tail(x, shape, scale), expected)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 1.0])
def test_log_tails_of_a_binomial(share, random):
    trials = random.integers(0, 60, 5000)
    more = random.integers(-1, np.maximum(trials, 1))
    expected = stats.binom.logsf(more, trials, share)
    np.testing.assert_allclose(
        log_binomial_tail(more, trials, share), expected, rtol=1e-9, atol=1e-12
    )
