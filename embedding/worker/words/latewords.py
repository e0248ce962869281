"""Words that were read before they had a row, in text that is remembered as row ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import CodeArray, IntArray

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

    def find(
        self, rows: Callable[[Sequence[str]], IntArray]
    ) -> Callable[[CodeArray], CodeArray] | None:
        """Ask for the rows of the words that have none: int64 [n], -1 for one without still.

        Says how remembered ids [n] are to be read, once, from now on: words that still wait have
        the first codes again, so that those which got their rows take no room. None: as before.
        """
        words = list(self._codes)
        for word, row in zip(words, rows(words).tolist(), strict=True):
            if row >= 0:
                self._rows[self._codes.pop(word) - self._first] = row
        if len(self._codes) == self._next - self._first:
            return None
        table, first = self._rows, self._first
        codes = np.fromiter(self._codes.values(), np.int64, len(self._codes))
        table[codes - first] = -2 - np.arange(len(codes))
        self._codes = dict(zip(self._codes, range(len(codes)), strict=True))
        self._rows = np.full_like(table, NO_ROW)
        self._first, self._next = 0, len(codes)
        return lambda ids: _read(ids, table, first)

    def rows(self, ids: IntArray) -> IntArray:
        """The same ids int64 [n], rows in place of codes, NO_ROW for words without one still."""
        return _read(ids, self._rows, self._first)

    def _code(self, word: str) -> int:
        if word in self._codes:
            return self._codes[word]
        if self._next - self._first == len(self._rows):
            n = len(self._rows) // 2 + 1
            self._first += n
            self._codes = {word: code for word, code in self._codes.items() if code >= self._first}
            self._rows[:-n] = self._rows[n:].copy()
            self._rows[-n:] = NO_ROW
        self._codes[word] = self._next
        self._next += 1
        return self._next - 1


def _read(ids: npt.NDArray[Any], table: IntArray, first: int) -> npt.NDArray[Any]:
    """The same ids [n]; in place of codes what `table` has for them, from code `first` on."""
    late = ids < NO_ROW
    if not late.any():
        return ids
    codes = -2 - ids[late].astype(np.int64) - first
    read = ids.copy()
    read[late] = np.where(codes >= 0, table[np.maximum(codes, 0)], NO_ROW)
    return read
