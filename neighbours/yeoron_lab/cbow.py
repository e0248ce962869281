"""Continuous bag of words with negative sampling (Mikolov et al. 2013, "Efficient Estimation").

The hidden row is the mean of the window's vectors. As in word2vec.c and gensim each of them gets
the whole step of the hidden row, not its share of it: a learning rate times the number of words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.models.config import ModelConfig
from embedding.models.jit import bare
from embedding.models.noise_trainer import NoiseTrainer
from embedding.models.outputs import advance, descend, draw_noise, fetch_ahead, learn
from embedding.models.sampling import below, next_state, seeded
from embedding.models.simd import axpy, clear
from embedding.models.tracking import enter, leave
from embedding.models.traits import MODELS, ModelTraits


@bare
def cbow(
    words: Any,
    ends: Any,
    pool: Any,
    vectors: Any,
    contexts: Any,
    plan: Any,
    scratch: Any,
    squares_in: Any,
    squares_out: Any,
    seed: int,
    track: Any,
) -> Any:
    """Train on kept tokens; returns (loss, predicted words). Empty `squares` mean SGD."""
    n = vectors.shape[1]
    stride = n * 4
    inputs, base = vectors.ctypes.data, contexts.ctypes.data
    rows, x = scratch.rows, scratch.spare.ctypes.data
    sink = x + stride
    state = next_state(seeded(seed))
    cursor = below(state, len(pool))
    loss, predicted = 0.0, 0
    step, before, counted, inside, outside = plan, 0.0, 0, 0, 0
    for s in range(len(ends) - 1):
        low, high = ends[s], ends[s + 1]
        if track is not None:
            before, counted = loss, predicted
            step, inside, outside = enter(s, low, high, words, pool, cursor, plan, scratch, track)
        for centre in range(low, high):
            state = next_state(state)
            reach = plan.window - below(state, plan.window) if plan.shrink else plan.window
            cursor = advance(cursor, plan, pool)
            ahead = centre + plan.window + 1
            fetch_ahead(words, ahead, inputs, base, stride, pool, cursor, plan)
            first, last = max(low, centre - reach), min(high, centre + reach + 1)
            count = last - first - 1
            if count < 1:
                continue
            clear(x, n)
            clear(sink, n)
            for at in range(first, last):
                if at != centre:
                    axpy(np.float32(1.0 / count), inputs + np.int64(words[at]) * stride, x, n)
            state = draw_noise(rows, words[centre], pool, cursor, plan, state)
            loss += learn(x, sink, base, stride, rows, n, step.rate, squares_out)
            for at in range(first, last):
                if at != centre:
                    row = np.int64(words[at])
                    descend(sink, inputs + row * stride, row, n, step.rate, squares_in)
            predicted += 1
        if track is not None:
            compared = (inside, outside)
            leave(s, loss - before, predicted - counted, compared, step.rate, track)
    return loss, predicted


@MODELS.register(
    "cbow",
    ModelTraits(
        draws_noise=True,
        weighs_sentences=True,
        minibatches=True,
        bag=True,
        usage=True,
        gpu=True,
    ),
)
def cbow_trainer(config: ModelConfig) -> NoiseTrainer:
    """Trainer of CBOW with negative sampling; loss is per predicted word."""
    return NoiseTrainer(config, cbow)
