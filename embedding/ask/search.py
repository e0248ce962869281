"""Finding words: what a person types, and the nearest spellings of what nobody wrote."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from itertools import islice

import numpy as np

from embedding.kernel.records import IntArray

NEAREST_WITHIN = 50_000
LONGEST_QUERY = 200
# Hangul as it is typed: letters, so that a half-typed syllable finds what begins with it.
INITIALS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_MEDIALS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_FINALS = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")
# What takes two keys is two letters: 닭 begins like 달, and 과 like 고.
_SINGLE = "ㄳㄵㄶㄺㄻㄼㄽㄾㄿㅀㅄㅘㅙㅚㅝㅞㅟㅢ"
_DOUBLE = "ㄱㅅㄴㅈㄴㅎㄹㄱㄹㅁㄹㅂㄹㅅㄹㅌㄹㅍㄹㅎㅂㅅㅗㅏㅗㅐㅗㅣㅜㅓㅜㅔㅜㅣㅡㅣ"
_PARTS = {letter: _DOUBLE[2 * at : 2 * at + 2] for at, letter in enumerate(_SINGLE)}
_FIRST, _SYLLABLES, _PER_INITIAL, _PER_MEDIAL = 0xAC00, 11_172, 588, 28


def _letters(number: int) -> str:
    initial, rest = divmod(number, _PER_INITIAL)
    medial, final = divmod(rest, _PER_MEDIAL)
    parts = (INITIALS[initial], _MEDIALS[medial], _FINALS[final])
    return "".join(_PARTS.get(part, part) for part in parts)


_TYPED = {_FIRST + at: _letters(at) for at in range(_SYLLABLES)} | {
    ord(letter): parts for letter, parts in _PARTS.items()
}
_ONLY_INITIALS = {_FIRST + at: INITIALS[at // _PER_INITIAL] for at in range(_SYLLABLES)}


def fold(text: str) -> str:
    """Composed, without case and outer blanks: how words are compared."""
    return unicodedata.normalize("NFC", text).strip().casefold()


def typed(folded: str) -> str:
    """The letters of a folded text one after the other: 코로 is ㅋㅗㄹㅗ."""
    return folded.translate(_TYPED)


def initials(folded: str) -> str:
    """The first letter of each syllable: 나침반 is ㄴㅊㅂ."""
    return folded.translate(_ONLY_INITIALS)


def is_initials(folded: str) -> bool:
    """Whether somebody typed first letters alone."""
    return bool(folded) and all(letter in INITIALS for letter in folded)


class SearchVocabulary:
    """The words of one snapshot, most frequent first."""

    def __init__(self, words: Sequence[str], counts: IntArray) -> None:
        order = np.argsort(-np.asarray(counts), kind="stable").tolist()
        self.words: list[str] = [words[at] for at in order]

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.words)

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

    @cached_property
    def _typed(self) -> list[str]:
        return [typed(word) for word in self._folded]

    @cached_property
    def _initials(self) -> list[str]:
        return [initials(word) for word in self._folded]

    def suggest(self, query: str, n: int = 10) -> list[str]:
        """Words for what was typed so far: the word itself, words that begin with it (in letters:
        나치 begins 나침반, ㄴㅊㅂ are its first letters), words that hold it. Frequent ones first.
        """
        text = fold(query)[:LONGEST_QUERY]
        if not text:
            return []
        if is_initials(text) and len(text) > 1:
            same = [at for at, word in enumerate(self._initials) if word.startswith(text)]
            return [self.words[at] for at in same[:n]]
        letters = typed(text)
        begin = [at for at, word in enumerate(self._typed) if word.startswith(letters)]
        begin.sort(key=lambda at: (self._folded[at] != text, at))
        hold: list[int] = []
        if len(begin) < n:
            seen = set(begin)
            holding = (
                at for at, word in enumerate(self._folded) if text in word and at not in seen
            )
            hold = list(islice(holding, n))
        return [self.words[at] for at in (*begin, *hold)[:n]]

    def example(self, words: Sequence[str] = ()) -> str:
        """First letters that find a word: of the first of `words`, or of the frequent ones, that is
        three syllables long or more; empty where none is.
        """
        known = (word for word in (*words, *self.words) if len(word) > 2 and word in self._known)
        letters_of = (initials(fold(word)) for word in known)
        return next((letters for letters in letters_of if is_initials(letters)), "")

    def exact(self, query: str) -> str | None:
        """The word that was typed; one that differs by case or composition alone when it is the
        only one.
        """
        if query in self._known:
            return query
        text = fold(query)
        same = [at for at, word in enumerate(self._folded) if word == text] if text else []
        return self.words[same[0]] if len(same) == 1 else None

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


def pieces(word: str) -> set[str]:
    """Pairs of neighbouring jamo with the word's ends marked."""
    jamo = "^" + unicodedata.normalize("NFD", fold(word)) + "$"
    return {jamo[at : at + 2] for at in range(len(jamo) - 1)}
