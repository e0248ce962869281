"""Words that were read before they had a row, in the text of a replay memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedding.kernel.records import IntArray

_MOST = 250_000
"""Words without a row that are remembered; the half that came first goes when there are more."""
NO_ROW = -1
"""The id of a word without a row."""


class LateWords:
    """Codes -2, -3, … of words without a row. Not thread-safe.

    A replay memory holds row ids. A word that has none yet would be missing from all that is
    rehearsed of its first texts, and with it the contexts of its neighbours. So it is remembered
    by a code, and the code is read as its row once it has one.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._codes: dict[str, int] = {}
        self._rows: IntArray = np.full(most, NO_ROW, dtype=np.int64)
        self._first = self._next = 0

    def __len__(self) -> int:
        return len(self._codes)

    def coded(self, words: Sequence[str], table: IntArray) -> IntArray:
        """int64 [W]: the row id of each word of a block (of `table`, -1: none), or its code."""
        table = table.copy()
        for at, word in enumerate(words):
            if table[at] < 0:
                table[at] = -2 - self._code(word)
            elif word in self._codes:
                self._rows[self._codes.pop(word) - self._first] = table[at]
        return table

    def rows(self, ids: IntArray) -> IntArray:
        """The same ids int64 [n], rows in place of codes, NO_ROW for words without one still."""
        late = ids < NO_ROW
        if not late.any():
            return ids
        places = -2 - ids[late] - self._first
        found = ids.copy()
        found[late] = np.where(places >= 0, self._rows[np.maximum(places, 0)], NO_ROW)
        return found

    def _code(self, word: str) -> int:
        if word in self._codes:
            return self._codes[word]
        if self._next - self._first == len(self._rows):
            self._drop(len(self._rows) // 2 + 1)
        self._codes[word] = self._next
        self._next += 1
        return self._next - 1

    def _drop(self, n: int) -> None:
        self._first += n
        self._codes = {word: code for word, code in self._codes.items() if code >= self._first}
        kept = self._rows[n:].copy()
        self._rows[:] = NO_ROW
        self._rows[: len(kept)] = kept
