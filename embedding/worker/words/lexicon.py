"""A node's mirror of the server's vocabulary: word → row id, and the running counts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np

from embedding.exchange.transport import Words
from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray, TimeArray, TokenBlock
from embedding.models.sampling import keep_probabilities
from embedding.worker.words.contributing import ContributorCollector
from embedding.worker.words.evidence import EvidenceKeeper
from embedding.worker.words.lookahead import LookAhead

MAX_UNKNOWN_WORDS = 1_000_000
"""Words without a row whose occurrences a node remembers; beyond it, it begins again."""


class NodeLexicon:
    """Words with a row, as last heard from the server.

    ids     int64 [v], increasing: ids are given in order
    counts  float64 [v], running counts as the server decays them; between two refreshes they grow
            by what this node reads itself, so that noise and subsampling follow its own stream at
            once and everybody's at the next refresh

    Memory is bounded by the words that have a row, and `MAX_UNKNOWN_WORDS` words that have none.

    listener  remembers who used the words without a row; None where nobody asks
    evidence  notes where the words with a row were read; None where nobody asks
    look_ahead  how often words will come again, which counts for an offer; None: nobody knows
    """

    def __init__(
        self,
        *,
        listener: ContributorCollector | None = None,
        evidence: EvidenceKeeper | None = None,
        look_ahead: LookAhead | None = None,
    ) -> None:
        self.evidence = evidence
        self.look_ahead = look_ahead
        self._listener = listener
        self.ids: IntArray = np.empty(0, dtype=np.int64)
        self.counts: TimeArray = np.empty(0, dtype=np.float64)
        self._ids: dict[str, int] = {}
        self._heard: dict[str, int] = {}
        self._version = 0
        self._gapless = True

    def __len__(self) -> int:
        return len(self._ids)

    def refresh(self, server: Words, *, whole: bool = False) -> None:
        """Fetch new words and everybody's counts; `whole` fetches every word again."""
        delta = server.vocabulary(0 if whole else self._version)
        if whole:
            self._ids = {}
        if len(delta.evicted):
            gone = set(delta.evicted.tolist())
            self._ids = {word: row for word, row in self._ids.items() if row not in gone}
        self._ids.update(zip(delta.words, delta.ids.tolist(), strict=True))
        if len(self._ids) > len(delta.alive):  # evictions too long ago for the server to tell
            alive = set(delta.alive.tolist())
            self._ids = {word: row for word, row in self._ids.items() if row in alive}
        # Every word with a row comes with its count: what is not among them is gone.
        self._order(np.array(delta.alive, np.int64), np.array(delta.alive_counts, np.float64))
        self._version = delta.version

    def listen(self, listener: ContributorCollector | None) -> None:
        """From now on this one remembers who used the words without a row."""
        self._listener = listener

    def encode(
        self, blocks: Sequence[TokenBlock], server: Words, *, least: float = 1.0
    ) -> list[IntArray]:
        """Row id of each word of each block: int64 [W], -1 for words that are not admitted yet.

        Words the node does not know are offered to the server with their counts in these blocks.

        least  a word is offered once this node has read it so often: the server's min_count, or
               this node's part of it where several read
        """
        tables = [self.rows(block.words) for block in blocks]
        occurrences = [np.bincount(block.codes, minlength=len(block.words)) for block in blocks]
        self._offer(blocks, tables, occurrences, server, least)
        for table, counts in zip(tables, occurrences, strict=True):
            known = table >= 0
            self.counts[self.places(table[known])] += counts[known]
        if self.evidence is not None:
            self.evidence.read(blocks, tables)
        return tables

    def has(self, words: Sequence[str]) -> list[bool]:
        return [word in self._ids for word in words]

    def rows(self, words: Sequence[str]) -> IntArray:
        """int64 [n]: ids of words, -1 for one without a row."""
        ids = map(self._ids.get, words, repeat(-1))
        return np.fromiter(ids, np.int64, count=len(words))

    def known(self, rows: IntArray) -> IntArray:
        """The same ids, -1 for those of evicted words, which a replay memory may still hold."""
        return np.where(positions(self.ids, rows) >= 0, rows, -1)

    def names(self, rows: IntArray) -> list[str]:
        """The words of ids; "" for one that is not known. Takes time with the whole lexicon."""
        words = dict(zip(self._ids.values(), self._ids, strict=True))
        return [words.get(row, "") for row in rows.tolist()]

    def keep(self, words: IntArray, sample: float) -> FloatArray:
        """float32 [n]: probability to keep each of `words` (ids), by running frequency."""
        if not sample:
            return np.ones(len(words), dtype=np.float32)
        counts = self.counts
        return keep_probabilities(counts[self.places(words)], float(counts.sum()), sample)

    def _offer(
        self,
        blocks: Sequence[TokenBlock],
        tables: Sequence[IntArray],
        occurrences: Sequence[IntArray],
        server: Words,
        least: float,
    ) -> None:
        """Ask for rows for the words that have none, once for all blocks."""
        read: dict[str, int] = {}
        for block, table, counts in zip(blocks, tables, occurrences, strict=True):
            for at in np.flatnonzero(table < 0).tolist():
                word = block.words[at]
                read[word] = read.get(word, 0) + int(counts[at])
            if self._listener is not None:
                self._listener.hear(block, table)
        offered = self._worth(read, least)
        if not offered:
            return
        counted = np.fromiter(
            (read[word] + self._coming(word) for word in offered), np.int64, count=len(offered)
        )
        who = None if self._listener is None else self._listener.contributors(offered)
        given = np.asarray(server.admit(offered, counted, who), dtype=np.int64)
        fresh = {word: row for word, row in zip(offered, given.tolist(), strict=True) if row >= 0}
        if not fresh:
            return
        self._ids.update(fresh)
        for word in fresh:
            del self._heard[word]
        if self._listener is not None:
            self._listener.forget(fresh)
        self._insert(np.fromiter(fresh.values(), np.int64, count=len(fresh)))
        for block, table in zip(blocks, tables, strict=True):
            for at in np.flatnonzero(table < 0).tolist():
                table[at] = fresh.get(block.words[at], -1)

    def _worth(self, read: dict[str, int], least: float) -> list[str]:
        """The words that were read often enough to be offered."""
        heard = self._heard
        for word, count in read.items():
            heard[word] = heard.get(word, 0) + count
        worth = [word for word in read if heard[word] + self._coming(word) >= least]
        if len(heard) > MAX_UNKNOWN_WORDS:
            self._heard = {word: heard[word] for word in read}
        return worth

    def _coming(self, word: str) -> int:
        """Mentions of a word that will be read soon."""
        return 0 if self.look_ahead is None else self.look_ahead.coming(word)

    def _insert(self, rows: IntArray) -> None:
        """Make places for ids; others may have been given lower ones than those known here."""
        fresh = np.sort(rows[positions(self.ids, rows) < 0])
        slots = np.searchsorted(self.ids, fresh)
        self._order(np.insert(self.ids, slots, fresh), np.insert(self.counts, slots, 0.0))

    def _order(self, ids: IntArray, counts: TimeArray) -> None:
        self.ids, self.counts = ids, counts
        self._gapless = not len(ids) or int(ids[-1]) == len(ids) - 1

    def places(self, rows: IntArray) -> IntArray:
        """Places of known ids in `ids`; as long as no word was evicted these are the ids."""
        if self._gapless:
            return rows
        return np.searchsorted(self.ids, rows)
