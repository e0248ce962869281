"""Kernels that read what stands around words, a document at a time (`usage.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.models.jit import kernel

REPEATED = 6
"""Words of a passage that counts once, however many documents hold it."""
BRIEFEST = 3
"""Words of the shortest whole sentence that counts once, too."""
_LEAST = 1e-6


@kernel()
def without_repeats(tokens: Any, sentences: Any, documents: Any, order: Any, bits: int) -> Any:
    """The tokens int32 [n], -1 for those of passages that a document before it in `order` holds.

    A passage is REPEATED words of a sentence, or a whole sentence of fewer, from BRIEFEST on, or a
    whole document; found by a hash in a table of 2^bits places. order: int64 [documents].
    """
    owners = np.zeros(np.int64(1) << bits, dtype=np.uint64)
    once = tokens.copy()
    for d in order:
        begin, end = sentences[documents[d]], sentences[documents[d + 1]]
        whole = _hash(tokens, begin, end, documents[d + 1] - documents[d])
        if end > begin and _is_held(whole, d, owners, bits):
            once[begin:end] = -1
            continue
        for s in range(documents[d], documents[d + 1]):
            length = min(REPEATED, sentences[s + 1] - sentences[s])
            if length < BRIEFEST:
                continue
            for first in range(sentences[s], sentences[s + 1] - length + 1):
                passage = _hash(tokens, first, first + length, 0)
                if _is_held(passage, d, owners, bits):
                    once[first : first + length] = -1
    return once


@kernel()
def _hash(tokens: Any, first: int, stop: int, kind: int) -> Any:
    """uint64 of tokens first to stop; another for each `kind`."""
    mixed = np.uint64(1469598103934665603) + np.uint64(stop - first)
    mixed ^= np.uint64(kind) << np.uint64(32)
    for at in range(first, stop):
        mixed = (mixed ^ np.uint64(tokens[at] + 2)) * np.uint64(1099511628211)
        mixed ^= mixed >> np.uint64(29)
    # Else passages that differ in their last word alone would have the same first bits.
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return mixed ^ (mixed >> np.uint64(32))


@kernel()
def _is_held(mixed: Any, d: int, owners: Any, bits: int) -> bool:
    """Whether another document has the hash `mixed`; if none does, document d has it from now.

    owners  uint64 [2^bits]: the lower half of a hash, and in front of it its document from 1 on
    """
    place = np.int64(mixed >> np.uint64(64 - bits))
    owner = owners[place] >> np.uint64(32)
    if owner != 0 and owner != np.uint64(d + 1) and np.uint32(owners[place]) == np.uint32(mixed):
        return True
    owners[place] = np.uint64(d + 1) << np.uint64(32) | mixed & np.uint64(0xFFFFFFFF)
    return False


@kernel()
def add_contexts(
    tokens: Any,
    sentences: Any,
    documents: Any,
    chosen: Any,
    wanted: Any,
    says: Any,
    window: int,
    sums: Any,
    counts: Any,
) -> None:
    """Add one unit vector of each wanted word of each chosen document to `sums`, 1 to `counts`.

    A context counts once for each reach from 1 to `window` that it is within.

    tokens   int32 [n], rows of `says`, -1 for none
    chosen   int64 [k], documents; wanted: bool [v], words
    says     float32 [v, dim], what a context says
    sums     float32 [v, dim]; counts float32 [v]
    """
    v, dim = says.shape
    last = np.full(v, -1, dtype=np.int64)
    place = np.zeros(v, dtype=np.int64)
    longest = 0
    for d in chosen:
        longest = max(longest, sentences[documents[d + 1]] - sentences[documents[d]])
    own = np.zeros((longest, dim), dtype=np.float32)
    words = np.zeros(longest, dtype=np.int64)
    ends = np.zeros((longest + 1, dim), dtype=np.float32)
    for d in chosen:
        n = 0
        for s in range(documents[d], documents[d + 1]):
            low, high = sentences[s], sentences[s + 1]
            _add_up(tokens, low, high, says, ends)
            for t in range(low, high):
                word = tokens[t]
                if word < 0 or not wanted[word]:
                    continue
                if last[word] != d:
                    last[word], place[word], words[n] = d, n, word
                    own[n, :] = 0.0
                    n += 1
                row = place[word]
                for reach in range(1, window + 1):
                    a, b = max(low, t - reach) - low, min(high, t + reach + 1) - low
                    for i in range(dim):
                        own[row, i] += ends[b, i] - ends[a, i] - says[word, i]
        _normalise(own, words, n, sums, counts)


@kernel()
def _add_up(tokens: Any, low: int, high: int, says: Any, ends: Any) -> None:
    """What the first k tokens of a sentence say, in row k of `ends`."""
    ends[0, :] = 0.0
    for k in range(high - low):
        token = tokens[low + k]
        ends[k + 1, :] = ends[k, :]
        if token >= 0:
            for i in range(ends.shape[1]):
                ends[k + 1, i] += says[token, i]


@kernel()
def _normalise(own: Any, words: Any, n: int, sums: Any, counts: Any) -> None:
    """Add the first n rows of `own`, at length 1, to those of their words."""
    for row in range(n):
        word, length = words[row], np.float32(0.0)
        for i in range(own.shape[1]):
            length += own[row, i] * own[row, i]
        length = np.sqrt(length)
        if length > _LEAST:
            for i in range(own.shape[1]):
                sums[word, i] += own[row, i] / length
            counts[word] += 1.0
