"""Words that were read before they had a row, in text that is remembered as row ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import IntArray

_Id = TypeVar("_Id", np.int32, np.int64)

_MOST = 250_000
"""Words without a row that are remembered; the half that came first goes when there are more."""
NO_ROW = -1
"""The id of a word without a row."""


class LateWords:
    """Codes -2, -3, … of words without a row. Not thread-safe.

    Remembered text is row ids. A word that has none yet would be missing from all that is read
    again of its first texts, and with it the contexts of its neighbours. So it is remembered by a
    code, and the code is read as its row once it has one.
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
        for number, word in enumerate(words):
            if table[number] < 0:
                table[number] = -2 - self._code(word)
            elif word in self._codes:
                self._rows[self._codes.pop(word) - self._first] = table[number]
        return table

    def find(self, rows: Callable[[Sequence[str]], IntArray]) -> None:
        """Ask for the rows of the words that have none: int64 [n], -1 for one without still."""
        words = list(self._codes)
        for word, row in zip(words, rows(words).tolist(), strict=True):
            if row >= 0:
                self._rows[self._codes.pop(word) - self._first] = row

    def resolved(self, ids: npt.NDArray[_Id]) -> npt.NDArray[_Id]:
        """The same ids [n], rows in place of the codes of words that have one by now."""
        late = ids < NO_ROW
        if not late.any():
            return ids
        codes = -2 - ids[late].astype(np.int64) - self._first
        rows = np.where(codes >= 0, self._rows[np.maximum(codes, 0)], NO_ROW)
        resolved = ids.copy()
        resolved[late] = np.where(rows >= 0, rows, ids[late])
        return resolved

    def rows(self, ids: IntArray) -> IntArray:
        """The same ids int64 [n], rows in place of codes, NO_ROW for words without one still."""
        return np.maximum(self.resolved(ids), NO_ROW)

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
        self._rows[:-n] = self._rows[n:].copy()
        self._rows[-n:] = NO_ROW
