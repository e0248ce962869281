"""What models with noise share around their kernels: subsampling, AdaGrad state, scratch space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.models.base import BlockLoss, LocalBlock
from embedding.models.config import ModelConfig, Optimiser
from embedding.models.outputs import KernelPlan, Scratch
from embedding.models.sampling import kept_tokens
from embedding.models.tracking import Tracking, nothing, result

_LIMIT = 1 << 31


class RowState:
    """Accumulators by stable id, grown as ids appear: 4 bytes a row."""

    def __init__(self) -> None:
        self._values = np.zeros(0, np.float32)

    def __len__(self) -> int:
        return len(self._values)

    def gather(self, ids: IntArray | None, rows: int) -> FloatArray:
        """float32 [rows] for local rows 0..rows-1; zeros where nothing is known."""
        if ids is None:
            return np.zeros(rows, np.float32)
        if len(ids) < rows:
            raise InputError(f"{len(ids)} ids were given for {rows} rows: each row needs its own.")
        self._reserve(ids[:rows])
        local: FloatArray = self._values[ids[:rows]]
        return local

    def scatter(self, ids: IntArray | None, values: FloatArray) -> None:
        """Keep what `gather` gave and the kernel moved on."""
        if ids is not None and len(values):
            self._values[ids[: len(values)]] = values

    def _reserve(self, ids: IntArray) -> None:
        if not len(ids):
            return
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= _LIMIT:
            raise InputError(f"row ids {low} to {high}: ids from 0 to {_LIMIT - 1} are accepted.")
        if high >= len(self._values):
            grown = np.zeros(max(high + 1, 2 * len(self._values)), np.float32)
            grown[: len(self._values)] = self._values
            self._values = grown


class NoiseTrainer:
    """Trainer of a model with negative sampling, which its kernel learns.

    kernel  (words, ends, pool, vectors, contexts, *grams, plan, scratch, squares_in, squares_out,
             seed, track) → (loss, units): the summed loss in nats and what it was summed over;
             grams: of a model with subwords, their rows and offsets
    """

    def __init__(self, config: ModelConfig, kernel: Callable[..., Any]) -> None:
        self._config, self._kernel = config, kernel
        self._inputs, self._grams, self._outputs = RowState(), RowState(), RowState()

    def train(
        self,
        block: LocalBlock,
        vectors: FloatArray,
        contexts: FloatArray,
        *,
        learning_rate: float,
        seed: int,
    ) -> BlockLoss:
        block.check(vectors, contexts)
        grams = _grams_of(block, len(vectors)) if self._config.traits.has_subwords else None
        known = len(vectors) if grams is None else len(grams[1]) - 1
        words, ends = kept_tokens(block.tokens, block.sentences, block.keep, seed)
        if not len(words) or not len(block.pool):
            return nothing(block, len(words))
        adaptive = self._config.optimiser is Optimiser.ADAGRAD
        squares_in = self._inputs.gather(block.ids, known if adaptive else 0)
        if grams is not None:
            rows = len(vectors) - known if adaptive else 0
            squares_in = np.concatenate([squares_in, self._grams.gather(block.subword_ids, rows)])
        squares_out = self._outputs.gather(block.ids, len(contexts) if adaptive else 0)
        plan = KernelPlan.of(self._config, learning_rate, len(block.pool))
        track = Tracking.of(block, ends, plan, (vectors, contexts), grams)
        loss, units = self._kernel(
            words,
            ends,
            block.pool,
            vectors,
            contexts,
            *(grams or ()),
            plan,
            Scratch.of(plan, vectors.shape[1]),
            squares_in,
            squares_out,
            np.uint64(seed),
            track,
        )
        self._inputs.scatter(block.ids, squares_in[:known])
        self._grams.scatter(block.subword_ids, squares_in[known:])
        self._outputs.scatter(block.ids, squares_out)
        return result(loss, units, len(words), block.track, track)


def _grams_of(block: LocalBlock, rows: int) -> tuple[CodeArray, CodeArray]:
    """The n-grams of a block's words; raises InputError when they do not fit the tables."""
    if block.subwords is None or block.subword_offsets is None:
        return np.zeros(0, np.int32), np.zeros(rows + 1, np.int32)
    offsets, grams = block.subword_offsets, block.subwords
    words = len(offsets) - 1
    highest = int(block.tokens.max()) if len(block.tokens) else -1
    if not highest < words <= rows or int(offsets[-1]) != len(grams) or int(offsets[0]) != 0:
        raise InputError(
            f"subword offsets cover {words} words and {int(offsets[-1])} n-grams; the block names "
            f"word row {highest}, has {len(grams)} n-grams and {rows} rows of vectors."
        )
    if bool((np.diff(offsets) < 0).any()):
        raise InputError("subword offsets must not fall: the n-grams lie word after word.")
    if len(grams) and (int(grams.min()) < words or int(grams.max()) >= rows):
        raise InputError(
            f"n-gram rows {int(grams.min())} to {int(grams.max())}: rows {words} to {rows - 1} "
            "of vectors are accepted, behind the rows of the words."
        )
    return grams, offsets
