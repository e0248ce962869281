"""How much of its delta a node pushes while others train on the same rows.

A row that was updated k times with step η is drawn towards a point of rest; as for a quadratic
loss of curvature c, the part g = 1 - exp(-h) of the way is gone, h = η·c·k. Another node's block of
the same length would update it so often as is usual for its word: by H, the part G of the way. Were
n nodes to do their blocks one after the other, they would go 1 - exp(-h - (n-1)·H) of the way in
all. They did them at the same time from the same rows, so each pushes the share

    (1 - exp(-h - (n-1)·H)) / (g + (n-1)·G)

of its delta: 1 for rows that are touched rarely (deltas add up, as in Downpour), and for those that
this block alone speaks of; 1/n for those that came to rest within a block (deltas are averaged, as
in SparkNet). Adding all of them up diverges for frequent words; averaging all of them learns rare
words n times too slowly. Taking others to update a row as often as this block does (H = h) holds a
word back where a text speaks of it and others do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import FloatArray, IntArray, Table, TimeArray
from embedding.models.base import BlockLoss, LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.sampling import NoiseTable

Steps = npt.NDArray[np.float64]
"""float64 [n, 2]: h of each row here, and H, what is usual in another node's block."""
Updates = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Usual:
    """How frequent the words of a block's `out` rows are in everybody's text.

    words  float64 [U + E], part of all tokens
    noise  float64 [U + E], part of all noise words
    """

    words: TimeArray
    noise: TimeArray

    @classmethod
    def of(
        cls, counts: TimeArray, places: IntArray, exponent: float, noise: NoiseTable | None
    ) -> Usual | None:
        """From the running counts of all words, by which `noise` was built; None without any."""
        if noise is None:
            return None
        own = counts[places]
        return cls(own / max(float(counts.sum()), 1.0), own**exponent / noise.weight)


def share(steps: Steps, nodes: int) -> FloatArray:
    """float32 [n]: the share of each row's delta."""
    if nodes <= 1:
        return np.ones(len(steps), dtype=np.float32)
    h = np.maximum(steps, 1e-9)
    gone = -np.expm1(-h)
    together = -np.expm1(-h[:, 0] - (nodes - 1) * h[:, 1])
    shares: FloatArray = (together / (gone[:, 0] + (nodes - 1) * gone[:, 1])).astype(np.float32)
    return shares


def steps_of(
    block: LocalBlock, loss: BlockLoss, config: ModelConfig, scale: float, usual: Usual | None
) -> dict[Table, Steps]:
    """How much each local row was trained, by table.

    scale  η·c
    usual  None takes others to do as this block does
    """
    own = updates(block, loss, config)
    others = own if usual is None else _usual_updates(block, loss, config, usual)
    both = [np.stack(pair, axis=1) * scale for pair in zip(own, others, strict=True)]
    grams = scale * gram_updates(block, own[0])
    # Words that this block lacks have n-grams, too: of these nothing better is known.
    return {Table.IN: both[0], Table.OUT: both[1], Table.SUB: np.stack([grams, grams], axis=1)}


def updates(block: LocalBlock, loss: BlockLoss, config: ModelConfig) -> tuple[Updates, Updates]:
    """How often each local row of `in` (float64 [U]) and of `out` ([U + E]) was updated, expected.

    A word is input and target in proportion to its kept occurrences; each pair has `negative`
    noise rows out of the pool. GloVe has no noise rows: each cell moves its row and its column.
    """
    occurrences = _kept(block)
    noise = np.bincount(block.pool, minlength=len(occurrences)).astype(np.float64)
    return _moves(occurrences, noise, float(occurrences.sum()), block, loss, config)


def _usual_updates(
    block: LocalBlock, loss: BlockLoss, config: ModelConfig, usual: Usual
) -> tuple[Updates, Updates]:
    """The same of a block as long as this one, of everybody's text."""
    words = usual.words * int((block.tokens >= 0).sum())
    words[: len(block.keep)] *= block.keep
    total = float(_kept(block).sum())
    return _moves(words, usual.noise * len(block.pool), total, block, loss, config)


def _kept(block: LocalBlock) -> Updates:
    """Occurrences of each local row of `out` that subsampling leaves, expected."""
    words = len(block.ids) if block.ids is not None else 0
    occurrences = np.bincount(block.tokens[block.tokens >= 0], minlength=words).astype(np.float64)
    occurrences[: len(block.keep)] *= block.keep
    return occurrences


def _moves(
    occurrences: Updates,
    noise: Updates,
    total: float,
    block: LocalBlock,
    loss: BlockLoss,
    config: ModelConfig,
) -> tuple[Updates, Updates]:
    """Updates of rows that occur so often among `total` words, and as noise in the pool."""
    pairs, words = occurrences * (loss.pairs / max(total, 1.0)), len(block.keep)
    if not config.traits.draws_noise:
        return pairs[:words], pairs
    if config.traits.bag:
        inputs = pairs * (config.window + 1) * (1 + config.negative)
    else:
        inputs = pairs * (1 + config.negative)
    outputs = pairs + noise * (loss.pairs * config.negative / max(len(block.pool), 1))
    return inputs[:words], outputs


def gram_updates(block: LocalBlock, words: Updates) -> Updates:
    """How often each n-gram row (float64 [G]) was updated, given the updates of each word [U]."""
    grams, offsets = block.subwords, block.subword_offsets
    if grams is None or offsets is None or block.subword_ids is None:
        return np.empty(0)
    known = len(words)
    weights = np.repeat(words, np.diff(offsets))
    counted = np.bincount(grams - known, weights=weights, minlength=len(block.subword_ids))
    return counted.astype(np.float64)
