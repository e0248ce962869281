"""Words get rows: which ones, with which ids, and what the journal keeps of that."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence, Sized
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from embedding.exchange.codec import from_message, to_message
from embedding.exchange.contributors import AdmissionRequest, Admitted, Contributors
from embedding.exchange.protocol import VocabularyDelta
from embedding.exchange.wire import Message, text_array, whole
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray
from embedding.server.config import ServerConfig
from embedding.server.ledger.sequence import Journal
from embedding.server.parts import Moment, Part
from embedding.server.rowstore import ChangeQueue, RowStore
from embedding.server.validation import check_words
from embedding.server.words.accounting import Accounts
from embedding.text.generations import Generations

WAITING_WORDS = 500_000
"""Words without a row whose users are remembered, at most."""


class _WordContributors(NamedTuple):
    authors: set[int]
    sources: set[int]


class AnonymityThreshold:
    """Who used the words that wait. Not thread-safe: the server's lock guards it.

    What is kept of a word that waits is at most k signs of authors and of sources (see
    `exchange/contributors.py`), in memory alone: at most `capacity` words, the one that was not
    offered for longest is forgotten first, and all of them at a restart, after which they wait
    again.

    authors, sources  how many of each a word needs; `reading` holds the sources
                      that there are: where fewer are read than `sources`, all of them are enough
    """

    def __init__(self, authors: int, sources: int, capacity: int, reading: Sized) -> None:
        self.authors, self.sources = authors, sources
        self.salt = secrets.token_hex(16)
        self.withheld = 0
        """How often a word that was read often enough was held back."""
        self._reading = reading
        self._heard: Generations[str, _WordContributors] = Generations(capacity)

    def __len__(self) -> int:
        return len(self._heard)

    def passed(
        self, fresh: Sequence[str], words: Sequence[str], contributors: Contributors | None
    ) -> list[str]:
        """Those of `fresh` that enough authors and sources used.

        contributors  of `words`; None: they come from a corpus, where nobody asks. RefusedError
                      when they are of another number of words
        """
        if contributors is None or (self.authors <= 1 and self.sources <= 1):
            return list(fresh)
        if len(contributors) != len(words):
            raise RefusedError(
                f"admit: signs of {len(contributors)} words for {len(words)} words; one each."
            )
        for at, word in enumerate(words):
            self._hear(word, *contributors.word(at))
        sources = min(self.sources, max(1, len(self._reading)))
        enough = [word for word in fresh if self._enough(word, sources)]
        self.withheld += len(fresh) - len(enough)
        return enough

    def why_withheld(self) -> str:
        """The end of a sentence about words that have no row; "" where none was held back."""
        if not self.withheld:
            return ""
        return (
            f"; words that were read often enough wait until {self.authors} authors and "
            f"{self.sources} sources have used them (server.min_authors, server.min_sources), and "
            "texts of a source that names no authors count as those of one (text.unknown_authors)"
        )

    def _hear(self, word: str, authors: list[int], sources: list[int]) -> None:
        heard = self._heard.get(word)
        if heard is None:
            heard = _WordContributors(set(), set())
            self._heard.put(word, heard)
        for held, more, most in (
            (heard.authors, authors, self.authors),
            (heard.sources, sources, self.sources),
        ):
            for sign in more:
                if len(held) < most:
                    held.add(sign)

    def _enough(self, word: str, sources: int) -> bool:
        heard = self._heard.get(word)
        if heard is None:
            return False
        return len(heard.authors) >= self.authors and len(heard.sources) >= sources


class WordAdmission(Part):
    """Gives words ids and rows.

    One admission is under way at a time, under `admitting`; the server's lock is free while the
    journal is written. Whoever takes both takes `admitting` first.

    anonymity  by how many people a word has to be used
    journal    has the words that no checkpoint has
    """

    def __init__(
        self,
        config: ServerConfig,
        rows: RowStore,
        accounts: Accounts,
        changes: ChangeQueue,
        lock: threading.RLock,
    ) -> None:
        self.vocabulary = accounts.vocabulary
        self.anonymity = AnonymityThreshold(
            config.min_authors,
            config.min_sources,
            WAITING_WORDS,
            accounts.meters.sources,
        )
        self.admitting = threading.Lock()
        self.journal = Journal(None)
        self._rows = rows
        self._accounts = accounts
        self._changes = changes
        self._lock = lock

    def calls(self, stream: Any) -> dict[str, Callable[[Message], Message]]:
        return {"admit": self._admitted, "vocabulary": self._delta}

    def _admitted(self, message: Message) -> Message:
        asked = from_message(AdmissionRequest, message)
        words = text_array(asked.words)
        check_words(words)
        ids = self.admit(words.to_pylist(), asked.counts, asked.contributors)
        return to_message(Admitted(ids), status="ok")

    def _delta(self, message: Message) -> Message:
        return to_message(self.delta(whole(message.header, "since")), status="ok")

    def delta(self, since: int) -> VocabularyDelta:
        """What came and went after a version of the vocabulary, and who is there now."""
        with self._lock:
            alive = self.vocabulary.alive()
            counts = self.vocabulary.counts(alive)
            return replace(self.vocabulary.delta(since), alive=alive, alive_counts=counts)

    def admit(
        self, words: Sequence[str], counts: IntArray, contributors: Contributors | None = None
    ) -> IntArray:
        """Ids of words; see ParameterClient.admit."""
        if len(words) != len(counts):
            raise RefusedError("admit: words and counts differ in length.")
        if len(counts) and int(counts.min()) < 0:
            raise RefusedError("admit: a count below 0.")
        with self.admitting:
            with self._lock:
                self._changes.check()
                fresh = self.vocabulary.plan(words, counts)
                fresh = self.anonymity.passed(fresh, words, contributors)
                fresh = fresh[: self._rows.make_room(len(fresh))]
                first, evicted = self.vocabulary.next_id, self.vocabulary.victims(len(fresh))
            if fresh:
                # The journal has them before anybody can use their ids: pushes that name them can
                # be sent again after a crash.
                self.journal.write(first, fresh, evicted)
                with self._lock:
                    self.install(fresh, evicted)
            with self._lock:
                return self.vocabulary.ids(words)

    def install(self, words: Sequence[str], evicted: IntArray) -> None:
        """Give words the rows of evicted ids and new ones (under the lock)."""
        if len(evicted):
            self._accounts.windows.resolve()
            self._rows.evict(evicted)
        admission = self.vocabulary.admit(words, evicted)
        self._accounts.rare.placed(admission.slots, admission.evicted)
        self._changes.carry_out(lambda: [partial(self._rows.admit, admission)])

    def describe(self, at: Moment) -> dict[str, Any]:
        waiting = {"words": len(self.anonymity), "withheld": self.anonymity.withheld}
        return {"waiting_words": waiting}

    def go_on_in(self, journal: Journal) -> Journal:
        """Note words in another journal from now on; the one before (under both locks)."""
        before, self.journal = self.journal, journal
        return before
