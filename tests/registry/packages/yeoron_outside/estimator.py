"""An estimator: half the square of the distance after alignment."""

from __future__ import annotations

from embedding.kernel.records import FloatArray, IntArray
from embedding.trends.config import TrendsConfig
from embedding.trends.estimators import ESTIMATORS, EstimatorTraits
from embedding.trends.pair import SnapshotPair
from embedding.trends.shift import LINEAR, procrustes


@ESTIMATORS.register("outside-squared", EstimatorTraits(scale=LINEAR, needs_equal_dimensions=True))
def squared(pair: SnapshotPair, rows: IntArray, config: TrendsConfig) -> FloatArray:
    return procrustes(pair, rows, config) ** 2 / 2
