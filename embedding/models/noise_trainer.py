"""What skip-gram and CBOW share around their kernels: subsampling, AdaGrad state, scratch space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from embedding.kernel.records import FloatArray
from embedding.models.adagrad import RowState
from embedding.models.base import BlockLoss, LocalBlock
from embedding.models.config import ModelConfig, Optimiser
from embedding.models.outputs import KernelPlan, Scratch
from embedding.models.sampling import kept_tokens
from embedding.models.tracking import Tracking, nothing, result


class NoiseTrainer:
    """Trainer of a model with negative sampling, which its kernel learns.

    kernel  (words, ends, pool, vectors, contexts, plan, scratch, squares_in, squares_out, seed,
             track) → (loss, units): the summed loss in nats and what it was summed over
    """

    def __init__(self, config: ModelConfig, kernel: Callable[..., Any]) -> None:
        self._config, self._kernel = config, kernel
        self._inputs, self._outputs = RowState(), RowState()

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
        words, ends = kept_tokens(block.tokens, block.sentences, block.keep, seed)
        if not len(words) or not len(block.pool):
            return nothing(block, len(words))
        adaptive = self._config.optimiser is Optimiser.ADAGRAD
        squares_in = self._inputs.gather(block.ids, len(vectors) if adaptive else 0)
        squares_out = self._outputs.gather(block.ids, len(contexts) if adaptive else 0)
        plan = KernelPlan.of(self._config, learning_rate, len(block.pool))
        track = Tracking.of(block, ends, plan, (vectors, contexts))
        loss, units = self._kernel(
            words,
            ends,
            block.pool,
            vectors,
            contexts,
            plan,
            Scratch.of(plan, vectors.shape[1]),
            squares_in,
            squares_out,
            np.uint64(seed),
            track,
        )
        self._inputs.scatter(block.ids, squares_in)
        self._outputs.scatter(block.ids, squares_out)
        return result(loss, units, len(words), block.track, track)
