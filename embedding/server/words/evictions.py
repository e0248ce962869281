"""The last evictions, so that a node hears of them and late counts still find their word."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.kernel.positions import positions
from embedding.kernel.records import IntArray


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
    """At most `limit` evicted ids, the latest; what is older is forgotten.

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
        found: list[str | None] = [None] * len(ids)
        for eviction in self._held:
            places = positions(eviction.ids, ids)
            for at in np.flatnonzero(places >= 0).tolist():
                found[at] = eviction.words[int(places[at])]
        return found
