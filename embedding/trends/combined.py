"""Two estimators as one ranking: what this window's texts say, and what the model made of them."""

from __future__ import annotations

import numpy as np

from embedding.records import IntArray
from embedding.trends.config import TrendsConfig
from embedding.trends.noise import noise_floor
from embedding.trends.pair import Pair
from embedding.trends.shift import SCALES, shift
from embedding.trends.significance import Figures

MODEL = 0.5
"""Weight of procrustes: its z holds the noise of training beside that of the texts."""


def combined(
    usage: Figures, pair: Pair, rows: IntArray, exposure: Figures, config: TrendsConfig
) -> Figures:
    """float64 [n]: (z of usage + MODEL · z of procrustes) / √(1 + MODEL²).

    usage  float64 [n], by permuting documents (`permutation.py`)

    Usage sees the texts alone and finds slight changes; procrustes sees where the model went, which
    is less disturbed by a few odd texts. Their errors have little in common, so the weighted sum
    finds more than either (Stouffer's method; Lipták 1958). A word too rare for usage is judged by
    procrustes.
    """
    stable = SCALES["procrustes"].forward(shift(pair, rows, config, "procrustes").astype(float))
    model = noise_floor(stable, exposure, config.band_words).z(stable, exposure)
    scores: Figures = (usage + MODEL * model) / np.hypot(1.0, MODEL)
    return scores
