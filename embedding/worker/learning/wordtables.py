"""The words of a node: their rows, how frequent they are, and which are drawn as noise."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from embedding.exchange.protocol import Welcome
from embedding.exchange.transport import Words
from embedding.kernel.records import FloatArray, IntArray, TokenBlock
from embedding.models.base import LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.sampling import NoiseTable
from embedding.models.subwords import GramIndex
from embedding.worker.learning.combining import Usual
from embedding.worker.learning.planning import BlockPlan, CodedText, local_rows, plan
from embedding.worker.words.lexicon import NodeLexicon, NoiseWords
from embedding.worker.words.rarewords import RowCounts


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


class WordTables:
    """Keeps the lexicon, its n-grams and its noise distribution in step with the server.

    every    blocks between two looks at the server's vocabulary
    grams    None for a model without subwords
    reading  held while text becomes rows: the lexicon does not change meanwhile
    """

    def __init__(
        self,
        server: Words,
        lexicon: NodeLexicon,
        model: ModelConfig,
        *,
        every: int,
        welcome: Welcome,
    ) -> None:
        self.lexicon = lexicon
        self.reading = threading.RLock()
        self.grams = WordGrams(model.gram_rows, lexicon) if model.gram_rows else None
        self._server = server
        self._model = model
        self._every = every
        self._noise = NoiseWords(model)
        self._min_count = welcome.min_count
        # What an earlier process heard is forgotten; the server has counted it.
        self._offers_all = welcome.sequence > 0
        self._readers = 1
        self._blocks = 0
        self._counted = 0.0
        self._stale = False

    def code(self, blocks: Sequence[TokenBlock], active: int) -> list[CodedText]:
        """The blocks in row ids; words that the server admits now are among them.

        active  nodes that read at the moment
        """
        # One that is away for a moment has heard its part, too.
        self._readers = max(self._readers, active)
        least = 1.0 if self._offers_all else self._min_count / self._readers
        self._refresh()
        tables = self.lexicon.encode(blocks, self._server, least=least)
        if self.grams is not None:
            self.grams.read(blocks, tables)
        self._blocks += 1
        return [
            CodedText(table, block.codes, block.sentences)
            for table, block in zip(tables, blocks, strict=True)
        ]

    def refresh(self) -> None:
        """Hear of all words that have a row by now."""
        with self.reading:
            self.lexicon.refresh(self._server)

    def forget(self) -> None:
        """Read the whole vocabulary again before the next block."""
        self._stale = True

    @property
    def tokens(self) -> float:
        return float(self.lexicon.counts.sum())

    def known(self, part: CodedText) -> CodedText:
        """The part without the rows of words that were evicted."""
        return CodedText(self.lexicon.known(part.table), part.codes, part.sentences)

    def plan(self, parts: Sequence[CodedText], noise: IntArray) -> BlockPlan:
        planned = plan(parts, noise, self.lexicon, self.keep)
        return planned if self.grams is None else self.grams.into(planned)

    def keep(self, words: IntArray) -> FloatArray:
        """float32 [n]: probability to keep each of `words` (ids) in training."""
        return self.lexicon.keep(words, self._model.sample)

    def noise(self, parts: Sequence[CodedText], seed: int) -> IntArray:
        """Noise words for a block of these parts, int64 ids with repetition; none for none."""
        if not parts:
            return np.empty(0, dtype=np.int64)
        tokens = sum(len(part.codes) for part in parts)
        kept = sum(float(self._kept(part.table)[part.codes].sum()) for part in parts)
        read = [part.table for part in parts]
        return self._noise.draw(tokens, seed, self.lexicon, read, math.ceil(kept))

    def _kept(self, table: IntArray) -> FloatArray:
        """float32 [w]: probability to train on each of these words (ids, -1: none)."""
        found = np.zeros(len(table), dtype=np.float32)
        found[table >= 0] = self.keep(table[table >= 0])
        return found

    @property
    def noise_table(self) -> tuple[NoiseTable, IntArray] | None:
        """What noise is drawn from, and the row ids of its places; None: nothing was counted."""
        return None if self._noise.table is None else (self._noise.table, self._noise.ids)

    def some_noise(self, n: int, seed: int) -> IntArray:
        return self._noise.some(n, seed, self.lexicon)

    def rows(self, planned: BlockPlan) -> RowCounts:
        counts = self.lexicon.counts
        return RowCounts(planned.words, counts[self.lexicon.places(planned.words)], counts)

    def usual(self, planned: BlockPlan) -> Usual | None:
        """How frequent the words of a tick are in everybody's text."""
        counts, places = self.lexicon.counts, self.lexicon.places(planned.contexts)
        return Usual.of(counts, places, self._model.noise_exponent, self._noise.table)

    def _refresh(self) -> None:
        """Look at the server's vocabulary and counts now and then.

        Every so many blocks, and sooner while the counts grow quickly.
        """
        grown = self.tokens > 1.25 * self._counted
        due = self._blocks >= self._every
        if self._noise.table is None or due or grown or self._stale:
            whole, self._stale = self._stale, False
            self.lexicon.refresh(self._server, whole=whole)
            if self.grams is not None:
                self.grams.refreshed(whole=whole)
            self._counted = self.tokens
            self._blocks = 0
