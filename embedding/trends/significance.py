"""How sure: tail probabilities, false-discovery rates, intervals."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from embedding.trends.distributions import normal_sf

TestArray = npt.NDArray[np.float64]


def two_sided(z: TestArray) -> TestArray:
    """P(|Z| ≥ |z|) of a standard normal."""
    return 2.0 * normal_sf(np.abs(z))


def benjamini_hochberg(p: TestArray, tests: int = 0) -> TestArray:
    """q values of p values: the smallest false-discovery rate at which each is rejected.

    Benjamini and Hochberg (1995): q_(i) = min_{j ≥ i} p_(j) n / j.

    tests  n, where there were more than are here: the others are taken to have p = 1
    """
    n = len(p)
    if n == 0:
        return np.zeros(0)
    order = np.argsort(p, kind="stable")
    raised = p[order] * max(n, tests) / np.arange(1, n + 1)
    lowest = np.minimum.accumulate(raised[::-1])[::-1]
    q = np.empty(n)
    q[order] = np.minimum(lowest, 1.0)
    return q


def robust_scale(values: TestArray, floor: float = 0.0) -> tuple[float, float]:
    """(median, robust standard deviation), the latter at least `floor`.

    The larger of 1.4826 × the median absolute deviation and the standard deviation of the middle
    80 % over that of a normal (0.6616): the first is too small where figures are coarse steps.
    """
    if len(values) == 0:
        return 0.0, floor
    centre = float(np.median(values))
    deviation = 1.4826 * float(np.median(np.abs(values - centre)))
    if len(values) < 20:
        return centre, max(deviation, floor)
    low, high = np.quantile(values, [0.1, 0.9])
    middle = values[(values >= low) & (values <= high)]
    return centre, max(deviation, float(middle.std()) / 0.6616, floor)


def wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson (1927) interval of a share seen in n trials; (0, 1) when there were none."""
    if n <= 0:
        return 0.0, 1.0
    square = z * z
    centre = (share + square / (2 * n)) / (1 + square / n)
    half = z * math.sqrt(share * (1 - share) / n + square / (4 * n * n)) / (1 + square / n)
    return max(centre - half, 0.0), min(centre + half, 1.0)
