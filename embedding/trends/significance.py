"""How sure: tail probabilities, false-discovery rates, intervals.

The tails of distributions are few and their arguments are bounded, so that reading and judging
snapshots does without SciPy, which is a third of what the core would weigh. The tests compare each
with SciPy.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import IntArray

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


_NORMAL = NormalDist()
_EPSILON = 1e-15
_SMALLEST = 1e-300
_STEPS = 10_000
"""Terms of a series at most; a thousand are enough for a shape of 10,000."""


def normal_sf(z: npt.ArrayLike) -> TestArray:
    """P(Z ≥ z) of a standard normal, of any shape."""
    values = np.asarray(z, dtype=np.float64) / math.sqrt(2.0)
    tails = np.array([math.erfc(x) for x in values.ravel().tolist()], dtype=np.float64)
    return 0.5 * tails.reshape(values.shape)


def normal_isf(p: TestArray) -> TestArray:
    """z float64 [n] with P(Z ≥ z) = p (Wichura 1988, algorithm AS 241)."""
    inverse = _NORMAL.inv_cdf
    return np.array([_end(x) if x in (0.0, 1.0) else -inverse(x) for x in p.tolist()])


def _end(p: float) -> float:
    return -math.inf if p else math.inf


def pearson3_sf(z: TestArray, skew: TestArray) -> TestArray:
    """P(X ≥ z) float64 [n] of mean 0, deviation 1 and a positive skewness (Pearson's type III).

    With a = 4 / skew², X is (G - a) / √a for G of a gamma distribution of shape a.
    """
    shape = 4.0 / skew**2
    return gamma_sf(shape, shape + z * np.sqrt(shape))


def gamma_sf(shape: TestArray, x: TestArray) -> TestArray:
    """Q(a, x) float64 [n], the upper regularised incomplete gamma function; 1 where x ≤ 0.

    Below a + 1 by the series of its complement (DLMF 8.11.4), above by the continued fraction
    (DLMF 8.9.2) in the manner of Lentz (1976).
    """
    tails = np.ones(len(x))
    low = (x > 0.0) & (x < shape + 1.0)
    high = x >= shape + 1.0
    tails[low] = 1.0 - _scale(shape[low], x[low]) * _series(shape[low], x[low])
    tails[high] = _scale(shape[high], x[high]) * _fraction(shape[high], x[high])
    return tails


def _scale(shape: TestArray, x: TestArray) -> TestArray:
    """xᵃ e⁻ˣ / Γ(a)."""
    logs = np.array([math.lgamma(value) for value in shape.tolist()], dtype=np.float64)
    scale: TestArray = np.exp(shape * np.log(x) - x - logs)
    return scale


def _series(shape: TestArray, x: TestArray) -> TestArray:
    """Σ xᵏ / (a (a + 1) … (a + k))."""
    sums = np.zeros(len(x))
    left, total = np.arange(len(x)), 1.0 / shape
    term = total
    for k in range(1, _STEPS):
        term = term * x / (shape + k)
        total = total + term
        going = term > _EPSILON * total
        if not going.all():
            sums[left[~going]] = total[~going]
            left, shape, x = left[going], shape[going], x[going]
            term, total = term[going], total[going]
        if not len(left):
            break
    sums[left] = total
    return sums


def _fraction(shape: TestArray, x: TestArray) -> TestArray:
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - …)))."""
    fractions = np.zeros(len(x))
    left, below = np.arange(len(x)), x + 1.0 - shape
    over, under = np.full(len(x), 1.0 / _SMALLEST), 1.0 / below
    total = under
    for k in range(1, _STEPS):
        factor, below = k * (shape - k), below + 2.0
        under = 1.0 / _off_zero(factor * under + below)
        over = _off_zero(below + factor / over)
        total = total * over * under
        going = np.abs(over * under - 1.0) > _EPSILON
        if not going.all():
            fractions[left[~going]] = total[~going]
            left, shape, below = left[going], shape[going], below[going]
            over, under, total = over[going], under[going], total[going]
        if not len(left):
            break
    fractions[left] = total
    return fractions


def _off_zero(values: TestArray) -> TestArray:
    return np.where(np.abs(values) < _SMALLEST, _SMALLEST, values)


def pareto_sf(x: TestArray, shape: TestArray, scale: TestArray) -> TestArray:
    """P(X ≥ x) float64 [n] of a generalised Pareto distribution; 0 where its scale is not positive.

    (1 + ξ x / σ)^(-1/ξ), and e^(-x/σ) at ξ = 0.
    """
    tails = np.zeros(len(x))
    known = scale > 0.0
    far, bent = np.maximum(x[known], 0.0) / scale[known], shape[known]
    flat = np.abs(bent) < 1e-12
    with np.errstate(divide="ignore"):
        logs = np.log1p(np.maximum(bent * far, -1.0)) / np.where(flat, 1.0, bent)
    tails[known] = np.exp(-np.where(flat, far, logs))
    return tails


def binomial_log_sf(least: IntArray, n: IntArray, share: float) -> TestArray:
    """log P(X ≥ least) float64 [k] of n tries each, which succeed with the chance `share`.

    The terms of the sum, n - least + 1 each, are added up.
    """
    if not 0.0 < share < 1.0:
        return np.where((least > 0) & (share <= 0.0), -np.inf, 0.0)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(n.max(initial=0)) + 1)))])
    tails = np.zeros(len(n))
    for at, (first, all_) in enumerate(zip(least.tolist(), n.tolist(), strict=True)):
        if first > 0:
            k = np.arange(first, all_ + 1)
            terms = logs[all_] - logs[k] - logs[all_ - k] + k * math.log(share)
            terms += (all_ - k) * math.log1p(-share)
            tails[at] = min(float(np.logaddexp.reduce(terms)), 0.0) if len(k) else -math.inf
    return tails


@lru_cache(maxsize=256)
def student_half_width(share: float, freedom: int) -> float:
    """t ≥ 0 with P(|T| ≤ t) = share, of `freedom` ≥ 1 degrees (Abramowitz and Stegun 26.7.3, 4)."""
    low, high = 0.0, math.pi / 2.0
    for _ in range(100):
        angle = 0.5 * (low + high)
        low, high = (angle, high) if _student_share(angle, freedom) < share else (low, angle)
    return math.sqrt(freedom) * math.tan(0.5 * (low + high))


def _student_share(angle: float, freedom: int) -> float:
    """P(|T| ≤ t) at the angle whose tangent is t / √freedom."""
    odd, square = freedom % 2, math.cos(angle) ** 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= square * k / (k + 1)
    inner = total * math.sin(angle)
    return (angle + inner) * 2.0 / math.pi if odd else inner
