"""Loss and gradient of a fixed block: its windows, subsampling and noise are drawn once.

What a batch method (L-BFGS) minimises has to be the same function at every point where it is
looked at. Nothing is updated here; see `embedding.models.sgns` for training step by step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray
from embedding.models.base import LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.jit import bare, kernel
from embedding.models.sigmoid import errors
from embedding.models.simd import TILE, axpy, clear, dots
from embedding.models.traits import ROUNDS_MODEL
from yeoron_lab.examples import examples

_NONE = np.float32(0.0)
_ONE = np.float32(1.0)


@bare
def _tile(rows: Any, at: int, weight: float) -> Any:
    """rows[at : at + TILE], and the weights of their terms.

    What is missing (behind the end, or noise that is the target) has weight 0.
    """
    n, first = len(rows), rows[0]
    r0 = rows[at]
    r1 = rows[at + 1] if at + 1 < n else -1
    r2 = rows[at + 2] if at + 2 < n else -1
    r3 = rows[at + 3] if at + 3 < n else -1
    r4 = rows[at + 4] if at + 4 < n else -1
    r5 = rows[at + 5] if at + 5 < n else -1
    named = (
        np.int64(r0 if r0 >= 0 else first),
        np.int64(r1 if r1 >= 0 else first),
        np.int64(r2 if r2 >= 0 else first),
        np.int64(r3 if r3 >= 0 else first),
        np.int64(r4 if r4 >= 0 else first),
        np.int64(r5 if r5 >= 0 else first),
    )
    weights = (
        weight if r0 >= 0 else _NONE,
        weight if r1 >= 0 else _NONE,
        weight if r2 >= 0 else _NONE,
        weight if r3 >= 0 else _NONE,
        weight if r4 >= 0 else _NONE,
        weight if r5 >= 0 else _NONE,
    )
    return named, weights


@bare
def _example(
    x: int, slope: int, base: int, sums: int, stride: int, rows: Any, n: int, weight: float
) -> float:
    """One hidden row at `x` against its outputs; its own ascent is added to `slope`."""
    loss = 0.0
    for at in range(0, len(rows), TILE):
        r, weights = _tile(rows, at, weight)
        outs = (
            base + r[0] * stride,
            base + r[1] * stride,
            base + r[2] * stride,
            base + r[3] * stride,
            base + r[4] * stride,
            base + r[5] * stride,
        )
        rises, likelihood = errors(dots(x, outs, n), weights, at == 0)
        for k in range(TILE):
            if rises[k] != 0.0:
                axpy(rises[k], outs[k], slope, n)
                axpy(rises[k], x, sums + r[k] * stride, n)
        loss -= np.log(likelihood)
    return weight * loss


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
    spare: Any,
) -> float:
    """Adds the ascents (gradients, negated) to `inward` and `outward`; returns the loss."""
    n, loss = vectors.shape[1], 0.0
    stride = np.int64(4 * n)
    hidden, slope = spare.ctypes.data, spare.ctypes.data + stride
    tables = vectors.ctypes.data, contexts.ctypes.data, inward.ctypes.data, outward.ctypes.data
    for e in range(len(inputs)):
        weight = weights[owners[e]] if len(weights) else _ONE
        bag = 0
        for b in range(inputs.shape[1]):
            bag += inputs[e, b] >= 0
        share = np.float32(1.0 / bag)
        clear(hidden, 2 * n)
        for b in range(bag):
            axpy(share, tables[0] + np.int64(inputs[e, b]) * stride, hidden, n)
        loss += _example(hidden, slope, tables[1], tables[3], stride, outputs[e], n, weight)
        for b in range(bag):
            axpy(share, slope, tables[2] + np.int64(inputs[e, b]) * stride, n)
    return loss


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

    Memory: 4·(negative + 3) bytes a pair. Sums are float32; a score beyond ±30 counts as 30.
    """

    def __init__(self, config: ModelConfig, block: LocalBlock, seed: int) -> None:
        ROUNDS_MODEL.check(config.model)
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
        inward, outward = np.zeros_like(vectors), np.zeros_like(contexts)
        loss = _evaluate(
            self._inputs,
            self._outputs,
            self._owners,
            self._weights,
            np.ascontiguousarray(vectors),
            np.ascontiguousarray(contexts),
            inward,
            outward,
            np.zeros((2, vectors.shape[1]), np.float32),
        )
        np.negative(inward, out=inward)
        np.negative(outward, out=outward)
        return BlockObjective(float(loss), inward, outward)
