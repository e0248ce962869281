"""A node's mirror of the server's vocabulary: word → row id, and the running counts."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from embedding.exchange.protocol import VocabularyDelta
from embedding.records import IntArray, TokenBlock


class VocabularySource(Protocol):
    """What the lexicon asks the server for."""

    def admit(self, words: list[str], counts: IntArray) -> IntArray:
        """Ids (int64, -1: not admitted yet) of `words`."""
        ...

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        """Words admitted after version `since`."""
        ...


class Lexicon:
    """Word → id as last heard from the server; ids index `counts` (float64, decayed by the server).

    Counts between two refreshes grow by what this node reads itself, so that noise and subsampling
    follow its own stream at once and everybody's within `refresh`.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._version = 0
        self.counts = np.zeros(1024, dtype=np.float64)

    def __len__(self) -> int:
        return len(self._ids)

    def refresh(self, server: VocabularySource, *, whole: bool = False) -> None:
        """Fetch what is new; `whole` fetches every word with its present count."""
        delta = server.vocabulary(0 if whole else self._version)
        if whole:
            self._ids = {}
            self.counts[:] = 0.0
        for word, row in zip(delta.words, delta.ids.tolist(), strict=True):
            self._ids[word] = row
        if len(delta.ids):
            self._reserve(int(delta.ids.max()) + 1)
            self.counts[delta.ids] = delta.counts
        if len(delta.evicted):
            gone = set(delta.evicted.tolist())
            self._ids = {word: row for word, row in self._ids.items() if row not in gone}
            self.counts[delta.evicted[delta.evicted < len(self.counts)]] = 0.0
        self._version = delta.version

    def encode(self, block: TokenBlock, server: VocabularySource) -> IntArray:
        """Row id of every token: int64 [n_tokens], -1 for words that are not admitted yet.

        Words the node does not know are offered to the server with their counts in this block.
        """
        occurrences = np.bincount(block.codes, minlength=len(block.words)).astype(np.int64)
        table = np.fromiter(
            (self._ids.get(word, -1) for word in block.words),
            dtype=np.int64,
            count=len(block.words),
        )
        unknown = np.flatnonzero(table < 0)
        if len(unknown):
            words = [block.words[i] for i in unknown.tolist()]
            admitted = np.asarray(server.admit(words, occurrences[unknown]), dtype=np.int64)
            table[unknown] = admitted
            for word, row in zip(words, admitted.tolist(), strict=True):
                if row >= 0:
                    self._ids[word] = row
        known = table >= 0
        if known.any():
            self._reserve(int(table.max()) + 1)
            np.add.at(self.counts, table[known], occurrences[known])
        if not len(block.codes):
            return np.empty(0, dtype=np.int64)
        ids: IntArray = table[block.codes]
        return ids

    def _reserve(self, size: int) -> None:
        if size > len(self.counts):
            grown = np.zeros(max(size, 2 * len(self.counts)), dtype=np.float64)
            grown[: len(self.counts)] = self.counts
            self.counts = grown
