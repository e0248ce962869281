"""A node's mirror of the server's vocabulary: word → row id, and the running counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from embedding.exchange.protocol import VocabularyDelta
from embedding.models.sampling import NoiseTable, keep_probabilities
from embedding.records import FloatArray, IntArray, TimeArray, TokenBlock


class VocabularySource(Protocol):
    """What the lexicon asks the server for."""

    def admit(self, words: list[str], counts: IntArray) -> IntArray:
        """Ids (int64, -1: not admitted yet) of `words`."""
        ...

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        """Words admitted after version `since`, and the counts of all."""
        ...


class Lexicon:
    """Words with a row, as last heard from the server.

    ids     int64 [v], increasing: ids are given in order
    counts  float64 [v], running counts as the server decays them; between two refreshes they grow
            by what this node reads itself, so that noise and subsampling follow its own stream at
            once and everybody's at the next refresh

    Memory is bounded by the words that have a row: evicted ones are forgotten.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._version = 0
        self._rows = np.empty(0, dtype=np.int64)
        self._counts = np.empty(0, dtype=np.float64)
        self._size = 0

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> IntArray:
        """Row ids, increasing, int64 [v]."""
        return self._rows[: self._size]

    @property
    def counts(self) -> TimeArray:
        """Running counts of `ids`, float64 [v]."""
        return self._counts[: self._size]

    def refresh(self, server: VocabularySource, *, whole: bool = False) -> None:
        """Fetch new words and everybody's counts; `whole` fetches every word again."""
        delta = server.vocabulary(0 if whole else self._version)
        if whole:
            self._ids, self._size = {}, 0
        if len(delta.evicted):
            gone = set(delta.evicted.tolist())
            self._ids = {word: row for word, row in self._ids.items() if row not in gone}
        self._ids.update(zip(delta.words, delta.ids.tolist(), strict=True))
        if len(self._ids) > len(delta.alive):  # evictions too long ago for the server to tell
            alive = set(delta.alive.tolist())
            self._ids = {word: row for word, row in self._ids.items() if row in alive}
        # Every word with a row comes with its count: what is not among them is gone.
        self._rows = np.array(delta.alive, dtype=np.int64)
        self._counts = np.array(delta.alive_counts, dtype=np.float64)
        self._size = len(self._rows)
        self._version = delta.version

    def encode(self, blocks: Sequence[TokenBlock], server: VocabularySource) -> list[IntArray]:
        """Row id of each word of each block: int64 [W], -1 for words that are not admitted yet.

        Words the node does not know are offered to the server with their counts in these blocks.
        """
        get = self._ids.get
        tables = [
            np.fromiter((get(word, -1) for word in block.words), np.int64, count=len(block.words))
            for block in blocks
        ]
        occurrences = [np.bincount(block.codes, minlength=len(block.words)) for block in blocks]
        self._offer(blocks, tables, occurrences, server)
        for table, counts in zip(tables, occurrences, strict=True):
            known = table >= 0
            self._counts[self._places(table[known])] += counts[known]
        return tables

    def known(self, rows: IntArray) -> IntArray:
        """The same ids, -1 for those of evicted words, which a replay memory may still hold."""
        if not self._size:
            return np.full(len(rows), -1, dtype=np.int64)
        places = np.minimum(self._places(rows), self._size - 1)
        return np.where(self.ids[places] == rows, rows, -1)

    def keep(self, words: IntArray, sample: float) -> FloatArray:
        """float32 [n]: probability to keep each of `words` (ids), by running frequency."""
        counts = self.counts
        return keep_probabilities(counts[self._places(words)], float(counts.sum()), sample)

    def noise(self, exponent: float) -> NoiseTable | None:
        """A noise distribution over `ids`; None while nothing was counted."""
        return NoiseTable.build(self.counts, exponent) if self.counts.any() else None

    def _offer(
        self,
        blocks: Sequence[TokenBlock],
        tables: Sequence[IntArray],
        occurrences: Sequence[IntArray],
        server: VocabularySource,
    ) -> None:
        """Ask for rows for the words that have none, once for all blocks."""
        offered: dict[str, int] = {}
        for block, table, counts in zip(blocks, tables, occurrences, strict=True):
            for at in np.flatnonzero(table < 0).tolist():
                word = block.words[at]
                offered[word] = offered.get(word, 0) + int(counts[at])
        if not offered:
            return
        counted = np.fromiter(offered.values(), np.int64, count=len(offered))
        given = np.asarray(server.admit(list(offered), counted), dtype=np.int64)
        fresh = {word: row for word, row in zip(offered, given.tolist(), strict=True) if row >= 0}
        if not fresh:
            return
        self._ids.update(fresh)
        self._insert(np.fromiter(fresh.values(), np.int64, count=len(fresh)))
        for block, table in zip(blocks, tables, strict=True):
            for at in np.flatnonzero(table < 0).tolist():
                table[at] = fresh.get(block.words[at], -1)

    def _insert(self, rows: IntArray) -> None:
        """Make places for ids; others may have been given lower ones than those known here."""
        fresh = np.setdiff1d(rows, self.ids)
        merged = np.concatenate([self.ids, fresh])
        order = np.argsort(merged, kind="stable")
        counts = np.concatenate([self.counts, np.zeros(len(fresh))])
        self._rows, self._counts, self._size = merged[order], counts[order], len(merged)

    def _places(self, rows: IntArray) -> IntArray:
        """Places of known ids in `ids`."""
        found: IntArray = np.searchsorted(self.ids, rows)
        return found
