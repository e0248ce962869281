"""What a shard that holds columns does with a block: partial scores first, then steps.

Until a block is pushed a node learns it on copies of these columns, minibatch by minibatch. The
push holds what all shards need to do the same steps again; they do, on the rows as they are when
the log says so. So rows are a function of the log alone, also after a restart.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from embedding.exchange.payload import RowDelta
from embedding.exchange.shards.minibatches import Minibatches, check_shares, check_slopes
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, HalfArray, Table
from embedding.models.slices import ColumnSlice


class Workspace:
    """A block that a node learns, on copies of the columns of its rows."""

    def __init__(self, batch: Minibatches, vectors: FloatArray, contexts: FloatArray) -> None:
        self._batch = batch
        self._slice = ColumnSlice(batch.examples, vectors, contexts)
        self._slopes: list[FloatArray | HalfArray] = []
        self._done = 0

    def scores(self) -> FloatArray:
        """Partial dot products float32 [n, 1 + negative] of the next minibatch."""
        return self._slice.scores(self._done, self._stop)

    def learn(self, slopes: FloatArray | HalfArray) -> None:
        """Step by the numbers of the minibatch whose scores were asked for."""
        batch = self._batch
        check_slopes(slopes, self._stop - self._done, batch.draws["negative"])
        self._slopes.append(slopes)
        # What is left after the last one is done when the block is pushed.
        if self._stop < len(batch.examples.inputs):
            self._slice.learn(self._done, np.asarray(slopes, np.float32), batch.rate)
        self._done = self._stop

    def learnt(self, shares: FloatArray) -> Minibatches:
        """The whole block, as it would travel; RefusedError unless all of it was learnt."""
        batch = self._batch
        if self._done < len(batch.examples.inputs):
            raise RefusedError("learnt: minibatches of this block are missing.")
        check_shares(shares, batch.inputs + len(batch.ids))
        kind = self._slopes[0].dtype
        slopes: FloatArray = np.concatenate(self._slopes, dtype=kind, casting="unsafe")
        found = replace(batch, slopes=slopes, shares=shares)
        vars(found)["examples"] = batch.examples  # not drawn again
        return found

    @property
    def _stop(self) -> int:
        return min(self._done + self._batch.pairs, len(self._batch.examples.inputs))


def moved(
    batch: Minibatches, vectors: FloatArray, contexts: FloatArray
) -> tuple[RowDelta, RowDelta]:
    """By how much a block moves these columns, float32 [rows, columns], which it uses up."""
    before = vectors.copy(), contexts.copy()
    held = ColumnSlice(batch.examples, vectors, contexts)
    for start, stop in batch.bounds:
        held.learn(start, np.asarray(batch.slopes[start:stop], np.float32), batch.rate)
    vectors -= before[0]
    contexts -= before[1]
    if len(batch.shares):
        vectors *= batch.shares[: batch.inputs, None]
        contexts *= batch.shares[batch.inputs :, None]
    inputs = RowDelta(Table.IN, batch.ids[: batch.inputs], vectors)
    return inputs, RowDelta(Table.OUT, batch.ids, contexts)
