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

from embedding.kernel.errors import InputError
from embedding.kernel.records import CodeArray, FloatArray
from embedding.models.adagrad import RowState
from embedding.models.base import BlockLoss, LocalBlock
from embedding.models.config import ModelConfig, Optimiser
from embedding.models.jit import bare
from embedding.models.outputs import KernelPlan, Scratch, advance, descend, draw_noise, learn
from embedding.models.sampling import below, kept_tokens, next_state, seeded
from embedding.models.simd import axpy, clear
from embedding.models.tracking import Tracking, enter, leave, nothing, result
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
            kept = (inside, outside)
            leave(s, loss - before, pairs - counted, kept, step.rate, track)
    return loss, pairs


@MODELS.register(
    "fasttext",
    ModelTraits(draws_noise=True, weighs_sentences=True, has_subwords=True),
)
class FastTextTrainer:
    """Trainer of skip-gram over subwords; loss is per (centre, context word) pair.

    A block without `subwords` trains plain skip-gram with the centre as input.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
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
        subwords, offsets = _grams_of(block, len(vectors))
        words, ends = kept_tokens(block.tokens, block.sentences, block.keep, seed)
        if not len(words) or not len(block.pool):
            return nothing(block, len(words))
        adaptive = self._config.optimiser is Optimiser.ADAGRAD
        known = len(offsets) - 1
        squares_words = self._inputs.gather(block.ids, known if adaptive else 0)
        squares_grams = self._grams.gather(
            block.subword_ids, len(vectors) - known if adaptive else 0
        )
        squares_in = np.concatenate([squares_words, squares_grams])
        squares_out = self._outputs.gather(block.ids, len(contexts) if adaptive else 0)
        plan = KernelPlan.of(self._config, learning_rate, len(block.pool))
        track = Tracking.of(block, ends, plan, (vectors, contexts), (subwords, offsets))
        loss, pairs = fasttext(
            words,
            ends,
            block.pool,
            vectors,
            contexts,
            subwords,
            offsets,
            plan,
            Scratch.of(plan, vectors.shape[1]),
            squares_in,
            squares_out,
            np.uint64(seed),
            track,
        )
        self._inputs.scatter(block.ids, squares_in[: len(squares_words)])
        self._grams.scatter(block.subword_ids, squares_in[len(squares_words) :])
        self._outputs.scatter(block.ids, squares_out)
        return result(loss, pairs, len(words), block.track, track)


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
