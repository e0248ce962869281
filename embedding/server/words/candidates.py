"""Words that were read but have no row yet, counted in bounded memory by their digests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from embedding.server.words.digests import WordDigests

_KEEP_SHARE = 0.95


class Candidates(dict[bytes, float]):
    """Digest of a word → stored count (see `Decay`), at most `limit` of them after each push.

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
