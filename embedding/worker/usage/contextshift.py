"""Which contexts pulled a word: what stands beside it more, or less, than before the window.

Let f and g be the shares that a context c has of all pairs of a word before the window and in it
(`countvectors.py`), and s_c what c says (`usage.py`). By its pairs the word's use shifted by

    Δ = Σ_c (g_c - f_c) s_c,    so that    1 = Σ_c (g_c - f_c) s_c·Δ / |Δ|².

The terms are the shares of the contexts, as in a word-shift graph (Dodds et al. 2011; Gallagher et
al. 2021): they add up to 1, and a context that works against the shift has a negative one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.exchange.payload import ContextShift
from embedding.kernel.records import FloatArray, IntArray
from embedding.models.jit import kernel
from embedding.worker.usage.paircounts import PairCounts

LEAST_PAIRS = 20
"""Pairs of a word before the window and in it, below which its contexts are not sent."""
MAX_SHIFTED_WORDS = 2_000
"""Words that are sent: those that shifted most, against chance."""
CONTEXTS_PER_WORD = 8
"""Contexts of each word, the largest shares first."""


def context_shift(
    window: int, pairs: PairCounts, ids: IntArray, says: FloatArray
) -> ContextShift | None:
    """What to send of a window (Unix seconds of its start); None where no word has enough pairs.

    pairs  of the text before the window, and of the window
    ids    int64 [v]; says: float32 [v, dim]
    """
    totals = pairs.totals()
    words = np.flatnonzero((totals >= LEAST_PAIRS).all(axis=1))
    if not len(words):
        return None
    shift = np.zeros((len(words), says.shape[1]), dtype=np.float32)
    changed = np.zeros(len(words), dtype=np.int64)
    _shift(pairs.starts, pairs.contexts, pairs.counts, totals, words, says, shift, changed)
    weights = 1.0 / (1.0 / totals[words]).sum(axis=1)
    lengths = np.einsum("nd,nd->n", shift, shift).astype(np.float64)
    order = np.argsort(-weights * lengths, kind="stable")[:MAX_SHIFTED_WORDS]
    order = np.sort(order[lengths[order] > 0])
    if not len(order):
        return None
    words, heavy = words[order], weights[order].astype(np.float32)
    sizes = np.minimum(changed[order], CONTEXTS_PER_WORD)
    along = (shift[order] / lengths[order, None]).astype(np.float32)
    at, pulls = _largest(
        pairs.starts, pairs.contexts, pairs.counts, totals, words, along, says, sizes
    )
    shares = (pairs.counts[at] / totals[np.repeat(words, sizes)]).astype(np.float32)
    figures = np.column_stack([shares, pulls]) * np.repeat(heavy, sizes)[:, None]
    near = ids[pairs.contexts[at]]
    return ContextShift(window, ids[words], heavy, sizes, near, figures.astype(np.float32))


@kernel()
def _change(counts: Any, totals: Any) -> Any:
    """g - f of a context. counts, totals: float [2], its pairs with a word, and all of these."""
    return np.float32(counts[1] / totals[1]) - np.float32(counts[0] / totals[0])


@kernel()
def _shift(
    starts: Any,
    contexts: Any,
    counts: Any,
    totals: Any,
    words: Any,
    says: Any,
    shift: Any,
    changed: Any,
) -> None:
    """Add Δ of each word to its row of `shift`, and the contexts that changed to `changed`."""
    for at in range(len(words)):
        word = words[at]
        for place in range(starts[word], starts[word + 1]):
            change, context = _change(counts[place], totals[word]), contexts[place]
            if change != 0.0:
                changed[at] += 1
                for i in range(says.shape[1]):
                    shift[at, i] += change * says[context, i]


@kernel()
def _largest(
    starts: Any,
    contexts: Any,
    counts: Any,
    totals: Any,
    words: Any,
    along: Any,
    says: Any,
    sizes: Any,
) -> Any:
    """The contexts of words int64 [n] whose (g - f) · (s · along) is largest, by size.

    along  float32 [n, dim]; sizes int64 [n]: how many of each word
    Returns their places int64 [m] and the products float32 [m], largest first for each word.
    """
    total = 0
    for size in sizes:
        total += size
    largest = np.empty(total, dtype=np.int64)
    products = np.empty(total, dtype=np.float32)
    first = 0
    for at in range(len(words)):
        count = 0
        for place in range(starts[words[at]], starts[words[at] + 1]):
            change = _change(counts[place], totals[words[at]])
            if change == 0.0:
                continue
            product = np.float32(0.0)
            for i in range(along.shape[1]):
                product += says[contexts[place], i] * along[at, i]
            product *= change
            to = first + count
            if count == sizes[at]:
                to -= 1
                if abs(product) <= abs(products[to]):
                    continue
            else:
                count += 1
            while to > first and abs(products[to - 1]) < abs(product):
                products[to], largest[to] = products[to - 1], largest[to - 1]
                to -= 1
            products[to], largest[to] = product, place
        first += sizes[at]
    return largest, products
