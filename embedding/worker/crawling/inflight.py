"""Documents between the crawler and the frontier's word that they are learnt.

started ──(their block is pushed)──► accepted ──(the push is in a checkpoint)──► done
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence


class InFlightDocuments:
    """Of one crawler process; used from its loop alone."""

    def __init__(self) -> None:
        self.done = 0
        self._source: dict[str, str] = {}
        self._by_source: Counter[str] = Counter()
        self._accepted: deque[str] = deque()
        self._pushed: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()

    def started(self, key: str, source: str) -> None:
        """The crawler handed a document on."""
        self._source[key] = source
        self._by_source[source] += 1

    def read(self, source: str, tokens: int) -> None:
        """A block of so many tokens was made."""
        self._tokens[source] += tokens

    def accepted(self, keys: Sequence[str]) -> None:
        """The server has taken their push, in this order."""
        for key in keys:
            self._accepted.append(key)
            self._pushed[self._source.get(key, "")] += 1

    def durable(self, documents: int) -> list[str]:
        """The first `documents` accepted are in a checkpoint: keys that are done now."""
        count = max(0, min(documents - self.done, len(self._accepted)))
        keys = [self._accepted.popleft() for _ in range(count)]
        for key in keys:
            source = self._source.pop(key, "")
            self._pushed[source] -= 1
            self._by_source[source] -= 1
        self.done += count
        return keys

    def of(self, source: str) -> int:
        """Documents of a source that are under way."""
        return self._by_source[source]

    def pushed(self, source: str) -> int:
        """Those of them that the server has: learnt, though not in a checkpoint yet."""
        return self._pushed[source]

    def tokens(self) -> dict[str, int]:
        """Tokens by source since the last call."""
        found, self._tokens = dict(self._tokens), Counter()
        return found
