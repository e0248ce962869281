"""Loss and gradient of a fixed block: its windows, subsampling and noise are drawn once.

What a batch method (L-BFGS) minimises has to be the same function at every point where it is
looked at. Nothing is updated here; see `embedding.models.sgns` for training step by step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedding.errors import ConfigError, InputError
from embedding.models.base import LocalBlock
from embedding.models.config import Model, ModelConfig
from embedding.models.examples import examples
from embedding.models.jit import bare, kernel
from embedding.records import FloatArray

MODELS = (Model.SGNS, Model.CBOW)
"""Models whose block has a loss of its own, over the tables `in` and `out` alone."""
_Sums = npt.NDArray[np.float64]


@bare
def _middle(bag: Any, vectors: Any, hidden: Any) -> float:
    """The mean of the rows of a bag into `hidden`; one over their number."""
    rows = 0
    hidden[:] = 0.0
    for b in range(len(bag)):
        if bag[b] >= 0:
            rows += 1
            for i in range(len(hidden)):
                hidden[i] += vectors[bag[b], i]
    share = 1.0 / rows
    for i in range(len(hidden)):
        hidden[i] *= share
    return share


@kernel()
def _evaluate(
    inputs: Any,
    outputs: Any,
    owners: Any,
    weights: Any,
    vectors: Any,
    contexts: Any,
    inward: Any,
    outward: Any,
    hidden: Any,
    slope: Any,
) -> float:
    """Adds the gradients to `inward` and `outward`; returns the loss."""
    n, loss = len(hidden), 0.0
    for e in range(len(inputs)):
        weight = np.float64(weights[owners[e]]) if len(weights) else 1.0
        share = _middle(inputs[e], vectors, hidden)
        slope[:] = 0.0
        for k in range(outputs.shape[1]):
            if outputs[e, k] < 0:
                continue
            out, sums = contexts[outputs[e, k]], outward[outputs[e, k]]
            score = 0.0
            for i in range(n):
                score += hidden[i] * out[i]
            signed = score if k > 0 else -score
            loss += weight * (max(signed, 0.0) + np.log1p(np.exp(-abs(signed))))
            pull = weight * (1.0 / (1.0 + np.exp(-score)) - (0.0 if k > 0 else 1.0))
            for i in range(n):
                slope[i] += pull * out[i]
                sums[i] += pull * hidden[i]
        for b in range(inputs.shape[1]):
            if inputs[e, b] >= 0:
                sums = inward[inputs[e, b]]
                for i in range(n):
                    sums[i] += share * slope[i]
    return loss


class Evaluation(NamedTuple):
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

    Memory: 4·(negative + 3) bytes a pair, and while it is evaluated 8·dim bytes a row.
    """

    def __init__(self, config: ModelConfig, block: LocalBlock, seed: int) -> None:
        if config.model not in MODELS:
            raise ConfigError(
                f"model {config.model}: L-BFGS takes the loss of a fixed block of "
                f"{' or '.join(MODELS)}; choose one of them or another policy."
            )
        made = examples(config, block, seed)
        self._inputs, self._outputs, self._owners = made.inputs, made.outputs, made.owners
        none = np.empty(0, np.float32)
        self._weights = none if block.weights is None else block.weights
        self.pairs = len(made.inputs)
        self.tokens = int((block.tokens >= 0).sum())

    def touches(self, vectors: int, contexts: int) -> tuple[FloatArray, FloatArray]:
        """float32 [vectors], [contexts]: in how many examples each row stands."""
        inward = np.bincount(self._inputs[self._inputs >= 0], minlength=vectors)
        outward = np.bincount(self._outputs[self._outputs >= 0], minlength=contexts)
        return inward.astype(np.float32), outward.astype(np.float32)

    def evaluate(self, vectors: FloatArray, contexts: FloatArray) -> Evaluation:
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
        inward: _Sums = np.zeros(vectors.shape)
        outward: _Sums = np.zeros(contexts.shape)
        width = vectors.shape[1]
        loss = _evaluate(
            self._inputs,
            self._outputs,
            self._owners,
            self._weights,
            np.ascontiguousarray(vectors),
            np.ascontiguousarray(contexts),
            inward,
            outward,
            np.zeros(width),
            np.zeros(width),
        )
        return Evaluation(float(loss), inward.astype(np.float32), outward.astype(np.float32))
