"""Skip-gram over subwords (Bojanowski et al. 2017, "Enriching Word Vectors with Subword
Information").

The hidden row of a centre is the mean of its word row and its n-gram rows; it predicts each word
of its window. Every row of the mean gets the whole step of the hidden row, as in fastText, so
the mean moves by that step and need not be taken again within the window (exact unless two
n-grams of the word share a bucket).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.models.config import ModelConfig
from embedding.models.jit import bare
from embedding.models.noise_trainer import NoiseTrainer
from embedding.models.outputs import advance, descend, draw_noise, learn
from embedding.models.sampling import below, next_state, seeded
from embedding.models.simd import axpy, clear
from embedding.models.tracking import enter, leave
from embedding.models.traits import MODELS, ModelTraits

_ONE = np.float32(1.0)


@bare
def _mean(word: int, subwords: Any, offsets: Any, inputs: int, stride: int, x: int, n: int) -> None:
    """Add the mean of a word's rows to the row of zeros at address `x`."""
    start, end = offsets[word], offsets[word + 1]
    share = np.float32(1.0 / (1 + end - start))
    axpy(share, inputs + word * stride, x, n)
    for at in range(start, end):
        axpy(share, inputs + np.int64(subwords[at]) * stride, x, n)


@bare
def _spread(
    word: int,
    subwords: Any,
    offsets: Any,
    inputs: int,
    sink: int,
    n: int,
    rate: float,
    squares: Any,
) -> None:
    """Give the hidden row's step to each row of a word."""
    descend(sink, inputs + word * n * 4, word, n, rate, squares)
    for at in range(offsets[word], offsets[word + 1]):
        row = np.int64(subwords[at])
        descend(sink, inputs + row * n * 4, row, n, rate, squares)


@bare
def fasttext(
    words: Any,
    ends: Any,
    pool: Any,
    vectors: Any,
    contexts: Any,
    subwords: Any,
    offsets: Any,
    plan: Any,
    scratch: Any,
    squares_in: Any,
    squares_out: Any,
    seed: int,
    track: Any,
) -> Any:
    """Train on kept tokens; returns (loss, pairs). Empty `squares` mean SGD."""
    n = vectors.shape[1]
    stride = n * 4
    inputs, base = vectors.ctypes.data, contexts.ctypes.data
    rows, x = scratch.rows, scratch.spare.ctypes.data
    sink, total = x + stride, x + 2 * stride
    state = next_state(seeded(seed))
    cursor = below(state, len(pool))
    loss, pairs = 0.0, 0
    step, before, counted, inside, outside = plan, 0.0, 0, 0, 0
    for s in range(len(ends) - 1):
        low, high = ends[s], ends[s + 1]
        if track is not None:
            before, counted = loss, pairs
            step, inside, outside = enter(s, low, high, words, pool, cursor, plan, scratch, track)
        for centre in range(low, high):
            state = next_state(state)
            reach = plan.window - below(state, plan.window) if plan.shrink else plan.window
            cursor = advance(cursor, plan, pool)
            word = np.int64(words[centre])
            clear(x, n)
            clear(total, n)
            _mean(word, subwords, offsets, inputs, stride, x, n)
            for at in range(max(low, centre - reach), min(high, centre + reach + 1)):
                if at == centre:
                    continue
                clear(sink, n)
                state = draw_noise(rows, words[at], pool, cursor, plan, state)
                loss += learn(x, sink, base, stride, rows, n, step.rate, squares_out)
                axpy(_ONE, sink, total, n)
                if len(squares_in) == 0:
                    axpy(_ONE, sink, x, n)
                pairs += 1
            _spread(word, subwords, offsets, inputs, total, n, step.rate, squares_in)
        if track is not None:
            compared = (inside, outside)
            leave(s, loss - before, pairs - counted, compared, step.rate, track)
    return loss, pairs


@MODELS.register(
    "fasttext",
    ModelTraits(draws_noise=True, weighs_sentences=True, has_subwords=True),
)
def fasttext_trainer(config: ModelConfig) -> NoiseTrainer:
    """Trainer of skip-gram over subwords; loss is per (centre, context word) pair.

    A block without `subwords` trains plain skip-gram with the centre as input.
    """
    return NoiseTrainer(config, fasttext)
