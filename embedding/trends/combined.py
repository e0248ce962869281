"""Two estimators as one ranking: what this window's texts say, and what the model made of them."""

from __future__ import annotations

import numpy as np

from embedding.records import IntArray
from embedding.trends.config import TrendsConfig
from embedding.trends.noise import noise_floor
from embedding.trends.pair import Pair
from embedding.trends.shift import SCALES, shift
from embedding.trends.significance import Figures

PARTS = ("usage", "procrustes")


def combined(pair: Pair, rows: IntArray, exposure: Figures, config: TrendsConfig) -> Figures:
    """float64 [n]: (z of usage + z of procrustes) / √2, each against words of like frequency.

    Usage sees the texts of two windows alone and finds slight changes; procrustes sees where the
    model went, which is less disturbed by a few odd texts. Their errors have little in common, so
    the sum finds more than either (Stouffer's method). A word too rare for usage is judged by
    procrustes. Only for pairs that `usage_compares`.
    """
    total = np.zeros(len(rows))
    for name in PARTS:
        stable = SCALES[name].forward(shift(pair, rows, config, name).astype(np.float64))
        known = np.isfinite(stable)
        if known.any():
            floor = noise_floor(stable[known], exposure[known], config.band_words)
            total[known] += floor.z(stable[known], exposure[known])
    scores: Figures = total / np.sqrt(len(PARTS))
    return scores
