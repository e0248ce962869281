"""Which word has which row: admission, running counts, eviction.

Ids are given in order and never again; slots (places in the tables) of evicted words are reused.
Everything kept for a word lies at its slot, so that memory is bounded by `max_words`,
`max_candidates` and a history of evictions, however many words have come and gone.
Versions grow with every change, so that a node asks only for what is new to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from embedding.exchange.protocol import VocabularyDelta
from embedding.kernel.errors import RefusedError
from embedding.kernel.positions import positions
from embedding.kernel.records import IntArray, ScorePairs, TimeArray
from embedding.server.config import ServerConfig
from embedding.server.parts import Content, Erasure, Moment, Part, Saved
from embedding.server.rows.rowmap import RowMap
from embedding.server.words.counts import Decay
from embedding.server.words.digests import (
    DIGEST_BYTES,
    WordDigests,
    WordsCopy,
    digest_column,
    float_column,
)

_KEEP_SHARE = 0.95


class Candidates(dict[bytes, float]):
    """Words without a row yet: digest → stored count (see `Decay`), at most `limit` of them after
    each push.

    When they are too many, the count at the lowest twentieth is taken off all, and words with
    nothing left are forgotten (Misra and Gries 1982, in batches: Agarwal et al. 2013, Mergeable
    Summaries, section 3). A count is therefore never too high, so that no word is admitted
    early, and too low by at most `shortfall`: what is taken off one word is taken off at least
    0.95 · limit others too, so it cannot exceed N / (0.95 · limit) when N occurrences (decayed)
    of words without a row were read.
    """

    def __init__(
        self, limit: int, digests: WordDigests, held: Mapping[bytes, float] | None = None
    ) -> None:
        super().__init__(held or {})
        self.limit = limit
        self.digests = digests
        self.shortfall = 0.0
        """By how much a stored count may be too low."""

    def count(self, words: Sequence[str], stored: Iterable[float]) -> None:
        """Add to the stored counts of words, which may repeat."""
        get, digest = self.get, self.digests.of
        for word, n in zip(words, stored, strict=True):
            key = digest(word)
            self[key] = get(key, 0.0) + n

    def of(self, word: str) -> float:
        """The stored count of a word."""
        return self.get(self.digests.of(word), 0.0)

    def take(self, word: str) -> float:
        """The stored count of a word, which is forgotten."""
        return self.pop(self.digests.of(word), 0.0)

    def bound(self) -> None:
        """Come back under `limit`."""
        if len(self) <= self.limit:
            return
        values = np.fromiter(self.values(), np.float64, count=len(self))
        least = len(values) - int(self.limit * _KEEP_SHARE) - 1
        taken = float(np.partition(values, least)[least])
        self.shortfall += taken
        self._replace({key: n - taken for key, n in self.items() if n > taken})

    def rescale(self, divisor: float) -> None:
        """Divide all that is stored."""
        self.shortfall /= divisor
        self._replace({key: n / divisor for key, n in self.items()})

    def _replace(self, held: Mapping[bytes, float]) -> None:
        self.clear()  # gives the memory back, which deleting word by word would not
        self.update(held)


@dataclass(frozen=True)
class Eviction:
    """Words that lost their rows in one version.

    version  of the vocabulary in which it happened
    ids      int64 [n], increasing; born int64 [n], versions in which they had been admitted
    words    str [n]
    """

    version: int
    ids: IntArray
    born: IntArray
    words: Sequence[str]


class Evictions:
    """At most `limit` evicted ids, the latest: a node hears of them, and late counts still find
    their word. What is older is forgotten.

    since   versions from which on every eviction is known here
    """

    def __init__(self, limit: int, since: int) -> None:
        self.limit = limit
        self.since = since
        self._held: deque[Eviction] = deque()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, eviction: Eviction) -> None:
        """Note an eviction; one larger than `limit` is not kept at all."""
        self._held.append(eviction)
        self._size += len(eviction.ids)
        while self._size > self.limit:
            old = self._held.popleft()
            self._size -= len(old.ids)
            self.since = old.version

    def after(self, version: int) -> IntArray:
        """Ids int64 evicted after `version` that had been admitted by then."""
        parts = [e.ids[e.born <= version] for e in self._held if e.version > version]
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])

    def words(self, ids: IntArray) -> list[str | None]:
        """The word of each evicted id; None for one that is forgotten."""
        words: list[str | None] = [None] * len(ids)
        for eviction in self._held:
            places = positions(eviction.ids, ids)
            for at in np.flatnonzero(places >= 0).tolist():
                words[at] = eviction.words[int(places[at])]
        return words


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


_WORD_COLUMNS = ("word", "id", "slot", "stored", "last_seen")
_COLUMNS = {"stored": "f8", "last_seen": "f8", "born": "i8", "word": "O"}
"""Of `Vocabulary.slot_map`: counts as they are stored, the event time (Unix seconds) at which the
word was last read, the version in which it was admitted, and the word."""
_NEVER = 1 << 31
"""A count that no word reaches."""


class Vocabulary(Part):
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
        self.slot_map = RowMap(_COLUMNS)
        self._index: dict[str, int] = {}

    @classmethod
    def of(
        cls, config: ServerConfig, *, version: int, digests: WordDigests | None = None
    ) -> Vocabulary:
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
        return self.slot_map.end

    def ids(self, words: Sequence[str]) -> IntArray:
        """Ids int64 [n]; -1 for a word without a row."""
        return self.slot_map.ids(self._find(words))

    def slots(self, ids: IntArray, what: str) -> IntArray:
        """Slots int64 [n], -1 for an evicted id; RefusedError for an id never given."""
        if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= self.next_id):
            raise RefusedError(
                f"{what}: an id outside 0 … {self.next_id - 1}, which are the ids given so far.",
                kind="id",
            )
        return self.slot_map.slots(ids)

    def score_slots(self, score: ScorePairs) -> tuple[IntArray, IntArray, IntArray]:
        """Those of centres, contexts and negatives, as `slots`."""
        centres, contexts, flat = (
            self.slots(ids, "pull (score)")
            for ids in (score.centres, score.contexts, score.negatives.reshape(-1))
        )
        return centres, contexts, flat.reshape(score.negatives.shape)

    def set_counts(self, ids: IntArray, counts: TimeArray) -> None:
        """Running counts of ids as another server has them; those that are not alive are left."""
        slots = self.slot_map.slots(ids)
        alive = slots >= 0
        self.slot_map["stored"][slots[alive]] = counts[alive] * self.decay.weight

    def alive(self) -> IntArray:
        """Ids that have a row, in order."""
        return self.slot_map.ids(self.slot_map.used())

    def names(self, ids: IntArray) -> list[str]:
        """The words of ids given before; "" for an evicted one that is no longer remembered."""
        slots = self.slot_map.slots(ids)
        names: list[str] = self.slot_map["word"][slots].tolist()
        gone = np.flatnonzero(slots < 0)
        for at, word in zip(gone.tolist(), self.evictions.words(ids[gone]), strict=True):
            names[at] = word or ""
        return names

    def counts(self, ids: IntArray) -> TimeArray:
        """Decayed running counts of ids that are alive, float64 [n]."""
        return self.stored(ids) / self.decay.weight

    def stored(self, ids: IntArray) -> TimeArray:
        """Running counts as they are stored: divide by `decay.weight` for counts."""
        stored: TimeArray = self.slot_map["stored"][self.slot_map.slots(ids)]
        return stored

    def last_seen(self, ids: IntArray) -> TimeArray:
        """Event time (Unix seconds) at which each word was last read, float64 [n]."""
        seen: TimeArray = self.slot_map["last_seen"][self.slot_map.slots(ids)]
        return seen

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
            np.maximum.at(self.slot_map["last_seen"], slots, seen)
            return 0
        alive = slots >= 0
        self._add(slots[alive], counts[alive], seen[alive])
        dropped = 0
        if not alive.all():
            counts, seen = counts[~alive], seen[~alive]
            evicted = self.evictions.words(ids[~alive])
            at = np.array([i for i, word in enumerate(evicted) if word is not None], dtype=np.int64)
            named = [word for word in evicted if word is not None]
            self._count_words(named, counts[at], seen[at])
            dropped = int(counts.sum()) - int(counts[at].sum())
        self._count_words(words, word_counts, word_seen)
        self.candidates.bound()
        divisor = self.decay.advance(tokens)
        if divisor is not None:
            stored = self.slot_map["stored"]
            stored /= divisor
            self.candidates.rescale(divisor)
        return dropped

    def close(self, words: Sequence[str], counts: IntArray) -> None:
        """The corpus was counted before: these counts hold, and no other word gets a row.

        words  all words that have a row; counts int64 [n], what pushes bring is not added to them
        """
        slots = self.slot_map.slots(self.ids(words))
        self.slot_map["stored"][slots] = counts * self.decay.weight
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
        slots, rows = self.slot_map.used(), self.slot_map
        spared = rows["born"][slots] > self.version - _GRACE
        more = min(int(self.max_words * _EVICT_SHARE), int((~spared).sum()))
        chosen = min(len(slots), max(excess, more))
        order = np.lexsort((rows["last_seen"][slots], rows["stored"][slots], spared))
        return np.sort(rows.ids(slots[order[:chosen]]))

    def admit(self, words: Sequence[str], evicted: IntArray | None = None) -> Admission:
        """Give words (distinct, without a row) ids in order.

        evicted   ids to make room with, as a journal has them; None asks `victims`
        """
        words = words[: self.max_words]
        gone = self.victims(len(words)) if evicted is None else evicted
        self.version += 1
        gone = self._evict(gone)
        ids = np.arange(self.next_id, self.next_id + len(words), dtype=np.int64)
        rows, slots = self.slot_map, self.slot_map.fresh(len(words))
        rows.put(slots, ids)
        self.next_id += len(words)
        stored = rows["stored"]
        rows["born"][slots], rows["last_seen"][slots] = self.version, 0.0
        rows["word"][slots] = words
        for word, slot in zip(words, slots.tolist(), strict=True):
            self._index[word] = slot
            stored[slot] = self.candidates.take(word)
        return Admission(tuple(words), ids, slots, gone)

    def delta(self, since: int) -> VocabularyDelta:
        """Words admitted and ids evicted after version `since`.

        Everything, with no evictions, when `since` is not a version of this incarnation or older
        than the history of evictions: who asks then forgets what is not among the ids that are
        alive.
        """
        known = self.evictions.since <= since <= self.version
        mark = since if known else 0
        slots = self.slot_map.used()
        slots = slots[self.slot_map["born"][slots] > mark]
        words: list[str] = self.slot_map["word"][slots].tolist()
        return VocabularyDelta(
            version=self.version,
            words=words,
            ids=self.slot_map.ids(slots),
            counts=np.rint(self.slot_map["stored"][slots] / self.decay.weight).astype(np.int64),
            evicted=self.evictions.after(mark),
        )

    def copied(self) -> WordsCopy:
        """The words that have a row now."""
        ids = self.alive()
        return WordsCopy(ids, self.names(ids), self.candidates.digests)

    def save(self) -> Saved:
        ids = self.alive()
        columns = self.slots(ids, "checkpoint"), self.stored(ids), self.last_seen(ids)
        candidates = dict(self.candidates)

        def tables(words: WordsCopy) -> dict[str, pa.Table]:
            held = [words.column, ids, *columns]
            waiting = {
                "digest": digest_column(candidates, DIGEST_BYTES),
                "stored": float_column(candidates.values(), len(candidates)),
            }
            return {
                "words": pa.table(dict(zip(_WORD_COLUMNS, held, strict=True))),
                "candidates": pa.table(waiting),
            }

        facts = {
            "words": len(ids),
            "next_id": self.next_id,
            "decay_weight": self.decay.weight,
            "closed_vocabulary": self.closed,
        }
        return Saved(facts, tables)

    def load(self, content: Content) -> None:
        facts, table, waiting = content.facts, content.tables["words"], content.tables["candidates"]
        keys, stored = waiting["digest"].to_pylist(), waiting["stored"].to_pylist()
        self.restore(
            words=table["word"].to_pylist(),
            ids=table["id"].to_numpy(),
            stored=table["stored"].to_numpy(),
            last_seen=table["last_seen"].to_numpy(),
            next_id=facts["next_id"],
            weight=facts["decay_weight"],
            candidates=dict(zip(keys, stored, strict=True)),
        )
        if facts["closed_vocabulary"]:
            self.shut()

    def describe(self, at: Moment) -> dict[str, Any]:
        return {"vocabulary": len(self), "candidates": len(self.candidates)}

    def forget(self, erasure: Erasure) -> None:
        """See Part; a row goes when its id is evicted."""
        if erasure.word is not None:
            self.candidates.take(erasure.word)

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
        self.next_id = next_id
        self.slot_map = rows = RowMap(_COLUMNS)
        slots = rows.give(ids)
        self._index = dict(zip(words, slots.tolist(), strict=True))
        rows["word"][slots], rows["born"][slots] = words, self.version
        rows["stored"][slots], rows["last_seen"][slots] = stored, last_seen
        self.decay.weight = weight
        self.candidates = Candidates(self.candidates.limit, self.candidates.digests, candidates)
        self.evictions = Evictions(self.evictions.limit, self.version)
        return slots

    def _find(self, words: Sequence[str]) -> IntArray:
        get = self._index.get
        return np.fromiter((get(word, -1) for word in words), np.int64, count=len(words))

    def _add(self, slots: IntArray, counts: IntArray, seen: TimeArray) -> None:
        np.add.at(self.slot_map["stored"], slots, counts * self.decay.weight)
        np.maximum.at(self.slot_map["last_seen"], slots, seen)

    def _count_words(self, words: Sequence[str], counts: IntArray, seen: TimeArray) -> None:
        slots = self._find(words)
        known = slots >= 0
        self._add(slots[known], counts[known], seen[known])
        at = np.flatnonzero(~known)
        weighted = counts[at] * self.decay.weight
        self.candidates.count([words[i] for i in at.tolist()], weighted.tolist())

    def _evict(self, ids: IntArray) -> IntArray:
        """Take the rows of ids; those that are not alive are left out of the answer."""
        slots = self.slot_map.slots(ids)
        ids, slots = ids[slots >= 0], slots[slots >= 0]
        if not len(ids):
            return ids
        words: list[str] = self.slot_map["word"][slots].tolist()
        for word in words:
            del self._index[word]
        self.evictions.add(Eviction(self.version, ids, self.slot_map["born"][slots], words))
        self.slot_map.free(slots)
        self.slot_map["word"][slots] = None
        return ids
