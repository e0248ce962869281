"""What stands around each word, as a vector that no training touches.

Each word has an index vector r of ±1, drawn from a hash of the word itself (random indexing,
Sahlgren 2005). Added up over what stood around a word c, less what all words have in common, they
say what c goes with (second-order co-occurrence, Schütze 1998):

    s_c = Σ_o w_o r_o,    N_c = Σ_o w_o,    m = Σ_c s_c / Σ_c N_c
    x_c = unit(s_c / N_c − m) · √(N_c / (N_c + FEW))

with weights w_o as sums of usage have them (`usage.py`) but for the slope. Two trainings on the
same texts have the same x, whatever numbers they drew. It is worth less than rows that were
trained, and so it stands beside them, not in their place.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from embedding.models.base import LocalBlock
from embedding.models.jit import kernel
from embedding.records import CodeArray, FloatArray, IntArray, TokenBlock

FEW = 100.0
"""Weight of contexts at which half of the squared length of x is trusted."""
_FIRST = 1024


class SecondOrder:
    """Running sums of index vectors around the words of a node's fresh text.

    dim     columns of a vector
    window  words on each side
    """

    def __init__(self, dim: int, window: int) -> None:
        self.dim, self.window = dim, window
        self._places = np.full(_FIRST, -1, dtype=np.int32)
        self._held = 0
        self._signs = np.zeros((_FIRST, dim), dtype=np.int8)
        self._sums = np.zeros((_FIRST, dim), dtype=np.float32)
        self._weights = np.zeros(_FIRST, dtype=np.float32)

    def add(self, blocks: Sequence[TokenBlock], fresh: LocalBlock, words: IntArray) -> None:
        """The text of a tick.

        fresh  the tokens of `blocks` alone, rows of `words`; words: int64 [n], their row ids
        """
        n = len(fresh.tokens)
        if not n:
            return
        there = np.unique(fresh.tokens)
        there = there[there >= 0]
        new = there[self._at(words[there]) < 0]
        if len(new):
            self._place(words[new], _names(blocks, fresh.tokens, new))
        add_around(
            fresh.tokens,
            fresh.sentences[: int(np.searchsorted(fresh.sentences, n)) + 1],
            fresh.keep,
            self._at(words),
            self.window,
            self._signs,
            self._sums,
            self._weights,
        )

    def begin(self, ids: IntArray) -> FloatArray:
        """x of these words, float32 [n, dim]; zeros for those never read. Others are forgotten."""
        places = self._at(ids)
        there = np.flatnonzero(places >= 0)
        kept = places[there]
        self._signs, self._sums = self._signs[kept], self._sums[kept]
        self._weights = self._weights[kept]
        self._held = len(there)
        self._places[:] = -1
        self._places[ids[there]] = np.arange(len(there), dtype=np.int32)
        found = np.zeros((len(ids), self.dim), dtype=np.float32)
        total = float(self._weights.sum(dtype=np.float64))
        if total > 0:
            weights = np.maximum(self._weights, np.float32(1e-9))[:, None]
            common = self._sums.sum(axis=0, dtype=np.float64) / total
            apart = (self._sums / weights - common).astype(np.float32)
            lengths = np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-9)
            trusted = np.sqrt(self._weights / (self._weights + FEW))[:, None]
            found[there] = apart / lengths * trusted
        return found

    def _at(self, ids: IntArray) -> IntArray:
        """int64 [n]: the place of each id, -1 for one that has none."""
        found = np.full(len(ids), -1, dtype=np.int64)
        known = ids < len(self._places)
        found[known] = self._places[ids[known]]
        return found

    def _place(self, ids: IntArray, names: Iterator[str]) -> None:
        """Give new words a place, and the vector of their name."""
        most = int(ids.max()) + 1
        if most > len(self._places):
            self._places = _longer(self._places, most, -1)
        first, self._held = self._held, self._held + len(ids)
        if self._held > len(self._weights):
            self._signs = _longer(self._signs, self._held)
            self._sums = _longer(self._sums, self._held)
            self._weights = _longer(self._weights, self._held)
        self._places[ids] = np.arange(first, self._held, dtype=np.int32)
        hashes = np.fromiter((_hash(name) for name in names), np.uint64, len(ids))
        draw_signs(hashes, self._signs[first : self._held])
        self._sums[first : self._held] = 0.0
        self._weights[first : self._held] = 0.0


def _names(blocks: Sequence[TokenBlock], tokens: CodeArray, rows: CodeArray) -> Iterator[str]:
    """The words of some rows, by the first token that is of each."""
    found, firsts = np.unique(tokens, return_index=True)
    at = firsts[np.searchsorted(found, rows)]
    ends = np.cumsum([len(block.codes) for block in blocks])
    for one in at.tolist():
        block = int(np.searchsorted(ends, one, side="right"))
        start = int(ends[block]) - len(blocks[block].codes)
        yield str(blocks[block].words[int(blocks[block].codes[one - start])])


def _hash(name: str) -> int:
    """64 bits; which, is of no matter as long as they are the same everywhere."""
    content = name.encode()
    return zlib.crc32(content) << 32 | zlib.adler32(content)


def _longer(values: Any, n: int, filling: int = 0) -> Any:
    """The same with `filling` behind it, `n` rows at least."""
    grown = np.full((max(n, 2 * len(values)), *values.shape[1:]), filling, dtype=values.dtype)
    grown[: len(values)] = values
    return grown


@kernel()
def draw_signs(hashes: Any, signs: Any) -> None:
    """Fill each row of `signs` with ±1 from a hash uint64 (SplitMix64, Steele et al. 2014)."""
    for i in range(len(hashes)):
        state = hashes[i]
        bits = np.uint64(0)
        for d in range(signs.shape[1]):
            if d % 64 == 0:
                state += np.uint64(0x9E3779B97F4A7C15)
                bits = state
                bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                bits = bits ^ (bits >> np.uint64(31))
            signs[i, d] = 1 if bits & np.uint64(1) else -1
            bits >>= np.uint64(1)


@kernel()
def add_around(
    tokens: Any,
    sentences: Any,
    keep: Any,
    places: Any,
    window: int,
    signs: Any,
    sums: Any,
    weights: Any,
) -> None:
    """Add the signs of what stands around each token to the sums of its word; -1: no word."""
    dim = signs.shape[1]
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        for i in range(first, last):
            if tokens[i] < 0:
                continue
            own = places[tokens[i]]
            for j in range(max(first, i - window), min(last, i + window + 1)):
                if j == i or tokens[j] < 0:
                    continue
                other = places[tokens[j]]
                weight = np.float32((window + 1 - abs(i - j)) / window)
                if len(keep):
                    weight *= keep[tokens[j]]
                for d in range(dim):
                    sums[own, d] += weight * signs[other, d]
                weights[own] += weight
