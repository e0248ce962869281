"""Random choices: subsampling, windows and noise words, all from one seed.

Subsampling keeps a word of frequency f with probability sqrt(t/f) + t/f (word2vec.c).
Noise words are drawn in proportion to count^0.75 (Mikolov et al. 2013) with Walker's alias
method: two array reads a draw, O(n) to rebuild when the running counts have moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.kernel.errors import InputError
from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.models.jit import bare, kernel

_CountArray = IntArray | npt.NDArray[np.float64] | FloatArray


@bare
def next_state(state: int) -> Any:
    """One step of a 64-bit linear congruential generator (Knuth's MMIX); use the high bits."""
    return np.uint64(state) * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@bare
def below(state: int, n: int) -> Any:
    """An integer from 0 to n-1 from the high 32 bits of `state`."""
    return np.int64(((np.uint64(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@bare
def seeded(seed: int) -> Any:
    """A well mixed first state (the finaliser of SplitMix64)."""
    z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel()
def subsample(tokens: Any, sentences: Any, keep: Any, seed: int, words: Any, ends: Any) -> int:
    """Copy the tokens to train on to `words` and their sentence offsets to `ends`.

    Unknown words (-1) and words dropped by chance leave no gap: windows reach over them.
    """
    state = seeded(seed)
    count = 0
    ends[0] = 0
    for s in range(len(sentences) - 1):
        for at in range(sentences[s], sentences[s + 1]):
            # Without a branch on what chance decides, which no processor foresees.
            word = tokens[at]
            chance = keep[max(word, 0)] if len(keep) > 0 else np.float32(1.0)
            state = next_state(state) if word >= 0 and chance < 1.0 else state
            stays = np.float32(state >> np.uint64(40)) < chance * np.float32(16777216.0)
            words[count] = word
            count += 1 if stays and word >= 0 else 0
        ends[s + 1] = count
    return count


def kept_tokens(
    tokens: CodeArray, sentences: CodeArray, keep: FloatArray, seed: int
) -> tuple[CodeArray, CodeArray]:
    """Tokens after subsampling (int32 [<= n]) and their sentence offsets (int32 [m + 1])."""
    words = np.empty(len(tokens), np.int32)
    ends = np.empty(len(sentences), np.int32)
    count = subsample(tokens, sentences, keep, np.uint64(seed), words, ends)
    return words[:count], ends


def keep_probabilities(counts: _CountArray, total: float, sample: float) -> FloatArray:
    """float32 [n]: probability to keep each word, given running counts.

    `total` is the number of tokens the counts were taken over; `sample` 0 keeps everything.
    """
    if sample <= 0 or total <= 0:
        return np.ones(len(counts), dtype=np.float32)
    share = np.maximum(np.asarray(counts, dtype=np.float64), 1e-12) / (sample * total)
    return np.minimum(np.sqrt(1.0 / share) + 1.0 / share, 1.0).astype(np.float32)


@kernel(fastmath=False)
def _alias(scaled: Any, accept: Any, other: Any) -> None:
    """Vose's construction; `scaled` has mean 1 and is used up."""
    n = len(scaled)
    stack = np.empty(n, np.int32)
    small, large = 0, n
    for i in range(n):
        if scaled[i] < 1.0:
            stack[small] = i
            small += 1
        else:
            large -= 1
            stack[large] = i
    while small > 0 and large < n:
        small -= 1
        less, more = stack[small], stack[large]
        accept[less], other[less] = scaled[less], more
        scaled[more] -= 1.0 - scaled[less]
        if scaled[more] < 1.0:
            large += 1
            stack[small] = more
            small += 1
    for i in range(large, n):
        accept[stack[i]], other[stack[i]] = 1.0, stack[i]
    for i in range(small):
        accept[stack[i]], other[stack[i]] = 1.0, stack[i]


@kernel()
def _draw(accept: Any, other: Any, seed: int, out: Any) -> None:
    state = seeded(seed)
    for i in range(len(out)):
        state = next_state(state)
        row = below(state, len(accept))
        state = next_state(state)
        chance = np.float32(state >> np.uint64(40)) * np.float32(1.0 / 16777216.0)
        out[i] = row if chance < accept[row] else other[row]


class NoiseTable:
    """Draws rows in proportion to count ** exponent; `build` again when counts have moved.

    accept  float32 [n], chance that a place's own row is drawn; other int32 [n], the row that is
            drawn else
    weight  the sum of count ** exponent
    Memory: 8 bytes a row. Rows with count 0 are never drawn.
    """

    def __init__(self, accept: FloatArray, other: CodeArray, weight: float) -> None:
        self.accept = accept
        self.other = other
        self.weight = weight

    def __len__(self) -> int:
        return len(self.accept)

    @classmethod
    def build(cls, counts: _CountArray, exponent: float = 0.75) -> NoiseTable:
        """A table over rows 0..n-1; raises InputError when no count is positive."""
        values = np.asarray(counts, dtype=np.float64)
        weights = np.zeros(len(values))
        seen = values > 0
        weights[seen] = values[seen] ** exponent
        total = float(weights.sum())
        if not np.isfinite(total) or total <= 0:
            raise InputError(
                f"noise distribution over {len(values)} words: at least one positive, finite "
                "count is needed to draw noise words from."
            )
        accept = np.empty(len(values), np.float32)
        other = np.empty(len(values), np.int32)
        _alias(weights * (len(values) / total), accept, other)
        return cls(accept, other, total)

    def draw(self, n: int, seed: int) -> CodeArray:
        """int32 [n] rows; the same seed gives the same rows."""
        out = np.empty(n, np.int32)
        _draw(self.accept, self.other, np.uint64(seed), out)
        return out
