"""A node whose shards hold columns: it has no rows, and learns by the scores they answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import CodeArray, FloatArray, Table
from embedding.models.base import BlockLoss, LocalBlock, Track
from embedding.models.sampling import kept_tokens
from embedding.worker.learning.combining import share
from embedding.worker.learning.copies import EachBlock
from embedding.worker.learning.ticks import Prepared, Trained, check_loss
from embedding.worker.learning.training import BlockTraining, LearnerParts, MakeTraining
from yeoron_lab.columns.checks import check_column_model
from yeoron_lab.columns.minibatches import Minibatches, draws_of
from yeoron_lab.columns.path import ColumnsOnShards


class ColumnTraining:
    """Has the shards train, by `columns`; ConfigError for a model that they cannot."""

    def __init__(self, parts: LearnerParts, columns: ColumnsOnShards) -> None:
        check_column_model(parts.setup.model)
        self._parts = parts
        self._columns = columns

    def train(self, prepared: Prepared) -> Trained:
        """Have the shards learn copies of the block's rows, minibatch by minibatch."""
        planned = prepared.planned
        rows = prepared.rows or self._parts.link.pull(planned, prepared.scores)
        block = self._block(prepared)
        if not len(block.words) or not len(block.pool) or not len(block.examples.inputs):
            return Trained(prepared, rows.clock, (), BlockLoss(0.0, 0, len(block.words)))
        local, owners = planned.block, block.examples.owners
        weights = None if local.weights is None else local.weights[owners]
        learnt, losses = self._columns.learn(block, rows, weights)
        loss = _summed(losses, owners, local, len(block.words))
        check_loss(self._parts.setup.node, self._parts.setup.model, loss)
        steps = self._parts.steps(prepared, loss)
        if steps:
            shares = [share(steps[table], self._parts.pooled) for table in (Table.IN, Table.OUT)]
            learnt = replace(learnt, shares=np.concatenate(shares))
        return Trained(prepared, rows.clock, (), loss, minibatches=learnt)

    def _block(self, prepared: Prepared) -> Minibatches:
        """What the shards need to know of a block."""
        planned, local = prepared.planned, prepared.planned.block
        if local.track is Track.GRADIENT:
            raise ConfigError(
                "stream.replay by gradient with split columns: no node knows how far a sentence "
                "moved the rows; uniform or loss is accepted."
            )
        words, ends = kept_tokens(local.tokens, local.sentences, local.keep, prepared.seed)
        return Minibatches(
            words=words,
            sentences=ends,
            pool=local.pool,
            ids=planned.contexts,
            inputs=len(planned.words),
            draws=draws_of(self._parts.setup.model),
            seed=prepared.seed,
            pairs=self._parts.setup.config.minibatch,
            rate=prepared.rate,
        )


def on_columns(columns: ColumnsOnShards) -> MakeTraining:
    """Blocks are learnt on shards that hold columns."""

    def make(parts: LearnerParts) -> BlockTraining:
        return BlockTraining(ColumnTraining(parts, columns).train, EachBlock(parts))

    return make


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
