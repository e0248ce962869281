"""Estimators of shift: how far a word's meaning moved between two snapshots.

Each is a pure function (pair, rows, config) → float32 [len(rows)], higher = moved more, registered
with its traits in `ESTIMATORS` (`estimators.py`). All are blind to a rotation of either space.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.nearness import sureness
from embedding.trends.config import TrendsConfig
from embedding.trends.estimators import ESTIMATORS, EstimatorTraits, Scale
from embedding.trends.nearest import CANDIDATE_WORDS, nearest, shared
from embedding.trends.pair import SnapshotPair
from embedding.trends.permutation import Permuted, between_times

ANCHOR_WORDS = 5_000
"""The most frequent common words from which procrustes takes stable anchors."""
ANCHOR_ROUNDS = 3
"""How often the rotation is fitted again to the anchors that moved least."""
ANCHOR_SHARE = 0.8
"""Share of the anchor words that is kept in the last round."""


# Shares of k: the arcsine root of a binomial share. Cosine distances are half a squared length,
# close to a scaled chi-square, whose cube root is close to normal (Wilson and Hilferty 1931).
ARCSINE_SCALE = Scale(
    "share",
    lambda x: np.arcsin(np.sqrt(np.clip(x, 0.0, 1.0))),
    lambda x: np.sin(np.clip(x, 0.0, np.pi / 2)) ** 2,
)
DISTANCE = Scale("distance", np.cbrt, lambda x: np.clip(x, 0.0, None) ** 3)
LINEAR = Scale("linear", lambda x: x, lambda x: x)


def judge_usage(pair: SnapshotPair, rows: IntArray) -> Permuted:
    """By permuting the documents of both windows (`permutation.py`)."""
    return between_times(*pair.used(rows))


def shift(
    pair: SnapshotPair, rows: IntArray, config: TrendsConfig, name: str | None = None
) -> FloatArray:
    """float32 [len(rows)] by the estimator `name` (default: that of the settings).

    Raises InputError when there
    are too few common words to compare anything.
    """
    if len(rows) == 0:
        return np.zeros(0, dtype=np.float32)
    if len(pair) < 3:
        raise InputError(
            f"the two snapshots share {len(pair)} words; a comparison needs at least 3."
        )
    return ESTIMATORS.get(name or config.estimator)(pair, rows, config)


@ESTIMATORS.register(
    "usage",
    EstimatorTraits(
        scale=DISTANCE, needs_usage=True, judge=judge_usage, without_usage="neighbours"
    ),
)
def usage(pair: SnapshotPair, rows: IntArray, config: TrendsConfig) -> FloatArray:
    """How differently a word's documents use it in both windows (`prototypes.py`).

    0 for a word that was too rare to compare. Raises InputError when the snapshots have no sums.
    """
    del config
    if pair.used_before is None or pair.used_after is None or not pair.usage_compares:
        raise InputError(
            "usage needs a snapshot that says how words were used in its window and before "
            "(`server.usage`); the estimator neighbours compares any two."
        )
    return judge_usage(pair, rows).size.astype(np.float32)


@ESTIMATORS.register("neighbours", EstimatorTraits(scale=ARCSINE_SCALE))
def neighbour_overlap(pair: SnapshotPair, rows: IntArray, config: TrendsConfig) -> FloatArray:
    """1 − |N_before ∩ N_after| / k over the k nearest frequent words (Gonen et al. 2020, eq. 1).

    Nearest by nearness, not by the bare cosine (snapshots/nearness.py).
    """
    before, after = neighbourhoods(pair, rows, config)
    return overlap_shift(before, after, len(pair))


@ESTIMATORS.register("procrustes", EstimatorTraits(scale=DISTANCE, needs_equal_dimensions=True))
def procrustes(pair: SnapshotPair, rows: IntArray, config: TrendsConfig) -> FloatArray:
    """Cosine distance after orthogonal alignment (Hamilton et al. 2016, eq. 4) on stable anchors.

    The rotation R = argmin ‖B R − A‖ over anchors is fitted, the anchors that moved most are
    dropped, and it is fitted again (ANCHOR_ROUNDS), so that changed words do not bend it.
    Raises InputError when the snapshots' dimensions differ.
    """
    del config
    if pair.before.shape[1] != pair.after.shape[1]:
        raise InputError(
            f"procrustes needs equal dimensions, got {pair.before.shape[1]} and "
            f"{pair.after.shape[1]}; the estimator neighbours compares any two."
        )
    candidates = pair.frequent(ANCHOR_WORDS)
    anchors = candidates
    for share in np.linspace(1.0, ANCHOR_SHARE, ANCHOR_ROUNDS + 1)[1:]:
        rotation = fit_rotation(pair.before[anchors], pair.after[anchors])
        moved = cosine_distance(pair.before[candidates] @ rotation, pair.after[candidates])
        keep = max(int(len(candidates) * share), min(len(candidates), 3))
        anchors = candidates[np.sort(np.argsort(moved, kind="stable")[:keep])]
    rotation = fit_rotation(pair.before[anchors], pair.after[anchors])
    return cosine_distance(pair.before[rows] @ rotation, pair.after[rows])


def neighbourhoods(
    pair: SnapshotPair, rows: IntArray, config: TrendsConfig
) -> tuple[IntArray, IntArray]:
    """int64 [q, k] twice: the nearest frequent words of each row before and after."""
    candidates = pair.frequent(CANDIDATE_WORDS)
    k = min(config.neighbours, max((len(candidates) - 1) // 2, 1))
    # One for both times: a word that is only read more often came nearer to nothing.
    sure = sureness(pair.familiarity)
    before, after = (nearest(side, sure, rows, candidates, k) for side in (pair.before, pair.after))
    return before[0], after[0]


def overlap_shift(before: IntArray, after: IntArray, n: int) -> FloatArray:
    """float32 [q]: 1 − |before ∩ after| / k for tables int64 [q, k] of row numbers below n."""
    k = max(before.shape[1], 1)
    moved: FloatArray = (1.0 - shared(before, after, n) / k).astype(np.float32)
    return moved


def fit_rotation(source: FloatArray, target: FloatArray) -> FloatArray:
    """Orthogonal R [d, d] that minimises ‖source R − target‖ (Schönemann 1966)."""
    u, _, v = np.linalg.svd(source.T.astype(np.float64) @ target.astype(np.float64))
    rotation: FloatArray = (u @ v).astype(np.float32)
    return rotation


def cosine_distance(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> FloatArray:
    """float32 [q]: 1 − cosine of the rows; 1 where a row is zero."""
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    product = np.einsum("qd,qd->q", a, b)
    cosines = np.divide(product, lengths, out=np.zeros(len(a), np.float32), where=lengths > 0)
    distance: FloatArray = np.clip(1.0 - cosines, 0.0, 2.0).astype(np.float32)
    return distance
