"""Rare words get no row before several authors and sources used them: most are names of people.

What is kept of a word that waits is at most k signs of authors and of sources (see
`exchange/contributors.py`), in memory alone: at most `capacity` words, the one that was not offered
for longest is forgotten first, and all of them at a restart, after which they wait again.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence, Sized
from typing import NamedTuple

from embedding.exchange.contributors import Contributors
from embedding.kernel.errors import RefusedError
from embedding.text.generations import Generations


class _WordContributors(NamedTuple):
    authors: set[int]
    sources: set[int]


class AnonymityThreshold:
    """Who used the words that wait. Not thread-safe: the server's lock guards it.

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
