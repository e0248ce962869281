"""Hangul as it is typed: letters, so that a half-typed syllable finds what begins with it."""

from __future__ import annotations

import unicodedata

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
