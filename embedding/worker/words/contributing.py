"""Who used the words that have no row yet, as this node heard it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from embedding.exchange.contributors import Contributors, contributor_id
from embedding.exchange.protocol import Welcome
from embedding.kernel.records import IntArray, TokenBlock
from embedding.text.config import UnknownAuthors, contributors
from embedding.text.generations import Generations

REMEMBERED = 200_000
"""Words without a row of which a node remembers who used them."""


class _Collected(NamedTuple):
    authors: set[int]
    sources: set[int]


class ContributorCollector:
    """Signs of the authors and sources of words without a row: at most as many as are asked for."""

    def __init__(
        self,
        salt: str,
        authors: int,
        sources: int,
        capacity: int = REMEMBERED,
        unknown: UnknownAuthors = "one",
    ) -> None:
        self._key = bytes.fromhex(salt)
        self._unknown = unknown
        self._most = (authors, sources)
        self._heard: Generations[str, _Collected] = Generations(capacity)

    @classmethod
    def of(cls, welcome: Welcome, unknown: UnknownAuthors = "one") -> ContributorCollector | None:
        """As the server asks for it; None when it does not."""
        if welcome.min_authors <= 1 and welcome.min_sources <= 1:
            return None
        return cls(welcome.salt, welcome.min_authors, welcome.min_sources, unknown=unknown)

    def hear(self, block: TokenBlock, table: IntArray) -> None:
        """Remember whose documents hold the words without a row (-1 in `table`, int64 [W])."""
        unknown = (table < 0)[block.codes]
        if not len(block.voices) or not unknown.any():
            return
        owner = np.repeat(
            np.arange(block.n_documents, dtype=np.int64), np.diff(block.document_tokens())
        )
        size = len(block.words)
        pairs = np.unique(owner[unknown] * size + block.codes[unknown])
        source = block.source.encode()
        who = contributors(block.voices, block.source, self._unknown)
        authors = [voice.tobytes() for voice in who]
        for document, code in zip((pairs // size).tolist(), (pairs % size).tolist(), strict=True):
            word = block.words[code]
            heard = self._heard.get(word)
            if heard is None:
                heard = _Collected(set(), set())
                self._heard.put(word, heard)
            for signs, user, most in zip(
                heard, (authors[document], source), self._most, strict=True
            ):
                if len(signs) < most:
                    signs.add(contributor_id(self._key, word, user))

    def contributors(self, words: Sequence[str]) -> Contributors:
        """What was heard of `words`."""
        none = _Collected(set(), set())
        heard = [self._heard.get(word) or none for word in words]
        return Contributors.of([(sorted(each.authors), sorted(each.sources)) for each in heard])

    def forget(self, words: Iterable[str]) -> None:
        for word in words:
            heard = self._heard.get(word)
            if heard is not None:
                heard.authors.clear()
                heard.sources.clear()
