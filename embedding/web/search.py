"""Finding words: what a person types, and the nearest spellings of what nobody wrote."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from embedding.records import IntArray

NEAREST_WITHIN = 50_000
LONGEST_QUERY = 200


class Vocabulary:
    """The words of one snapshot, most frequent first."""

    def __init__(self, words: Sequence[str], counts: IntArray) -> None:
        order = np.argsort(-np.asarray(counts), kind="stable").tolist()
        self.words: list[str] = [words[at] for at in order]

    @cached_property
    def _folded(self) -> list[str]:
        return [fold(word) for word in self.words]

    @cached_property
    def _pieces(self) -> dict[str, list[int]]:
        """Words (by rank) that hold each pair of neighbouring jamo."""
        index: dict[str, list[int]] = defaultdict(list)
        for at, word in enumerate(self.words[:NEAREST_WITHIN]):
            for piece in pieces(word):
                index[piece].append(at)
        return index

    def suggest(self, query: str, n: int = 10) -> list[str]:
        """Words that are, begin with, or hold the query, in that order, frequent ones first."""
        text = fold(query)[:LONGEST_QUERY]
        if not text:
            return []
        begin: list[int] = []
        hold: list[int] = []
        for at, word in enumerate(self._folded):
            if word.startswith(text):
                begin.append(at)
            elif len(hold) < n and text in word:
                hold.append(at)
        begin.sort(key=lambda at: (self._folded[at] != text, at))
        return [self.words[at] for at in (*begin, *hold)[:n]]

    def nearest_spellings(self, word: str, n: int = 8) -> list[str]:
        """Words that share most jamo pairs (Dice) with `word`, frequent ones first when equal."""
        wanted = pieces(word[:LONGEST_QUERY])
        common: Counter[int] = Counter()
        for piece in wanted:
            common.update(self._pieces.get(piece, ()))
        scored = [
            (2 * shared / (len(wanted) + len(pieces(self.words[at]))), at)
            for at, shared in common.most_common(500)
        ]
        close = sorted((-score, at) for score, at in scored if score >= 0.35)
        return [self.words[at] for _, at in close[:n]]


def fold(text: str) -> str:
    """Composed, without case and outer blanks: how words are compared."""
    return unicodedata.normalize("NFC", text).strip().casefold()


def pieces(word: str) -> set[str]:
    """Pairs of neighbouring jamo with the word's ends marked."""
    jamo = "^" + unicodedata.normalize("NFD", fold(word)) + "$"
    return {jamo[at : at + 2] for at in range(len(jamo) - 1)}
