"""Loss and gradient of a fixed block: its windows, subsampling and noise are drawn once.

What a batch method (L-BFGS) minimises has to be the same function at every point where it is
looked at. Nothing is updated here; see `embedding.models.sgns` for training step by step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray
from embedding.models.base import LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.traits import ROUNDS_MODEL
from yeoron_lab.examples import examples
from yeoron_lab.slices import apply, backward, bags, dots, slopes_of

_CHUNK = 8_192
"""Examples whose hidden rows are in memory at a time."""


class BlockObjective(NamedTuple):
    """What a block costs at some rows.

    loss      nats, summed over the pairs: -log σ(target) - Σ log σ(-noise)
    vectors   float32, its gradient by each row of `vectors`, in their order
    contexts  float32, by each row of `contexts`
    """

    loss: float
    vectors: FloatArray
    contexts: FloatArray


class Objective:
    """The summed loss of one block as a function of its rows.

    Negative sampling (Mikolov et al. 2013, equation 4) over the pairs that the trainer would train
    on with the same block and seed. Of a noise word that is the target the term is left out, as
    there. CBOW's gradient is that of the mean of a bag, which its trainer gives each word whole.

    pairs   pairs (skip-gram) or predicted words (CBOW)
    tokens  tokens of the block that have a row

    Memory: 4·(negative + 3) bytes a pair. Sums are float32.
    """

    def __init__(self, config: ModelConfig, block: LocalBlock, seed: int) -> None:
        ROUNDS_MODEL.check(config.model)
        made = examples(config, block, seed)
        self._inputs, self._outputs, self._owners = made.inputs, made.outputs, made.owners
        self._weights = block.weights
        self.pairs = len(made.inputs)
        self.tokens = int((block.tokens >= 0).sum())

    def touches(self, vectors: int, contexts: int) -> tuple[FloatArray, FloatArray]:
        """float32 [vectors], [contexts]: in how many examples each row stands."""
        inward = np.bincount(self._inputs[self._inputs >= 0], minlength=vectors)
        outward = np.bincount(self._outputs[self._outputs >= 0], minlength=contexts)
        return inward.astype(np.float32), outward.astype(np.float32)

    def evaluate(self, vectors: FloatArray, contexts: FloatArray) -> BlockObjective:
        """Loss and gradient at these rows, float32 [rows, dim], which are left as they are.

        The same rows give the same bytes. InputError when a row is missing.
        """
        inside = [
            (int(self._inputs.max(initial=-1)), len(vectors)),
            (int(self._outputs.max(initial=-1)), len(contexts)),
        ]
        if any(most >= rows for most, rows in inside) or vectors.shape[1] != contexts.shape[1]:
            raise InputError(
                f"objective: rows {inside[0][0]} and {inside[1][0]} are named; tables of "
                f"{vectors.shape} and {contexts.shape} were given."
            )
        inward, outward, loss = np.zeros_like(vectors), np.zeros_like(contexts), 0.0
        for start in range(0, self.pairs, _CHUNK):
            inputs, outputs = (
                part[start : start + _CHUNK] for part in (self._inputs, self._outputs)
            )
            hidden = np.empty((len(inputs), vectors.shape[1]), np.float32)
            scores, back = np.empty(outputs.shape, np.float32), np.empty_like(hidden)
            bags(inputs, vectors, hidden)
            dots(hidden, outputs, contexts, scores)
            slopes, losses = slopes_of(scores, outputs)
            np.negative(slopes, out=slopes)
            if self._weights is not None:
                weights = self._weights[self._owners[start : start + _CHUNK]]
                slopes *= weights[:, None]
                losses *= weights
            backward(outputs, slopes, contexts, back)
            back /= (inputs >= 0).sum(axis=1, dtype=np.float32)[:, None]
            apply(inputs, outputs, slopes, hidden, back, inward, outward)
            loss += float(losses.sum(dtype=np.float64))
        return BlockObjective(loss, inward, outward)
