"""A node whose shards hold columns: it has no rows, and learns by the scores they answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import CodeArray, FloatArray, Table
from embedding.models.base import BlockLoss, LocalBlock, Track
from embedding.models.sampling import kept_tokens
from embedding.worker.learning.combining import share
from embedding.worker.learning.ticks import Tick, check_loss
from embedding.worker.learning.training import Training
from yeoron_lab.columns.checks import check_column_model
from yeoron_lab.columns.minibatches import Minibatches, draws_of
from yeoron_lab.columns.path import ColumnsOnShards
from yeoron_lab.settings import ColumnSettings


@dataclass(kw_only=True)
class ColumnTraining(Training):
    """Has the shards train, by `columns`; ConfigError for a model that they cannot."""

    columns: ColumnsOnShards

    def __post_init__(self) -> None:
        check_column_model(self.setup.model)

    def train(self, tick: Tick) -> None:
        """Have the shards learn copies of the block's rows, minibatch by minibatch."""
        planned, rows = tick.planned, self.pulled(tick)
        block = self._block(tick)
        if not len(block.words) or not len(block.pool) or not len(block.examples.inputs):
            tick.loss = BlockLoss(0.0, 0, len(block.words))
            return
        local, owners = planned.block, block.examples.owners
        weights = None if local.weights is None else local.weights[owners]
        learnt, losses = self.columns.learn(block, rows, weights)
        tick.loss = _summed(losses, owners, local, len(block.words))
        check_loss(self.setup.node, self.setup.model, tick.loss)
        steps, pooled = self.steps(tick), self.link.turn.pooled
        if steps:
            shares = [share(steps[table], pooled) for table in (Table.IN, Table.OUT)]
            learnt = replace(learnt, shares=np.concatenate(shares))
        tick.minibatches = learnt

    def _block(self, tick: Tick) -> Minibatches:
        """What the shards need to know of a block."""
        planned, local = tick.planned, tick.planned.block
        if local.track is Track.GRADIENT:
            raise ConfigError(
                "stream.replay by gradient with split columns: no node knows how far a sentence "
                "moved the rows; uniform or loss is accepted."
            )
        words, ends = kept_tokens(local.tokens, local.sentences, local.keep, tick.seed)
        return Minibatches(
            words=words,
            sentences=ends,
            pool=local.pool,
            ids=planned.contexts,
            inputs=len(planned.words),
            draws=draws_of(self.setup.model),
            seed=tick.seed,
            pairs=ColumnSettings.minibatch,
            rate=tick.rate,
        )


def _summed(losses: FloatArray, owners: CodeArray, block: LocalBlock, words: int) -> BlockLoss:
    """The loss of a block from those of its examples."""
    total = float(losses.sum(dtype=np.float64))
    if block.track is Track.NONE:
        return BlockLoss(total, len(losses), words)
    pairs = np.bincount(owners, minlength=len(block.sentences) - 1)
    sums = np.bincount(owners, losses, minlength=len(pairs))
    means = (sums / np.maximum(pairs, 1)).astype(np.float32)
    return BlockLoss(
        total, len(losses), words, sentence_loss=means, sentence_pairs=pairs.astype(np.int32)
    )
