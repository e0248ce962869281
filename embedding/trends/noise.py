"""The noise floor: how far words of like frequency seem to move although nothing happened.

Rare words jump more than frequent ones, so a shift counts only against the words of its own
frequency band (the false-positive problem shown by Dubossarsky et al. 2017). All shifts here are
on their estimator's stabilised scale (`shift.Scale`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import IntArray
from embedding.trends.significance import TestArray, benjamini_hochberg, normal_sf, robust_scale

BAND_WORDS = 400
"""Words of a band of the noise floor, at most."""
SMALLEST_SCALE = 1e-3
WIDEST = float(np.log(1.5))
_COLUMNS = ("exposure", "median", "scale")


@dataclass(frozen=True)
class NoiseFloor:
    """Typical shift by frequency: one entry for each band, by increasing frequency.

    exposure  float64 [b]: log of the evidence (see `exposure`) in the middle of the band
    median    float64 [b]: median shift, stabilised
    scale     float64 [b]: robust standard deviation (see `robust_scale`)
    """

    exposure: TestArray
    median: TestArray
    scale: TestArray

    def to_dict(self) -> dict[str, tuple[float, ...]]:
        """The bands by column, as a report keeps them."""
        return {name: tuple(float(v) for v in getattr(self, name)) for name in _COLUMNS}

    def at(self, exposure: TestArray) -> tuple[TestArray, TestArray]:
        """(median, scale) at each exposure, interpolated between the bands' middles."""
        if len(self.exposure) == 0:
            return np.zeros(len(exposure)), np.full(len(exposure), np.inf)
        return (
            np.interp(exposure, self.exposure, self.median),
            np.interp(exposure, self.exposure, self.scale),
        )

    def z(self, shift: TestArray, exposure: TestArray) -> TestArray:
        """Robust z of each shift against the words of like frequency."""
        median, scale = self.at(exposure)
        scores: TestArray = (shift - median) / scale
        return scores


def exposure(before: IntArray, after: IntArray) -> TestArray:
    """log of 1 / (1/before + 1/after): the sampling variance of a shift falls with it."""
    a, b = np.maximum(before, 1).astype(float), np.maximum(after, 1).astype(float)
    logs: TestArray = np.log(a * b / (a + b))
    return logs


def noise_floor(shift: TestArray, exposure: TestArray, band_words: int) -> NoiseFloor:
    """Estimate the floor in bands of at most about `band_words` words each."""
    order = np.argsort(exposure, kind="stable")
    bands = [order[part] for part in bands_of(exposure[order], band_words)]
    scales = [robust_scale(shift[band], SMALLEST_SCALE) for band in bands]
    return NoiseFloor(
        exposure=np.asarray([float(np.median(exposure[band])) for band in bands]),
        median=np.asarray([median for median, _ in scales]),
        scale=np.asarray([scale for _, scale in scales]),
    )


def bands_of(exposure: TestArray, band_words: int) -> list[slice]:
    """Cut sorted exposures into bands: full at `band_words`, or wider than a factor of 1.5.

    A wide band would mix words that fluctuate much with words that hardly do, so a band of at
    least an eighth of `band_words` ends where it gets too wide. A short rest joins the last band.
    """
    least = max(band_words // 8, 10)
    cuts = [0]
    for rank in range(len(exposure)):
        words = rank - cuts[-1]
        wide = exposure[rank] - exposure[cuts[-1]] > WIDEST
        if words >= band_words or (words >= least and wide):
            cuts.append(rank)
    if len(cuts) > 1 and len(exposure) - cuts[-1] < least:
        cuts.pop()
    ends = [*cuts[1:], len(exposure)]
    return [slice(start, end) for start, end in zip(cuts, ends, strict=True) if end > start]


def tail_inflation(z: TestArray) -> float:
    """How much wider than a normal one the tail of z is, at least 1.

    Taken from the lower tail, which holds no moved words: its 1 % quantile over that of a normal
    (an empirical null, Efron 2004). 1 for fewer than 200 words, where it cannot be seen.
    """
    if len(z) < 200:
        return 1.0
    return max(float(np.quantile(z, 0.01)) / -2.3263, 1.0)


@dataclass(frozen=True)
class RankedShifts:
    """z, p (one-sided) and q float64 [n] of shifts, and the floor they were judged by.

    z is the robust z over `tail_inflation`.
    """

    z: TestArray
    p: TestArray
    q: TestArray
    floor: NoiseFloor

    def take(self, chosen: npt.NDArray[np.bool_]) -> RankedShifts:
        """Some of them; q over these. chosen: bool [n]."""
        p = self.p[chosen]
        return RankedShifts(self.z[chosen], p, benjamini_hochberg(p), self.floor)


def judge(shift: TestArray, exposure: TestArray, band_words: int = BAND_WORDS) -> RankedShifts:
    """z, p and q of each shift against its own frequency band."""
    floor = noise_floor(shift, exposure, band_words)
    z = floor.z(shift, exposure) if len(shift) else np.zeros(0)
    z = z / tail_inflation(z)
    p = normal_sf(z)
    return RankedShifts(z=z, p=p, q=benjamini_hochberg(p), floor=floor)
