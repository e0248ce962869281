"""First replay priorities, set by the crawling side, which knows words but no model.

Ape-X (Horgan et al. 2018) has the side that gathers experience rank it, so that nothing has to be
learnt once before it is ranked. What a crawling process can know is how often each word was met;
from that follows which tokens will be trained on at all, and how surprising those are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import CodeArray, FloatArray, IntArray, TokenBlock
from embedding.text.generations import Generations

_MEMORY = 0.9  # of the usual figure, a block

Doubles = npt.NDArray[np.float64]


def trained_chance(counts: IntArray, total: int, sample: float, min_count: int) -> Doubles:
    """float64 [w]: chance that a token of each word is trained on.

    counts  int64 [w], how often each word was met; total: tokens met
    A word met less than `min_count` times has no row; of the others word2vec's subsampling keeps a
    token with probability sqrt(t/f) + t/f (t = `sample`, 0 keeps all; f the word's frequency).
    """
    known = counts >= min_count
    if sample <= 0:
        return known.astype(np.float64)
    share = sample * max(total, 1) / np.maximum(counts, 1)
    return np.where(known, np.minimum(np.sqrt(share) + share, 1.0), 0.0)


def gradient_figure(codes: CodeArray, ends: CodeArray, chance: Doubles) -> Doubles:
    """float64 [d]: share of the tokens of each document that will be trained on.

    A token that is dropped gives no gradient, so this foretells the gradient a token.
    codes int32 [n], words as places in `chance` [w]; ends int32 [d + 1], token offsets
    """
    return _sums(chance[codes], ends) / np.maximum(np.diff(ends), 1)


def loss_figure(
    codes: CodeArray, ends: CodeArray, chance: Doubles, counts: IntArray, total: int
) -> Doubles:
    """float64 [d]: mean of -log p(word), in nats, over the tokens that will be trained on.

    p is smoothed by adding one to each count (Laplace); documents that train nothing get 0.
    """
    nats = np.log(total + len(counts) + 1.0) - np.log1p(counts)
    sums, trained = _sums((chance * nats)[codes], ends), _sums(chance[codes], ends)
    return np.where(trained > 0, sums / np.maximum(trained, 1e-12), 0.0)


def _sums(values: Doubles, ends: CodeArray) -> Doubles:
    total = np.concatenate([[0.0], np.cumsum(values)])
    sums: Doubles = total[ends[1:]] - total[ends[:-1]]
    return sums


class InitialPriorities:
    """Running word counts of one crawling process, and its documents' priorities by them.

    measure    what the replay memory ranks by: loss or gradient
    sample     subsampling threshold of the model; min_count: mentions before a word has a row
    capacity   words remembered; one that was not met for long counts as unseen again
    """

    def __init__(
        self,
        measure: Literal["loss", "gradient"],
        *,
        sample: float,
        min_count: int,
        capacity: int = 500_000,
    ) -> None:
        if measure not in ("loss", "gradient"):
            raise ConfigError(
                f"initial priorities: by loss or by gradient, got {measure!r}; uniform replay "
                "needs none."
            )
        self._by_gradient = measure == "gradient"
        self._sample = sample
        self._min_count = min_count
        self._counts: Generations[str, int] = Generations(capacity)
        self._total = 0
        self._usual = 0.0

    def priorities(self, block: TokenBlock) -> FloatArray:
        """float32 [n_documents], 1 for the usual one: what a block's documents may teach.

        The block's own words are counted first, so that a word's first mentions tell of it.
        """
        counts, ends = self._count(block), block.document_tokens()
        chance = trained_chance(counts, self._total, self._sample, self._min_count)
        if self._by_gradient:
            figures = gradient_figure(block.codes, ends, chance)
        else:
            figures = loss_figure(block.codes, ends, chance, counts, self._total)
        lengths = np.diff(ends)
        mean = float(np.average(figures, weights=lengths)) if lengths.any() else 0.0
        if not mean:  # nothing will be trained on: all are alike
            return np.ones(len(figures), np.float32)
        self._usual = _MEMORY * self._usual + (1 - _MEMORY) * mean if self._usual else mean
        return np.where(lengths > 0, figures / self._usual, 1.0).astype(np.float32)

    def _count(self, block: TokenBlock) -> IntArray:
        """Count a block's words; returns how often each was met, int64 [W]."""
        before = np.fromiter(
            (self._counts.get(word) or 0 for word in block.words), np.int64, len(block.words)
        )
        counts: IntArray = before + np.bincount(block.codes, minlength=len(block.words))
        for word, count in zip(block.words, counts.tolist(), strict=True):
            self._counts.put(word, count)
        self._total += block.n_tokens
        return counts
