"""fastText on a node: which n-gram rows a block needs, and where they lie in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from embedding.kernel.records import IntArray, TokenBlock
from embedding.models.base import LocalBlock
from embedding.models.gramindex import GramIndex
from embedding.worker.learning.planning import BlockPlan, local_rows
from embedding.worker.words.lexicon import NodeLexicon


class WordGrams:
    """The n-grams of the words of one lexicon, hashed once a word.

    Held are at most a quarter more words than the lexicon has, at some 400 bytes each.
    """

    def __init__(self, buckets: int, lexicon: NodeLexicon) -> None:
        self.index = GramIndex(buckets)
        self._lexicon = lexicon

    def read(self, blocks: Sequence[TokenBlock], tables: Sequence[IntArray]) -> None:
        """Hash the words of blocks whose row ids are `tables` (see `NodeLexicon.encode`)."""
        for block, table in zip(blocks, tables, strict=True):
            self.index.note(table, block.words)

    def refreshed(self, *, whole: bool) -> None:
        """The lexicon was refreshed; `whole`: its ids may stand for other words now."""
        if whole:
            self.index.clear()
        else:
            self.index.keep(self._lexicon.ids)

    def into(self, planned: BlockPlan) -> BlockPlan:
        """The plan with the n-gram rows behind the words' rows."""
        flat, offsets = self.index.of(planned.words, self._lexicon.names)
        rows, buckets = local_rows(flat, self.index.buckets, len(planned.words))
        block = replace(planned.block, subwords=rows, subword_offsets=offsets, subword_ids=buckets)
        return replace(planned, grams=buckets, block=block)

    def whole(self, block: LocalBlock, words: IntArray, rows: int) -> LocalBlock:
        """A block in the rows of the shared tables: bucket b lies in row `rows` + b.

        words  int64, distinct ids of the block's words; rows  rows for words in those tables
        """
        words = np.sort(words)
        flat, ends = self.index.of(words, self._lexicon.names)
        offsets = np.zeros(rows + 1, dtype=np.int32)
        offsets[words + 1] = np.diff(ends)
        return replace(
            block,
            subwords=flat + np.int32(rows),
            subword_offsets=np.cumsum(offsets, dtype=np.int32),
            subword_ids=None if block.ids is None else np.arange(self.index.buckets),
        )
