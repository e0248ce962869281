"""How much a document may teach, judged by the crawling side, which knows words but no model.

Ape-X (Horgan et al. 2018) has the side that gathers experience set its first priorities, so that
nothing has to wait for the learner to be ranked. Here a document's priority is its mean surprise
under the running word frequencies, in units of the usual surprise: 1 for a document like others.
"""

from __future__ import annotations

import numpy as np

from embedding.records import CodeArray, FloatArray, IntArray, TokenBlock
from embedding.text.generations import Generations

_MEMORY = 0.9  # of the usual surprise, a block


def mean_surprise(
    codes: CodeArray, ends: CodeArray, counts: IntArray, total: int, words: int
) -> FloatArray:
    """float32 [d]: mean of -log p(word), in nats, over the tokens of each document; empty ones 0.

    codes   int32 [n], words of the tokens as places in `counts`
    ends    int32 [d + 1], token offsets of the documents
    counts  int64 [w], how often each word was met before; total, words: tokens and distinct
            words met before
    p is smoothed by adding one to each count (Laplace), with one more word for all unseen ones.
    """
    nats = np.log(total + words + 1.0) - np.log1p(counts)
    sums = np.concatenate([[0.0], np.cumsum(nats[codes])])
    lengths = np.diff(ends)
    means: FloatArray = ((sums[ends[1:]] - sums[ends[:-1]]) / np.maximum(lengths, 1)).astype(
        np.float32
    )
    return means


def of_sentences(priority: FloatArray, documents: CodeArray) -> FloatArray:
    """float32 [m]: sentences inherit the priority of their document.

    priority float32 [d]; documents int32 [d + 1], sentence offsets of documents
    """
    return np.repeat(priority, np.diff(documents))


class Surprise:
    """Running word frequencies of one crawling process, in bounded memory.

    `capacity` words are remembered; one that was not met for long counts as unseen again.
    """

    def __init__(self, capacity: int) -> None:
        self._counts: Generations[str, int] = Generations(capacity)
        self._tokens = 0
        self._words = 0
        self._usual = 0.0

    def priorities(self, block: TokenBlock) -> FloatArray:
        """float32 [n_documents], 1 for the usual; the block's words are counted afterwards."""
        counts = np.fromiter(
            (self._counts.get(word) or 0 for word in block.words), np.int64, len(block.words)
        )
        ends = block.document_tokens()
        nats = mean_surprise(block.codes, ends, counts, self._tokens, self._words)
        self._count(block, counts)
        lengths = np.diff(ends)
        mean = float(np.average(nats, weights=lengths)) if lengths.any() else 0.0
        if not mean:  # nothing was read, or nothing before it: all are alike
            return np.ones(len(nats), np.float32)
        self._usual = _MEMORY * self._usual + (1 - _MEMORY) * mean if self._usual else mean
        return np.where(lengths > 0, nats / self._usual, 1.0).astype(np.float32)

    def _count(self, block: TokenBlock, before: IntArray) -> None:
        added = np.bincount(block.codes, minlength=len(block.words))
        for word, count in zip(block.words, (before + added).tolist(), strict=True):
            self._counts.put(word, count)
        self._tokens += block.n_tokens
        self._words += int((before == 0).sum())
