"""GloVe on a stream (Pennington, Socher and Manning 2014, equation 8), by row-wise AdaGrad.

A block's co-occurrences are added to a running table; each cell that the block touched then
gets one step towards the logarithm of its running count. A row's bias is its last column.
Always AdaGrad: the loss of GloVe has no scale at which one learning rate suits all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray, IntArray
from embedding.models.base import BlockLoss, LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.jit import kernel
from embedding.models.noise_trainer import RowState
from embedding.models.outputs import EPSILON
from embedding.models.sampling import below, kept_tokens, next_state, seeded
from embedding.models.simd import dot
from embedding.models.traits import MODELS, ModelTraits
from yeoron_lab.counts.cooccurrence import CooccurrenceTable, cell_key, find, refuse_weights

_CLIP = np.float32(100.0)


@kernel()
def shuffle(cells: Any, seed: int) -> None:
    """Fisher-Yates over the rows of `cells` [t, 2], in place."""
    state = seeded(seed)
    for at in range(len(cells) - 1, 0, -1):
        state = next_state(state)
        other = below(state, at + 1)
        for side in range(2):
            cells[at, side], cells[other, side] = cells[other, side], cells[at, side]


@kernel()
def _descend(row: Any, other: Any, squares: Any, slope: float, size: float, rate: float) -> None:
    """AdaGrad on one row: squares [2] are those of the vector and of the bias."""
    n = len(row) - 1
    squares[0] += slope * slope * size / np.float32(n)
    step = rate * slope / (np.sqrt(squares[0]) + EPSILON)
    for i in range(n):
        row[i] -= step * other[i]
    squares[1] += slope * slope
    row[n] -= rate * slope / (np.sqrt(squares[1]) + EPSILON)


@kernel()
def glove(
    cells: Any,
    ids: Any,
    keys: Any,
    counts: Any,
    vectors: Any,
    contexts: Any,
    squares_in: Any,
    squares_out: Any,
    rate: float,
    alpha: float,
    ceiling: float,
) -> Any:
    """One step for each cell (rows of both tables); returns (loss, cells that have a count)."""
    n = vectors.shape[1] - 1
    row, column = np.zeros(n + 1, np.float32), np.zeros(n + 1, np.float32)
    loss, steps = 0.0, 0
    for at in range(len(cells)):
        i, j = cells[at, 0], cells[at, 1]
        slot = find(keys, cell_key(ids[i], ids[j]))
        if keys[slot] < 0 or not counts[slot] > 0.0:
            continue
        count = counts[slot]
        row[:], column[:] = vectors[i], contexts[j]
        guess = dot(row.ctypes.data, column.ctypes.data, n) + row[n] + column[n]
        miss = guess - np.float32(np.log(count))
        weight = np.float32(1.0) if count >= ceiling else (count / ceiling) ** alpha
        loss += np.float64(0.5) * weight * miss * miss
        steps += 1
        slope = min(max(np.float32(weight * miss), -_CLIP), _CLIP)
        if np.isnan(slope):
            continue
        inner = dot(column.ctypes.data, column.ctypes.data, n)
        outer = dot(row.ctypes.data, row.ctypes.data, n)
        _descend(vectors[i], column, squares_in[i], slope, inner, rate)
        _descend(contexts[j], row, squares_out[j], slope, outer, rate)
    return loss, steps


@MODELS.register("glove", ModelTraits(extra_columns=1, keeps_state=True, usage=True))
class GloveTrainer:
    """Trainer of GloVe; tables have `dim + 1` columns; loss and pairs are over touched cells.

    `block.pool` is not used. Without `block.ids` each block is counted on its own.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self.table = CooccurrenceTable(config.cells)
        self._states = tuple(RowState() for _ in range(4))

    def train(
        self,
        block: LocalBlock,
        vectors: FloatArray,
        contexts: FloatArray,
        *,
        learning_rate: float,
        seed: int,
    ) -> BlockLoss:
        """See `Trainer.train`."""
        block.check(vectors, contexts)
        refuse_weights(block, "glove")
        if vectors.shape[1] < 2:
            raise InputError("GloVe needs tables of at least 2 columns: the last is the bias.")
        config = self._config
        words, ends = kept_tokens(block.tokens, block.sentences, block.keep, seed)
        if not len(words):
            return BlockLoss(0.0, 0)
        known = int(words.max()) + 1
        ids = np.arange(known) if block.ids is None else block.ids
        table = CooccurrenceTable(config.cells) if block.ids is None else self.table
        cells = table.add(words, ends, ids, config.window)
        shuffle(cells, np.uint64(seed))
        squares = self._squares(block.ids, known)
        loss, steps = glove(
            cells,
            ids,
            table.keys,
            table.counts,
            vectors,
            contexts,
            squares[0],
            squares[1],
            np.float32(learning_rate),
            np.float32(config.glove_alpha),
            np.float32(config.glove_ceiling),
        )
        for side, state in enumerate(self._states):
            state.scatter(block.ids, squares[side // 2][:, side % 2])
        return BlockLoss(float(loss), int(steps), len(words))

    def _squares(self, ids: IntArray | None, known: int) -> tuple[FloatArray, FloatArray]:
        columns = [state.gather(ids, known) for state in self._states]
        return np.stack(columns[:2], axis=1), np.stack(columns[2:], axis=1)
