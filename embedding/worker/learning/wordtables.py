"""The words of a node: their rows, how frequent they are, and which are drawn as noise."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embedding.exchange.protocol import Welcome
from embedding.exchange.transport import Words
from embedding.kernel.records import FloatArray, IntArray, TokenBlock
from embedding.models.config import ModelConfig
from embedding.models.jit import kernel
from embedding.models.sampling import NoiseTable
from embedding.models.subwords import GramIndex
from embedding.worker.learning.combining import Usual
from embedding.worker.learning.planning import BlockPlan, CodedText, local_rows, plan
from embedding.worker.words.lexicon import NodeLexicon


class WordTables:
    """Keeps the lexicon, its n-grams and its noise distribution in step with the server.

    every    blocks between two looks at the server's vocabulary
    grams    the n-grams of its words, each hashed once; None for a model without subwords
    reading  held while text becomes rows: the lexicon does not change meanwhile
    noise_table  what noise is drawn from, and the row ids of its places; None: nothing was counted
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
        self.grams = GramIndex(model.gram_rows) if model.gram_rows else None
        self._server = server
        self._model = model
        self._every = every
        self.noise_table: tuple[NoiseTable, IntArray] | None = None
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
            for block, table in zip(blocks, tables, strict=True):
                self.grams.note(table, block.words)
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
        """Which rows a block needs, those of n-grams behind those of words."""
        planned = plan(parts, noise, self.lexicon, self.keep)
        if self.grams is None:
            return planned
        flat, offsets = self.grams.of(planned.words, self.lexicon.names)
        rows, buckets = local_rows(flat, self.grams.buckets, len(planned.words))
        block = replace(planned.block, subwords=rows, subword_offsets=offsets, subword_ids=buckets)
        return replace(planned, grams=buckets, block=block)

    def keep(self, words: IntArray) -> FloatArray:
        """float32 [n]: probability to keep each of `words` (ids) in training."""
        return self.lexicon.keep(words, self._model.sample)

    def noise(self, parts: Sequence[CodedText], seed: int) -> IntArray:
        """Noise words for a block of these parts, int64 ids with repetition; none for none, and
        while nothing was counted.

        About as many tokens are trained on as `keep` leaves: what their windows do not reach is not
        drawn. The rows of its own words a block has anyway: `noise_own` times as many words are
        drawn, and of those that it does not hold only as many as `noise_share` says, each so many
        times. Each word is expected as often as without.
        """
        if parts:
            self._follow_lexicon()
        if not parts or self.noise_table is None:
            return np.empty(0, dtype=np.int64)
        table, ids = self.noise_table
        tokens, stays = sum(len(part.codes) for part in parts), 0.0
        own = np.zeros(len(ids), dtype=np.bool_)
        for part in parts:
            known = part.table >= 0
            own[self.lexicon.places(part.table[known])] = True
            chances = np.zeros(len(part.table), dtype=np.float32)
            chances[known] = self.keep(part.table[known])
            stays += float(chances[part.codes].sum())
        model = self._model
        wanted = max(model.negative, round(tokens * model.noise_share)) * model.noise_own
        reached = model.span + math.ceil(stays) * model.move
        drawn = table.draw(min(wanted, reached), seed)
        if model.noise_own > 1:
            _repeat(drawn, own, model.noise_own, np.empty(len(drawn), dtype=np.int32))
        return ids[drawn]

    def some_noise(self, n: int, seed: int) -> IntArray:
        """n noise words, int64 ids; none while nothing was counted."""
        self._follow_lexicon()
        if self.noise_table is None:
            return np.empty(0, dtype=np.int64)
        table, ids = self.noise_table
        return ids[table.draw(n, seed)]

    def _follow_lexicon(self) -> None:
        """Build the table again where the lexicon has new words, or has heard everybody's counts.

        A word that is no noise word is drawn to its neighbours and never away from other words: it
        has to be one as soon as it is learnt.
        """
        ids, counts = self.lexicon.ids, self.lexicon.counts
        if self.noise_table is None or self.noise_table[1] is not ids:
            built = NoiseTable.build(counts, self._model.noise_exponent) if counts.any() else None
            self.noise_table = None if built is None else (built, ids)

    def usual(self, planned: BlockPlan) -> Usual | None:
        """How frequent the words of a tick are in everybody's text."""
        counts, places = self.lexicon.counts, self.lexicon.places(planned.contexts)
        table = None if self.noise_table is None else self.noise_table[0]
        return Usual.of(counts, places, self._model.noise_exponent, table)

    def _refresh(self) -> None:
        """Look at the server's vocabulary and counts now and then.

        Every so many blocks, and sooner while the counts grow quickly.
        """
        grown = self.tokens > 1.25 * self._counted
        due = self._blocks >= self._every
        if self.noise_table is None or due or grown or self._stale:
            whole, self._stale = self._stale, False
            self.lexicon.refresh(self._server, whole=whole)
            if self.grams is not None and whole:
                self.grams.clear()  # ids may stand for other words now
            elif self.grams is not None:
                self.grams.keep(self.lexicon.ids)
            self._counted = self.tokens
            self._blocks = 0


@kernel()
def _repeat(drawn: Any, own: Any, times: int, away: Any) -> None:
    """Of the rows that are not `own` keep one of `times`, the first, each used so many times."""
    count = 0
    for at in range(len(drawn)):
        if not own[drawn[at]]:
            away[count] = at
            count += 1
    few = (count + times - 1) // times
    for at in range(few, count):
        drawn[away[at]] = drawn[away[at % few]]
