"""How much of its delta a node pushes while others train on the same rows.

A row that was updated k times with step η is drawn towards a point of rest; as for a quadratic
loss of curvature c, the part 1 - exp(-h) of the way is gone, h = η·c·k. Were n nodes to do their
blocks one after the other, they would go 1 - exp(-n·h) of the way in all. They did them at the
same time from the same rows, so each pushes the share

    (1 - exp(-n·h)) / (n · (1 - exp(-h)))

of its delta: 1 for rows that are touched rarely (deltas add up, as in Downpour), 1/n for those
that came to rest within a block (deltas are averaged, as in SparkNet). Adding all of them up
diverges for frequent words; averaging all of them learns rare words n times too slowly.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedding.models.base import BlockLoss, LocalBlock
from embedding.models.config import Model, ModelConfig
from embedding.records import FloatArray

Steps = npt.NDArray[np.float64]


def share(steps: Steps, nodes: int) -> FloatArray:
    """float32 [n]: the share of each row's delta, given h of each row (float64 [n])."""
    if nodes <= 1:
        return np.ones(len(steps), dtype=np.float32)
    h = np.maximum(steps, 1e-9)
    found: FloatArray = (np.expm1(-nodes * h) / (nodes * np.expm1(-h))).astype(np.float32)
    return found


def updates(block: LocalBlock, loss: BlockLoss, config: ModelConfig) -> tuple[Steps, Steps]:
    """How often each local row of `in` (float64 [U]) and of `out` ([U + E]) was updated, expected.

    A word is input and target in proportion to its kept occurrences; each pair has `negative`
    noise rows out of the pool. GloVe has no noise rows: each cell moves its row and its column.
    """
    words = len(block.ids) if block.ids is not None else 0
    kept = np.bincount(block.tokens[block.tokens >= 0], minlength=words).astype(np.float64)
    kept[: len(block.keep)] *= block.keep
    total = max(float(kept.sum()), 1.0)
    pairs = kept * (loss.pairs / total)
    if config.model is Model.GLOVE:
        return pairs[: len(block.keep)], pairs
    if config.model is Model.CBOW:
        inputs = pairs * (config.window + 1) * (1 + config.negative)
    else:
        inputs = pairs * (1 + config.negative)
    noise = np.bincount(block.pool, minlength=words).astype(np.float64)
    outputs = pairs + noise * (loss.pairs * config.negative / max(len(block.pool), 1))
    return inputs[: len(block.keep)], outputs
