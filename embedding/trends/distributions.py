"""Tails and quantiles of distributions, by `scipy.special`.

`scipy.stats` has the same functions, but importing it takes half a second of the processor, and the
page, Airflow's plugin and each command on trends would pay it when they start.
"""

from __future__ import annotations

import numpy as np
from scipy.special import bdtrc, gammaincc, inv_boxcox, ndtri, stdtrit

from embedding.kernel.records import IntArray
from embedding.trends.significance import TestArray


def normal_from_tail(p: TestArray) -> TestArray:
    """The z of which P(Z ≥ z) = p, Z standard normal."""
    z: TestArray = -ndtri(p)
    return z


def student_quantile(p: float, freedom: int) -> float:
    """The t of which P(T ≤ t) = p, of Student's distribution with `freedom` degrees of freedom."""
    return float(stdtrit(freedom, p))


def pearson3_tail(x: TestArray, skew: TestArray) -> TestArray:
    """P(X ≥ x) of Pearson's third type with mean 0, standard deviation 1 and `skew` above 0.

    It is a gamma distribution of shape α = 4 / skew², moved and stretched.
    """
    rate = 2.0 / skew
    shape = rate**2
    tail: TestArray = gammaincc(shape, np.maximum(rate * (x + shape / rate), 0.0))
    return tail


def generalized_pareto_tail(x: TestArray, shape: TestArray, scale: TestArray) -> TestArray:
    """P(X ≥ x) of a generalised Pareto distribution from 0: (1 + ξ x / σ)^(-1/ξ); NaN if σ ≤ 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        beyond = np.maximum(x, 0.0) / np.where(scale > 0, scale, np.nan)
        tail: TestArray = inv_boxcox(-beyond, -shape)
    return np.where(shape * beyond <= -1.0, 0.0, tail)


def log_binomial_tail(more_than: IntArray, trials: IntArray, share: float) -> TestArray:
    """log P(X > more_than), X of `trials` that each succeed with probability `share`."""
    with np.errstate(divide="ignore"):
        logs: TestArray = np.log(bdtrc(more_than, trials, share))
    return logs
