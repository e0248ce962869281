"""Skip-gram with negative sampling, one pair at a time as in word2vec.

Mikolov et al. 2013, "Distributed Representations of Words and Phrases and their
Compositionality", equation 4. As in word2vec.c each word of a window is an input and the centre
is its target, so that the centre's output row stays in the first-level cache. Neighbours in a
window are taken two by two with noise words in common (see `embedding.models.duo`), except where
one row would be written from two sides: a word beside itself, or noise that is the target.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.models.config import ModelConfig
from embedding.models.jit import bare
from embedding.models.noise_trainer import NoiseTrainer
from embedding.models.outputs import (
    advance,
    clashes,
    descend,
    draw_noise,
    fetch_ahead,
    learn,
    learn_both,
    learn_tile,
)
from embedding.models.sampling import below, next_state, seeded
from embedding.models.simd import TILE, clear
from embedding.models.tracking import enter, leave
from embedding.models.traits import MODELS, ModelTraits


@bare
def _alone(
    row: int, sink: int, inputs: int, base: int, rows: Any, n: int, plan: Any, squares: Any
) -> Any:
    """One input row against its outputs; `sink` is a spare row; returns (loss, likelihood)."""
    stride = n * 4
    x = inputs + row * stride
    if len(rows) == TILE and len(squares[0]) == 0:
        return 0.0, learn_tile(x, x, base, stride, rows, 0, n, plan.rate)
    clear(sink, n)
    loss = learn(x, sink, base, stride, rows, n, plan.rate, squares[1])
    descend(sink, x, row, n, plan.rate, squares[0])
    return loss, 1.0


@bare
def _window(
    centre: int,
    first: int,
    last: int,
    words: Any,
    tables: Any,
    scratch: Any,
    pool: Any,
    cursor: int,
    plan: Any,
    squares: Any,
    state: int,
) -> Any:
    """All inputs of one window, two by two; returns (state, loss, product of likelihoods)."""
    inputs, base = tables
    rows, rates, spare = scratch.rows, scratch.rates.ctypes.data, scratch.spare.ctypes.data
    n = scratch.spare.shape[1]
    loss, product, waiting = 0.0, 1.0, np.int64(-1)
    for at in range(first, last):
        row = np.int64(words[at])
        if at == centre:
            continue
        if waiting < 0:
            waiting = row
            state = draw_noise(rows, words[centre], pool, cursor, plan, state)
            continue
        if len(squares[0]) == 0 and row != waiting and not clashes(rows, plan.negative):
            x, y = inputs + waiting * n * 4, inputs + row * n * 4
            added, likelihood = learn_both(x, y, spare, base, rows, rates, n)
        else:
            added, likelihood = _alone(waiting, spare, inputs, base, rows, n, plan, squares)
            more, second = _alone(row, spare, inputs, base, rows, n, plan, squares)
            added, likelihood = added + more, likelihood * second
        waiting = np.int64(-1)
        loss += added
        product *= likelihood
        # The logarithm of a product of many likelihoods is the sum of their losses.
        if not product > 1e-100:
            loss -= np.log(product)
            product = 1.0
    if waiting >= 0:
        added, likelihood = _alone(waiting, spare, inputs, base, rows, n, plan, squares)
        loss += added
        product *= likelihood
    return state, loss, product


@bare
def skip_gram(
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
    """Train on kept tokens; returns (loss, pairs). Empty `squares` mean SGD, no `track` None."""
    n = vectors.shape[1]
    tables = (vectors.ctypes.data, contexts.ctypes.data)
    squares = (squares_in, squares_out)
    state = next_state(seeded(seed))
    cursor = below(state, len(pool))
    loss, product, pairs = 0.0, 1.0, 0
    step, before, counted, inside, outside = plan, 0.0, 0, 0, 0
    for s in range(len(ends) - 1):
        low, high = ends[s], ends[s + 1]
        if track is not None:
            before, counted = loss - np.log(product), pairs
            step, inside, outside = enter(s, low, high, words, pool, cursor, plan, scratch, track)
        for centre in range(low, high):
            state = next_state(state)
            reach = plan.window - below(state, plan.window) if plan.shrink else plan.window
            cursor = advance(cursor, plan, pool)
            ahead = centre + plan.window + 1
            fetch_ahead(words, ahead, tables[0], tables[1], n * 4, pool, cursor, plan)
            first, last = max(low, centre - reach), min(high, centre + reach + 1)
            state, added, likelihood = _window(
                centre, first, last, words, tables, scratch, pool, cursor, step, squares, state
            )
            pairs += last - first - 1
            loss += added
            product *= likelihood
            if not product > 1e-100:
                loss -= np.log(product)
                product = 1.0
        if track is not None:
            added, touched = loss - np.log(product) - before, (inside, outside)
            leave(s, added, pairs - counted, touched, step.rate, track)
    return loss - np.log(product), pairs


@MODELS.register(
    "sgns",
    ModelTraits(
        draws_noise=True,
        weighs_sentences=True,
        minibatches=True,
        usage=True,
        rare_words=True,
        gpu=True,
    ),
)
def skip_gram_trainer(config: ModelConfig) -> NoiseTrainer:
    """Trainer of skip-gram with negative sampling; loss is per (context word, centre) pair."""
    return NoiseTrainer(config, skip_gram)
