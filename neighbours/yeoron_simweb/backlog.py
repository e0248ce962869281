"""How far readers are behind: published documents that nobody has fetched."""

from __future__ import annotations

from collections import Counter

from yeoron_simweb.config import PARTS


class PastArticles:
    """Counts published, unfetched documents of the parts that somebody reads.

    A part counts from the first request to it on: who began to read is waited for, however slow.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, set[str]] = {part: set() for part in PARTS}
        self._read: set[str] = set()
        self.fetches: Counter[str] = Counter()
        """Fetches by document id."""

    def read(self, part: str) -> None:
        """Somebody asked for this part."""
        self._read.add(part)

    def publish(self, part: str, key: str) -> None:
        """A document appeared."""
        if not self.fetches[key]:
            self._waiting[part].add(key)

    def fetch(self, part: str, key: str) -> None:
        """A document was delivered."""
        self.fetches[key] += 1
        self._waiting[part].discard(key)

    def count(self) -> int:
        """How many documents the clock waits for."""
        return sum(len(self._waiting[part]) for part in self._read)
