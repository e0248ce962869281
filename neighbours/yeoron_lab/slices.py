"""Negative sampling on some columns of the tables, in minibatches.

Ordentlich et al. 2016, "Network-efficient Distributed Word2vec Training System for Large
Vocabularies", section 4: whoever holds some columns of both tables computes partial dot products of
a minibatch; their sum over all slices is the score s of an input and an output row, from which one
number follows, label - σ(s); with it each slice steps its own columns. No row leaves its slice.

All examples of a minibatch are computed on the rows as they were before it and their steps are
summed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from embedding.kernel.records import CodeArray, FloatArray
from embedding.models.jit import kernel
from yeoron_lab.examples import Examples


@kernel()
def bags(inputs: Any, vectors: Any, hidden: Any) -> None:
    """The mean of each example's input rows."""
    columns = vectors.shape[1]
    for e in range(len(inputs)):
        count = 0
        for j in range(columns):
            hidden[e, j] = 0.0
        for m in range(inputs.shape[1]):
            row = inputs[e, m]
            if row < 0:
                break
            count += 1
            for j in range(columns):
                hidden[e, j] += vectors[row, j]
        if count > 1:
            for j in range(columns):
                hidden[e, j] /= np.float32(count)


@kernel()
def dots(hidden: Any, outputs: Any, contexts: Any, scores: Any) -> None:
    """scores[e, k] = ⟨hidden[e], contexts[outputs[e, k]]⟩, 0 where there is no row."""
    for e in range(len(outputs)):
        for k in range(outputs.shape[1]):
            row, total = outputs[e, k], np.float32(0.0)
            if row >= 0:
                for j in range(contexts.shape[1]):
                    total += hidden[e, j] * contexts[row, j]
            scores[e, k] = total


@kernel()
def backward(outputs: Any, steps: Any, contexts: Any, inward: Any) -> None:
    """inward[e] = Σ_k steps[e, k] · contexts[outputs[e, k]]."""
    for e in range(len(outputs)):
        for j in range(contexts.shape[1]):
            inward[e, j] = 0.0
        for k in range(outputs.shape[1]):
            row, step = outputs[e, k], steps[e, k]
            if row >= 0:
                for j in range(contexts.shape[1]):
                    inward[e, j] += step * contexts[row, j]


@kernel()
def apply(
    inputs: Any, outputs: Any, steps: Any, hidden: Any, inward: Any, vectors: Any, contexts: Any
) -> None:
    """Add what an example gives to its output rows, and to each row of its bag."""
    for e in range(len(outputs)):
        for k in range(outputs.shape[1]):
            row, step = outputs[e, k], steps[e, k]
            if row >= 0:
                for j in range(contexts.shape[1]):
                    contexts[row, j] += step * hidden[e, j]
        for m in range(inputs.shape[1]):
            row = inputs[e, m]
            if row < 0:
                break
            for j in range(vectors.shape[1]):
                vectors[row, j] += inward[e, j]


@kernel()
def _logistic(scores: Any, outputs: Any, slopes: Any, losses: Any) -> None:
    for e in range(len(scores)):
        loss = 0.0
        for k in range(scores.shape[1]):
            if outputs[e, k] < 0:
                slopes[e, k] = 0.0
                continue
            # -log σ(s) of the target, -log σ(-s) of noise, without overflow
            s = float(scores[e, k]) if k == 0 else -float(scores[e, k])
            tail = math.exp(-abs(s))
            loss += math.log1p(tail) + max(-s, 0.0)
            missing = tail / (1.0 + tail) if s > 0 else 1.0 / (1.0 + tail)
            slopes[e, k] = missing if k == 0 else -missing
        losses[e] = loss


def slopes_of(scores: FloatArray, outputs: CodeArray) -> tuple[FloatArray, FloatArray]:
    """What a minibatch's scores say: label - σ(score), float32 [e, 1 + k], and losses [e] in nats.

    scores float32 [e, 1 + k], target first; outputs int32 alike, -1 where noise is the target
    """
    slopes, losses = np.empty(scores.shape, np.float32), np.empty(len(scores), np.float32)
    _logistic(scores, outputs, slopes, losses)
    return slopes, losses


class ColumnSlice:
    """Some columns of a block's rows; a minibatch is examples [start, stop).

    vectors, contexts  float32 [rows, columns], C-contiguous, updated in place
    """

    def __init__(self, examples: Examples, vectors: FloatArray, contexts: FloatArray) -> None:
        self.examples = examples
        self.vectors = vectors
        self.contexts = contexts

    def scores(self, start: int, stop: int) -> FloatArray:
        """Partial dot products float32 [stop - start, 1 + k]."""
        outputs = self.examples.outputs[start:stop]
        scores = np.empty(outputs.shape, np.float32)
        dots(self._hidden(start, stop), outputs, self.contexts, scores)
        return scores

    def learn(self, start: int, slopes: FloatArray, rate: float) -> None:
        """Step by rate · slopes float32 [n, 1 + k], the first of which is example `start`'s."""
        stop = start + len(slopes)
        inputs, outputs = self.examples.inputs[start:stop], self.examples.outputs[start:stop]
        hidden, steps = self._hidden(start, stop), slopes * np.float32(rate)
        inward = np.empty_like(hidden)
        backward(outputs, steps, self.contexts, inward)
        apply(inputs, outputs, steps, hidden, inward, self.vectors, self.contexts)

    def _hidden(self, start: int, stop: int) -> FloatArray:
        hidden = np.empty((stop - start, self.vectors.shape[1]), np.float32)
        bags(self.examples.inputs[start:stop], self.vectors, hidden)
        return hidden
