"""Words that were read but have no row yet, counted in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

_KEEP_SHARE = 0.95


class Candidates(dict[str, float]):
    """Word → stored count (see `Decay`), at most `limit` of them after each push.

    When they are too many, the count at the lowest twentieth is taken off all, and words with
    nothing left are forgotten (Misra and Gries 1982, in batches: Agarwal et al. 2013, Mergeable
    Summaries, section 3). A count is therefore never too high, so that no word is admitted
    early, and too low by at most `shortfall`: what is taken off one word is taken off at least
    0.95 · limit others too, so it cannot exceed N / (0.95 · limit) when N occurrences (decayed)
    of words without a row were read.
    """

    def __init__(self, limit: int, held: Mapping[str, float] | None = None) -> None:
        super().__init__(held or {})
        self.limit = limit
        self.shortfall = 0.0
        """By how much a stored count may be too low."""

    def count(self, words: Sequence[str], stored: Iterable[float]) -> None:
        """Add to the stored counts of words, which may repeat."""
        get = self.get
        for word, n in zip(words, stored, strict=True):
            self[word] = get(word, 0.0) + n

    def bound(self) -> None:
        """Come back under `limit`."""
        if len(self) <= self.limit:
            return
        values = np.fromiter(self.values(), np.float64, count=len(self))
        least = len(values) - int(self.limit * _KEEP_SHARE) - 1
        taken = float(np.partition(values, least)[least])
        self.shortfall += taken
        self._replace({word: n - taken for word, n in self.items() if n > taken})

    def rescale(self, divisor: float) -> None:
        """Divide all that is stored."""
        self.shortfall /= divisor
        self._replace({word: n / divisor for word, n in self.items()})

    def _replace(self, held: Mapping[str, float]) -> None:
        self.clear()  # gives the memory back, which deleting word by word would not
        self.update(held)
