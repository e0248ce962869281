"""The noise floor, p and q values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.trends import noise
from embedding.trends.significance import benjamini_hochberg, robust_scale, wilson


def noisy(rng, n=4000):
    """Shifts whose level and width fall with frequency, as real ones do."""
    counts = np.minimum(20 * np.exp(rng.exponential(1.2, n)), 50_000).astype(np.int64)
    level = 0.6 - 0.04 * np.log(counts)
    values = level + rng.standard_normal(n) * (0.01 + 0.5 / np.sqrt(counts))
    return values, noise.exposure(counts, counts)


def test_z_does_not_depend_on_frequency():
    values, exposure = noisy(np.random.default_rng(0))
    z = noise.judge(values, exposure, 400).z
    rare, frequent = z[exposure < np.median(exposure)], z[exposure >= np.median(exposure)]
    assert abs(np.median(rare) - np.median(frequent)) < 0.1
    assert 0.8 < rare.std() / frequent.std() < 1.25


def test_without_a_change_the_share_of_false_finds_holds():
    finds = [
        int((noise.judge(*noisy(np.random.default_rng(seed)), 400).q <= 0.05).any())
        for seed in range(40)
    ]
    assert sum(finds) <= 6  # 5 % of 40 is 2; 6 or more would happen once in 30 times


def test_planted_changes_are_found_among_rare_and_frequent_words():
    values, exposure = noisy(np.random.default_rng(1))
    order = np.argsort(exposure)
    chosen = order[[50, 1500, 2500, 3950]]
    floor = noise.noise_floor(values, exposure, 400)
    values[chosen] += 8 * floor.at(exposure[chosen])[1]
    ranked = noise.judge(values, exposure, 400)
    assert (ranked.q[chosen] <= 0.05).all()
    assert (ranked.q <= 0.05).sum() <= 6


def test_a_floor_of_nothing_says_that_nothing_stands_out():
    floor = noise.noise_floor(np.zeros(0), np.zeros(0), 400)
    assert list(floor.z(np.asarray([0.9]), np.asarray([3.0]))) == [0.0]


def test_equal_shifts_do_not_divide_by_zero():
    ranked = noise.judge(np.full(50, 0.3), np.ones(50), 10)
    assert (np.isfinite(ranked.z).all() and (ranked.q == 1.0).all()) or (ranked.q > 0.4).all()


def test_benjamini_hochberg_by_hand():
    q = benjamini_hochberg(np.asarray([0.04, 0.01, 0.03, 0.5]))
    np.testing.assert_allclose(q, [0.16 / 3, 0.04, 0.16 / 3, 0.5])


@given(st.lists(st.floats(0, 1), max_size=60))
def test_q_is_at_least_p_at_most_1_and_keeps_the_order(p):
    values = np.asarray(p)
    q = benjamini_hochberg(values)
    assert (q >= values - 1e-12).all()
    assert (q <= 1).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(q[order]) >= -1e-12).all()


@given(st.integers(0, 80), st.integers(1, 80))
def test_the_wilson_interval_holds_the_share(part, n):
    share = min(part, n) / n
    low, high = wilson(share, n)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1


def test_wilson_by_the_book_and_without_trials():
    low, high = wilson(0.5, 10)
    assert (low, high) == pytest.approx((0.2366, 0.7634), abs=1e-3)
    assert wilson(0.0, 0) == (0.0, 1.0)


def test_the_robust_scale_ignores_outliers():
    values = np.concatenate([np.random.default_rng(0).standard_normal(1000), np.full(100, 50.0)])
    centre, scale = robust_scale(values)
    assert abs(centre) < 0.3
    assert 0.8 < scale < 1.4
