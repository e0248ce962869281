"""Which word has which row: admission, running counts, eviction.

Ids are given in order and never again; slots (places in the tables) of evicted words are reused.
Everything kept for a word lies at its slot, so that memory is bounded by `max_words`,
`max_candidates` and a history of evictions, however many words have come and gone.
Versions grow with every change, so that a node asks only for what is new to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.exchange.protocol import VocabularyDelta
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray, TimeArray
from embedding.server.config import ServerConfig
from embedding.server.rows.slotmap import SlotMap
from embedding.server.words.candidates import Candidates
from embedding.server.words.counts import Decay
from embedding.server.words.digests import WordDigests
from embedding.server.words.evictions import Eviction, Evictions

_EVICT_SHARE = 0.05
_HISTORY_SHARE = 0.25
_GRACE = 32
"""Admissions for which a new word is spared: its first push is still under way."""


@dataclass(frozen=True)
class Admission:
    """Words that get a row: ids int64 [n], slots int64 [n], and ids evicted to make room."""

    words: tuple[str, ...]
    ids: IntArray
    slots: IntArray
    evicted: IntArray


_NEVER = 1 << 31
"""A count that no word reaches."""


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
        digests: WordDigests | None = None,
    ) -> None:
        self.min_count = min_count
        self.max_words = max_words
        self.decay = Decay(half_life_tokens)
        self.version = version
        self.next_id = 0
        """The id that the next admitted word gets; every smaller one has been given."""
        self.candidates = Candidates(max_candidates, digests or WordDigests())
        self.evictions = Evictions(max(64, int(max_words * _HISTORY_SHARE)), version)
        self._map = SlotMap()
        self._index: dict[str, int] = {}
        self._free: list[int] = []
        self._next_slot = 0
        self._stored = np.zeros(0, dtype=np.float64)
        self._last_seen = np.zeros(0, dtype=np.float64)
        self._born = np.zeros(0, dtype=np.int64)
        self._words: npt.NDArray[np.object_] = np.zeros(0, dtype=np.object_)
        self._reserve()

    @classmethod
    def of(
        cls, config: ServerConfig, *, version: int, digests: WordDigests | None = None
    ) -> Vocabulary:
        """As the settings say."""
        return cls(
            min_count=config.min_count,
            max_words=config.max_words,
            max_candidates=config.max_candidates,
            half_life_tokens=config.half_life_tokens,
            version=version,
            digests=digests,
        )

    def __len__(self) -> int:
        return len(self._index)

    @property
    def rows(self) -> int:
        """Slots ever used: the tables must hold so many rows."""
        return self._next_slot

    @property
    def nbytes(self) -> int:
        """Bytes of the columns and the map of ids, without dictionaries and the words' text."""
        columns = (self._stored, self._last_seen, self._born, self._words)
        return self._map.nbytes + sum(column.nbytes for column in columns)

    def ids(self, words: Sequence[str]) -> IntArray:
        """Ids int64 [n]; -1 for a word without a row."""
        return self._map.ids(self._find(words))

    def slots(self, ids: IntArray, what: str) -> IntArray:
        """Slots int64 [n], -1 for an evicted id; RefusedError for an id never given."""
        if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= self.next_id):
            raise RefusedError(
                f"{what}: an id outside 0 … {self.next_id - 1}, which are the ids given so far.",
                kind="id",
            )
        return self._map.slots(ids)

    def slots_given(self, ids: IntArray) -> IntArray:
        """Slots int64 [n], -1 for an id that is not alive, whether or not it was ever given."""
        return self._map.slots(ids)

    def set_counts(self, ids: IntArray, counts: TimeArray) -> None:
        """Running counts of ids as another server has them; those that are not alive are left."""
        slots = self._map.slots(ids)
        alive = slots >= 0
        self._stored[slots[alive]] = counts[alive] * self.decay.weight

    def ids_at(self, slots: IntArray) -> IntArray:
        """Ids int64 [n] of slots; -1 for a free one."""
        return self._map.ids(slots)

    def alive(self) -> IntArray:
        """Ids that have a row, in order."""
        return self._map.ids(self._map.used())

    def names(self, ids: IntArray) -> list[str]:
        """The words of ids given before; "" for an evicted one that is no longer remembered."""
        slots = self._map.slots(ids)
        found: list[str] = self._words[slots].tolist()
        gone = np.flatnonzero(slots < 0)
        for at, word in zip(gone.tolist(), self.evictions.words(ids[gone]), strict=True):
            found[at] = word or ""
        return found

    def counts(self, ids: IntArray) -> TimeArray:
        """Decayed running counts of ids that are alive, float64 [n]."""
        return self.stored(ids) / self.decay.weight

    def stored(self, ids: IntArray) -> TimeArray:
        """Running counts as they are stored: divide by `decay.weight` for counts."""
        found: TimeArray = self._stored[self._map.slots(ids)]
        return found

    def last_seen(self, ids: IntArray) -> TimeArray:
        """Event time (Unix seconds) at which each word was last read, float64 [n]."""
        found: TimeArray = self._last_seen[self._map.slots(ids)]
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
        if self.closed:
            np.maximum.at(self._last_seen, slots, seen)
            return 0
        alive = slots >= 0
        self._add(slots[alive], counts[alive], seen[alive])
        dropped = 0
        if not alive.all():
            dropped = self._count_evicted(ids[~alive], counts[~alive], seen[~alive])
        self._count_words(words, word_counts, word_seen)
        self.candidates.bound()
        divisor = self.decay.advance(tokens)
        if divisor is not None:
            self._stored /= divisor
            self.candidates.rescale(divisor)
        return dropped

    def close(self, words: Sequence[str], counts: IntArray) -> None:
        """The corpus was counted before: these counts hold, and no other word gets a row.

        words  all words that have a row; counts int64 [n], what pushes bring is not added to them
        """
        slots = self._map.slots(self.ids(words))
        self._stored[slots] = counts * self.decay.weight
        self.shut()

    @property
    def closed(self) -> bool:
        """Whether no other word gets a row, and counts stay as they are."""
        return self.min_count == _NEVER

    def shut(self) -> None:
        """No other word gets a row, and pushes add nothing to the counts."""
        self.min_count = _NEVER

    def plan(self, words: Sequence[str], counts: IntArray) -> list[str]:
        """Which of `words` would get a row if each occurred `counts` times more."""
        weight, least = self.decay.weight, self.min_count - 0.5
        index, candidates = self._index, self.candidates
        fresh = {
            word: None
            for word, offered in zip(words, counts.tolist(), strict=True)
            if word not in index and candidates.of(word) / weight + offered >= least
        }
        return candidates.digests.allowed(list(fresh))

    def victims(self, n: int) -> IntArray:
        """Ids int64, increasing, that must go before `n` more words (at most max_words) come in.

        The lowest decayed count goes first, which weighs age and frequency in one number (LRFU,
        Lee et al. 2001), of equal ones the word unseen for longest. Some more than needed are
        taken, so that it happens rarely, but no word whose first push is still under way.
        """
        excess = len(self) + min(n, self.max_words) - self.max_words
        if excess <= 0:
            return np.empty(0, dtype=np.int64)
        slots = self._map.used()
        spared = self._born[slots] > self.version - _GRACE
        more = min(int(self.max_words * _EVICT_SHARE), int((~spared).sum()))
        chosen = min(len(slots), max(excess, more))
        order = np.lexsort((self._last_seen[slots], self._stored[slots], spared))
        return np.sort(self._map.ids(slots[order[:chosen]]))

    def admit(self, words: Sequence[str], evicted: IntArray | None = None) -> Admission:
        """Give words (distinct, without a row) ids in order.

        evicted   ids to make room with, as a journal has them; None asks `victims`
        """
        words = words[: self.max_words]
        gone = self.victims(len(words)) if evicted is None else evicted
        self.version += 1
        gone = self._evict(gone)
        ids = np.arange(self.next_id, self.next_id + len(words), dtype=np.int64)
        slots = np.fromiter((self._take_slot() for _ in words), np.int64, count=len(words))
        self._reserve()
        self.next_id += len(words)
        self._map.put(slots, ids)
        self._born[slots] = self.version
        self._last_seen[slots] = 0.0
        for word, slot in zip(words, slots.tolist(), strict=True):
            self._index[word] = slot
            self._words[slot] = word
            self._stored[slot] = self.candidates.take(word)
        return Admission(tuple(words), ids, slots, gone)

    def delta(self, since: int) -> VocabularyDelta:
        """Words admitted and ids evicted after version `since`.

        Everything, with no evictions, when `since` is not a version of this incarnation or older
        than the history of evictions: who asks then forgets what is not among the ids that are
        alive.
        """
        known = self.evictions.since <= since <= self.version
        mark = since if known else 0
        slots = self._map.used()
        slots = slots[self._born[slots] > mark]
        words: list[str] = self._words[slots].tolist()
        return VocabularyDelta(
            version=self.version,
            words=words,
            ids=self._map.ids(slots),
            counts=np.rint(self._stored[slots] / self.decay.weight).astype(np.int64),
            evicted=self.evictions.after(mark),
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
        candidates: dict[bytes, float],
    ) -> IntArray:
        """Become what a checkpoint holds; returns the slots of `ids`.

        candidates  stored counts of words without a row, by their digests

        All words count as new in this version: a node that knew a later state of the old server
        gets them all again.
        """
        self.version += 1
        slots = np.arange(len(ids), dtype=np.int64)
        self._free, self._next_slot = [], len(ids)
        self._reserve()
        self.next_id = next_id
        self._map = SlotMap()
        self._map.put(slots, ids)
        self._index = dict(zip(words, slots.tolist(), strict=True))
        self._words[slots] = words
        self._stored[slots], self._last_seen[slots] = stored, last_seen
        self._born[slots] = self.version
        self.decay.weight = weight
        self.candidates = Candidates(self.candidates.limit, self.candidates.digests, candidates)
        self.evictions = Evictions(self.evictions.limit, self.version)
        return slots

    def _find(self, words: Sequence[str]) -> IntArray:
        get = self._index.get
        return np.fromiter((get(word, -1) for word in words), np.int64, count=len(words))

    def _add(self, slots: IntArray, counts: IntArray, seen: TimeArray) -> None:
        np.add.at(self._stored, slots, counts * self.decay.weight)
        np.maximum.at(self._last_seen, slots, seen)

    def _count_words(self, words: Sequence[str], counts: IntArray, seen: TimeArray) -> None:
        slots = self._find(words)
        known = slots >= 0
        self._add(slots[known], counts[known], seen[known])
        at = np.flatnonzero(~known)
        weighted = counts[at] * self.decay.weight
        self.candidates.count([words[i] for i in at.tolist()], weighted.tolist())

    def _count_evicted(self, ids: IntArray, counts: IntArray, seen: TimeArray) -> int:
        found = self.evictions.words(ids)
        at = np.array([i for i, word in enumerate(found) if word is not None], dtype=np.int64)
        self._count_words([word for word in found if word is not None], counts[at], seen[at])
        return int(counts.sum()) - int(counts[at].sum())

    def _evict(self, ids: IntArray) -> IntArray:
        """Take the rows of ids; those that are not alive are left out of the answer."""
        slots = self._map.slots(ids)
        ids, slots = ids[slots >= 0], slots[slots >= 0]
        if not len(ids):
            return ids
        words: list[str] = self._words[slots].tolist()
        for word in words:
            del self._index[word]
        self.evictions.add(Eviction(self.version, ids, self._born[slots], words))
        self._map.free(slots)
        self._words[slots] = None
        self._free.extend(slots.tolist())
        return ids

    def _take_slot(self) -> int:
        if self._free:
            return self._free.pop()
        self._next_slot += 1
        return self._next_slot - 1

    def _reserve(self) -> None:
        """Columns for all slots that are used."""
        size = max(1024, self._next_slot)
        if size <= len(self._stored):
            return
        size = max(size, 2 * len(self._stored))
        for name in ("_stored", "_last_seen", "_born", "_words"):
            old: npt.NDArray[Any] = getattr(self, name)
            fresh = np.zeros(size, dtype=old.dtype)
            fresh[: len(old)] = old
            setattr(self, name, fresh)
