"""Which word has which row: admission, running counts, eviction.

Ids are given in order and never again; slots (places in the tables) of evicted words are reused.
Versions grow with every change, so that a node asks only for what is new to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.errors import RefusedError
from embedding.exchange.protocol import VocabularyDelta
from embedding.records import IntArray, TimeArray
from embedding.server.counts import Decay

_EVICT_SHARE = 0.05


@dataclass(frozen=True)
class Admission:
    """Words that get a row: ids int64 [n], slots int64 [n], and ids evicted to make room."""

    words: tuple[str, ...]
    ids: IntArray
    slots: IntArray
    evicted: IntArray


class Vocabulary:
    """Words, ids, slots and running counts. Not thread-safe: the server's lock guards it."""

    def __init__(
        self,
        *,
        min_count: int,
        max_words: int,
        max_candidates: int,
        half_life_tokens: float | None,
        version: int = 1,
    ) -> None:
        self.min_count = min_count
        self.max_words = max_words
        self.max_candidates = max_candidates
        self.decay = Decay(half_life_tokens)
        self.version = version
        self.candidates: dict[str, float] = {}
        self.words: list[str] = []
        self._index: dict[str, int] = {}
        self._stored = np.zeros(1024, dtype=np.float64)
        self._last_seen = np.zeros(1024, dtype=np.float64)
        self._slots = np.full(1024, -1, dtype=np.int64)
        self._born = np.zeros(1024, dtype=np.int64)
        self._died = np.zeros(1024, dtype=np.int64)
        self._free: list[int] = []
        self._next_slot = 0

    def __len__(self) -> int:
        return len(self._index)

    @property
    def next_id(self) -> int:
        """The id that the next admitted word gets; every smaller one is known."""
        return len(self.words)

    @property
    def rows(self) -> int:
        """Slots ever used: the tables must hold so many rows."""
        return self._next_slot

    def ids(self, words: Sequence[str]) -> IntArray:
        """Ids int64 [n]; -1 for a word without a row."""
        get = self._index.get
        return np.fromiter((get(word, -1) for word in words), np.int64, count=len(words))

    def slots(self, ids: IntArray, what: str) -> IntArray:
        """Slots int64 [n], -1 for an evicted id; RefusedError for an id never given."""
        if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= self.next_id):
            raise RefusedError(
                f"{what}: an id outside 0 … {self.next_id - 1}, which are the ids given so far."
            )
        found: IntArray = self._slots[ids]
        return found

    def alive(self) -> IntArray:
        """Ids that have a row, in order."""
        found: IntArray = np.flatnonzero(self._slots[: self.next_id] >= 0).astype(np.int64)
        return found

    def counts(self, ids: IntArray) -> TimeArray:
        """Decayed running counts, float64 [n]."""
        found: TimeArray = self._stored[ids] / self.decay.weight
        return found

    def stored(self, ids: IntArray) -> TimeArray:
        """Running counts as they are stored: divide by `decay.weight` for counts."""
        found: TimeArray = self._stored[ids]
        return found

    def last_seen(self, ids: IntArray) -> TimeArray:
        """Event time (Unix seconds) at which each word was last read, float64 [n]."""
        found: TimeArray = self._last_seen[ids]
        return found

    def count(
        self,
        ids: IntArray,
        counts: IntArray,
        seen: TimeArray,
        words: Sequence[str],
        word_counts: IntArray,
        word_seen: TimeArray,
        tokens: int,
    ) -> int:
        """Commit occurrences; ids and words may repeat. Returns those that were dropped.

        ids          int64 [n], words with a row; counts int64 [n], seen float64 [n] (event time)
        words        str [m], words that the reader knew no row of; word_counts, word_seen likewise
        tokens       by how many tokens the counts decay afterwards

        An id that was evicted meanwhile counts for its word, as long as that is remembered;
        otherwise its occurrences are dropped. RefusedError for an id never given.
        """
        slots = self.slots(ids, "count")
        weight = self.decay.weight
        alive = slots >= 0
        np.add.at(self._stored, ids[alive], counts[alive] * weight)
        np.maximum.at(self._last_seen, ids[alive], seen[alive])
        gone = np.flatnonzero(~alive)
        late = [self.words[i] for i in ids[gone].tolist()]
        self._count_words(late, counts[gone], seen[gone])
        self._count_words(words, word_counts, word_seen)
        if len(self.candidates) > self.max_candidates:
            self._forget_candidates()
        divisor = self.decay.advance(tokens)
        if divisor is not None:
            self._stored /= divisor
            self.candidates = {word: n / divisor for word, n in self.candidates.items()}
        return 0

    def _count_words(self, words: Sequence[str], counts: IntArray, seen: TimeArray) -> None:
        ids = self.ids(words)
        weighted = counts * self.decay.weight
        known = ids >= 0
        np.add.at(self._stored, ids[known], weighted[known])
        np.maximum.at(self._last_seen, ids[known], seen[known])
        candidates = self.candidates
        for at in np.flatnonzero(~known).tolist():
            word = words[at]
            candidates[word] = candidates.get(word, 0.0) + float(weighted[at])

    def plan(self, words: Sequence[str], counts: IntArray) -> list[str]:
        """Which of `words` would get a row if each occurred `counts` times more."""
        weight, least = self.decay.weight, self.min_count - 0.5
        index, candidates = self._index, self.candidates
        fresh = {
            word: None
            for word, offered in zip(words, counts.tolist(), strict=True)
            if word not in index and candidates.get(word, 0.0) / weight + offered >= least
        }
        return list(fresh)

    def admit(self, words: Sequence[str]) -> Admission:
        """Give words (distinct, without a row) ids in order, evicting others when it is full."""
        if len(words) > self.max_words:
            words = words[: self.max_words]
        self.version += 1
        excess = len(self._index) + len(words) - self.max_words
        evicted = self._evict(excess) if excess > 0 else np.empty(0, dtype=np.int64)
        first = self.next_id
        ids = np.arange(first, first + len(words), dtype=np.int64)
        slots = np.fromiter((self._take_slot() for _ in words), np.int64, count=len(words))
        self._grow(first + len(words))
        self._slots[ids] = slots
        self._born[ids] = self.version
        for word, id_ in zip(words, ids.tolist(), strict=True):
            self._index[word] = id_
            self.words.append(word)
            self._stored[id_] = self.candidates.pop(word, 0.0)
        return Admission(tuple(words), ids, slots, evicted)

    def delta(self, since: int) -> VocabularyDelta:
        """Words admitted and ids evicted after version `since`."""
        n = self.next_id
        known = 0 < since <= self.version
        born, died, slots = self._born[:n], self._died[:n], self._slots[:n]
        mark = since if known else 0
        ids = np.flatnonzero((slots >= 0) & (born > mark)).astype(np.int64)
        evicted = np.flatnonzero((died > mark) & (born <= mark)).astype(np.int64)
        return VocabularyDelta(
            version=self.version,
            words=[self.words[i] for i in ids.tolist()],
            ids=ids,
            counts=np.rint(self.counts(ids)).astype(np.int64),
            evicted=evicted,
        )

    def restore(
        self,
        *,
        words: Sequence[str],
        ids: IntArray,
        stored: TimeArray,
        last_seen: TimeArray,
        next_id: int,
        weight: float,
        candidates: dict[str, float],
    ) -> IntArray:
        """Become what a checkpoint holds; returns the slots of `ids`.

        All words count as new in this version: a node that knew a later state of the old server
        gets them all again.
        """
        self._grow(next_id)
        self.version += 1
        slots = np.arange(len(ids), dtype=np.int64)
        self.words = [""] * next_id
        self._index = dict(zip(words, ids.tolist(), strict=True))
        for word, id_ in self._index.items():
            self.words[id_] = word
        self._stored[ids], self._last_seen[ids] = stored, last_seen
        self._slots[ids], self._born[ids] = slots, self.version
        self._free, self._next_slot = [], len(ids)
        self.decay.weight = weight
        self.candidates = candidates
        return slots

    def _evict(self, excess: int) -> IntArray:
        """Take the rows of the rarest, then oldest, words.

        Some more than needed are taken, so that it happens rarely.
        """
        ids = self.alive()
        n = min(len(ids), max(excess, int(self.max_words * _EVICT_SHARE)))
        order = np.lexsort((ids, self._last_seen[ids], self._stored[ids]))
        chosen: IntArray = np.sort(ids[order[:n]])
        for id_ in chosen.tolist():
            del self._index[self.words[id_]]
        self._free.extend(self._slots[chosen].tolist())
        self._slots[chosen] = -1
        self._died[chosen] = self.version
        return chosen

    def _forget_candidates(self) -> None:
        keep = sorted(self.candidates.items(), key=lambda item: item[1], reverse=True)
        self.candidates = dict(keep[: int(self.max_candidates * (1 - _EVICT_SHARE))])

    def _take_slot(self) -> int:
        if self._free:
            return self._free.pop()
        self._next_slot += 1
        return self._next_slot - 1

    def _grow(self, n: int) -> None:
        if n <= len(self._slots):
            return
        size = max(n, 2 * len(self._slots))
        for name, empty in (
            ("_stored", 0.0),
            ("_last_seen", 0.0),
            ("_slots", -1),
            ("_born", 0),
            ("_died", 0),
        ):
            old = getattr(self, name)
            fresh = np.full(size, empty, dtype=old.dtype)
            fresh[: len(old)] = old
            setattr(self, name, fresh)
