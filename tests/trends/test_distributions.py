"""Each tail is that of SciPy, over all arguments that tests here can have."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage, special, stats
from scipy.cluster.hierarchy import fcluster, linkage

from embedding.trends import significance as own
from embedding.trends.arrivals import running_median
from embedding.trends.stories import LIKENESS, groups


def close(found: np.ndarray, right: np.ndarray, relative: float = 1e-10) -> None:
    np.testing.assert_allclose(found, right, rtol=relative, atol=1e-290)


def test_the_normal() -> None:
    z = np.concatenate([np.linspace(-12, 37, 2_001), [-np.inf, np.inf, 0.0]])
    close(own.normal_sf(z), stats.norm.sf(z))
    p = np.concatenate([np.logspace(-300, 0, 2_001), 1 - np.logspace(-15, -1, 50), [0.0, 1.0]])
    close(own.normal_isf(p), stats.norm.isf(p))
    assert own.normal_sf(np.zeros((2, 3))).shape == (2, 3)
    assert float(own.normal_sf(0.0)) == 0.5


def test_the_third_of_pearson() -> None:
    skew = np.repeat(np.geomspace(0.05, 10.0, 120), 400)
    z = np.tile(np.concatenate([np.linspace(-8, 8, 300), np.geomspace(8, 60, 100)]), 120)
    close(own.pearson3_sf(z, skew), stats.pearson3.sf(z, skew), 1e-9)


def test_the_gamma() -> None:
    shape = np.repeat(np.geomspace(1e-3, 1e4, 200), 300)
    x = shape * np.tile(np.geomspace(1e-6, 30, 300), 200)
    close(own.gamma_sf(shape, x), special.gammaincc(shape, x), 1e-8)
    assert own.gamma_sf(np.array([2.0, 2.0]), np.array([0.0, -1.0])).tolist() == [1.0, 1.0]
    assert len(own.gamma_sf(np.empty(0), np.empty(0))) == 0


def test_the_generalised_pareto() -> None:
    shape = np.repeat(np.concatenate([np.linspace(-3, 0.5, 71), [0.0, 1e-7, -1e-7]]), 200)
    x = np.tile(np.linspace(-1, 40, 200), 74)
    scale = np.full(len(x), 0.7)
    close(own.pareto_sf(x, shape, scale), stats.genpareto.sf(x, shape, scale=scale), 1e-8)
    assert own.pareto_sf(np.ones(2), np.zeros(2), np.array([0.0, -1.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("share", [1e-4, 0.03, 0.5, 0.97])
def test_the_binomial(share: float) -> None:
    n = np.repeat(np.array([1, 2, 17, 400, 9_000]), 9)
    least = (n * np.tile(np.linspace(0, 1, 9), 5)).astype(np.int64)
    right = stats.binom.logsf(least - 1, n, share)
    known = np.isfinite(right) & (right > -600)
    found = own.binomial_log_sf(least, n, share)
    np.testing.assert_allclose(found[known], right[known], rtol=1e-9, atol=1e-9)
    assert (found[~known] < -500).all()
    assert own.binomial_log_sf(np.array([3]), np.array([2]), share)[0] == -np.inf
    assert own.binomial_log_sf(np.array([1, 0]), np.array([2, 2]), 0.0).tolist() == [-np.inf, 0.0]
    assert own.binomial_log_sf(np.array([1, 0]), np.array([2, 2]), 1.0).tolist() == [0.0, 0.0]
    assert len(own.binomial_log_sf(np.empty(0, np.int64), np.empty(0, np.int64), share)) == 0


@pytest.mark.parametrize("freedom", [*range(1, 20), 63, 64, 500])
def test_students_interval(freedom: int) -> None:
    for share in (0.5, 0.95, 0.999):
        right = stats.t.ppf(0.5 + share / 2, freedom)
        assert own.student_half_width(share, freedom) == pytest.approx(right, rel=1e-9)


def test_the_running_median() -> None:
    values = np.random.default_rng(3).normal(size=400).round(1)
    for width in (1, 5, 151):
        right = ndimage.median_filter(values, size=width)[width // 2 : 400 - width // 2]
        assert running_median(values, width).tolist() == right.tolist()


@pytest.mark.parametrize("n", [0, 1, 2, 7, 60])
def test_groups_are_those_of_average_linkage(n: int) -> None:
    random = np.random.default_rng(n)
    for _ in range(20):
        vectors = random.normal(size=(n, 4))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines = (vectors @ vectors.T).astype(np.float32)
        found = groups(cosines)
        assert sorted(at for group in found for at in group) == [*range(n)]
        if n > 1:
            apart = 1.0 - cosines[np.triu_indices(n, 1)].astype(float)
            labels = fcluster(linkage(apart, "average"), 1.0 - LIKENESS, "distance")
            right = [np.flatnonzero(labels == one).tolist() for one in np.unique(labels)]
            assert found == sorted(right)
