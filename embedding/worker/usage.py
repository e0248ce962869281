"""How each word was used in a window, as sums that windows and sources can be compared by.

Temporal referencing (Dubossarsky et al. 2019) gives a word a row for each window and source and
trains it against contexts that all share. Here such a row is the mean of what a word's contexts
say, taken before the block is learnt, in the tables as they are then (docs/trends.md):

    g = Σ_c w_c σ(−u_c·v) u_c,    N = Σ_c w_c

u_c are output rows of the contexts c, v is the word's row, w_c falls with the distance and with the
frequency of c as training draws it. σ(−u_c·v) is the slope of the skip-gram objective at the row: a
context that the row expects has little to say. What is trained does not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from embedding.exchange.compression.halves import narrow
from embedding.exchange.payload import BlockCounts, Usage
from embedding.models.base import LocalBlock
from embedding.models.config import Model, ModelConfig
from embedding.models.jit import kernel
from embedding.records import CodeArray, FloatArray, IntArray, TokenBlock, WindowUnit
from embedding.worker.counting import window_starts

_MOST = 60_000.0
"""Within float16."""


@kernel()
def add_usage(
    owners: Any,
    tokens: Any,
    sentences: Any,
    keep: Any,
    vectors: Any,
    contexts: Any,
    window: int,
    slopes: Any,
    pairs: Any,
) -> None:
    """Add g and N of each token to the row `owners` of `slopes` and `pairs`; -1: to none."""
    dim = contexts.shape[1]
    for s in range(len(sentences) - 1):
        first, last = sentences[s], sentences[s + 1]
        for i in range(first, last):
            owner, word = owners[i], tokens[i]
            if owner < 0 or word < 0:
                continue
            for j in range(max(first, i - window), min(last, i + window + 1)):
                other = tokens[j]
                if j == i or other < 0:
                    continue
                weight = np.float32((window + 1 - abs(i - j)) / window)
                if len(keep):
                    weight *= keep[other]
                dot = np.float32(0.0)
                for d in range(dim):
                    dot += contexts[other, d] * vectors[word, d]
                slope = weight / (np.float32(1.0) + np.exp(dot))
                for d in range(dim):
                    slopes[owner, d] += slope * contexts[other, d]
                pairs[owner] += weight


class UsageReader:
    """Reads how words are used in the fresh text of a tick."""

    def __init__(self, window: int, unit: WindowUnit) -> None:
        self.window = window
        self.unit = unit

    @classmethod
    def of(cls, model: ModelConfig, unit: WindowUnit, wanted: bool) -> UsageReader | None:
        """None when the server does not want it or rows mean something else than in skip-gram."""
        return cls(model.window, unit) if wanted and model.model is Model.SGNS else None

    def read(
        self,
        blocks: Sequence[TokenBlock],
        counts: BlockCounts,
        planned: LocalBlock,
        vectors: FloatArray,
        contexts: FloatArray,
    ) -> Usage | None:
        """What the blocks of a tick say of their words.

        counts             as `count_words` gave them for these blocks
        planned            its text begins with these blocks
        vectors, contexts  float32, the tick's rows before training, only read
        """
        owners = self._owners(blocks, counts, planned)
        n = len(owners)
        if not n:
            return None
        slopes = np.zeros((len(counts.ids), contexts.shape[1]), dtype=np.float32)
        pairs = np.zeros(len(counts.ids), dtype=np.float32)
        sentences = planned.sentences[: int(np.searchsorted(planned.sentences, n)) + 1]
        add_usage(
            owners,
            planned.tokens[:n],
            sentences,
            planned.keep,
            vectors,
            contexts,
            self.window,
            slopes,
            pairs,
        )
        at = np.flatnonzero((pairs > 0) & (counts.ids >= 0))
        halves = narrow(np.clip(slopes[at], -_MOST, _MOST))
        return Usage(at.astype(np.int64), halves, pairs[at]) if len(at) else None

    def _owners(
        self, blocks: Sequence[TokenBlock], counts: BlockCounts, planned: LocalBlock
    ) -> CodeArray:
        """int32 [tokens of the blocks]: the row of `counts` that each was counted in, or -1."""
        lengths = [len(block.codes) for block in blocks]
        tokens = planned.tokens[: sum(lengths)]
        owners = np.full(len(tokens), -1, dtype=np.int32)
        firsts = np.cumsum([0, *lengths])
        start = 0
        for (at, chosen), group in zip(self._groups(blocks), counts.groups, strict=True):
            chosen = chosen + firsts[at]
            chosen = chosen[tokens[chosen] >= 0]
            # Without ids of their own, rows are the whole table's: hogwild.
            rows = tokens[chosen]
            ids = rows if planned.ids is None else planned.ids[rows]
            # The counts of a group are in order of the ids.
            places = np.searchsorted(counts.ids[start : group.stop], ids)
            owners[chosen] = (start + places).astype(np.int32)
            start = group.stop
        return owners

    def _groups(self, blocks: Sequence[TokenBlock]) -> Iterator[tuple[int, IntArray]]:
        """Block and places of its tokens, for each group in the order of `count_words`."""
        for at, block in enumerate(blocks):
            starts = window_starts(block, self.unit)
            lengths = np.diff(block.document_tokens())
            windows = np.repeat(starts, lengths)
            for window in np.unique(starts).tolist():
                yield at, np.flatnonzero(windows == window)
