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
SEEN = 0.5
"""z of usage up to which procrustes has no weight where both times lie in one space."""
SURE = 4.0
"""z of usage from which on procrustes has its whole weight where both times lie in one space."""


def combined(
    usage: Figures, pair: Pair, rows: IntArray, exposure: Figures, config: TrendsConfig
) -> Figures:
    """float64 [n]: (z of usage + w · z of procrustes) / √(1 + w²).

    usage  float64 [n], by permuting documents (`permutation.py`); 0 for a word too rare for it

    Usage sees the texts alone and finds slight changes; procrustes sees where the model went, which
    is less disturbed by a few odd texts. Their errors have little in common, so the weighted sum
    finds more than either (Stouffer's method; Lipták 1958), with w = MODEL.

    Texts that were read again lie in one space. Then usage is by far the surer one, and where it
    sees nothing procrustes adds the noise of one training, by which two trainings on the same text
    would name other words. So its weight grows with what usage sees, from 0 at z = SEEN to MODEL at
    SURE, and a word too rare for usage is judged by procrustes alone.
    """
    stable = SCALES["procrustes"].forward(shift(pair, rows, config, "procrustes").astype(float))
    model = noise_floor(stable, exposure, config.band_words).z(stable, exposure)
    if not pair.reread:
        return _sum(usage, np.full(len(usage), MODEL), model)
    grown = np.clip((usage - SEEN) / (SURE - SEEN), 0.0, 1.0)
    return _sum(usage, MODEL * np.where(usage == 0.0, 1.0, grown), model)


def _sum(usage: Figures, weight: Figures, model: Figures) -> Figures:
    scores: Figures = (usage + weight * model) / np.hypot(1.0, weight)
    return scores
