"""Reading an eojeol that was never met from parts that were: a head and a tail of particles.

국회의원에게서도 is read as 국회의원 (a head met in 국회의원은) and 에게서도 (a tail met behind
other heads). Head and tail fit when the tail was met behind a head of the same class and of the
same final sound, as the form of a particle depends on it. Only what can be read in one way is
answered.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from embedding.text.eojeols import Analysis, EojeolReading
from embedding.text.generations import Generations
from embedding.text.morphemes import TOUCHES_BEHIND, Morpheme
from embedding.text.newwords import WordFinder

K = TypeVar("K")
V = TypeVar("V")

_ENTRY = 560
_VARIANT = 180
"""Bytes of a head or tail read in one way, and of one way more."""

_LEAST = 30
"""Product of the occurrences of head and tail below which a reading is not trusted."""
_SYLLABLE = 0xAC00
_NOMINAL = frozenset(("NNG", "NNP", "NNB", "NP", "NR", "XSN", "SL", "SH", "SN"))
_FUNCTIONAL = ("J", "E", "XS", "VC", "VX", "SF", "SP", "SS", "SE")


def ending(morpheme: Morpheme) -> str:
    """What a morpheme at the end of an eojeol shows to the next one: particle, or only its tag."""
    tag = morpheme.tag
    return sys.intern(morpheme.form + tag if tag.startswith(_FUNCTIONAL) else tag)


@dataclass(frozen=True, slots=True)
class Analysed:
    """Morphemes of one eojeol in its sentence.

    tokens  its morphemes; words  by morpheme, the words kept that begin with it
    base    where in the analysed text the eojeol begins
    """

    tokens: Sequence[Morpheme]
    words: Sequence[Analysis]
    base: int

    def reading(self) -> EojeolReading:
        """What is kept of it, and the ending it shows."""
        last = ending(self.tokens[-1]) if self.tokens else ""
        return EojeolReading(tuple(chain.from_iterable(self.words)), last)


def _weigh(_: object, spellings: Sized) -> int:
    return _ENTRY + _VARIANT * max(0, len(spellings) - 1)


class EojeolComposer:
    """Heads and tails met so far; `capacity` bytes, two thirds of them for heads. `finder` hears of
    them."""

    def __init__(self, capacity: int, finder: WordFinder | None = None) -> None:
        self._finder = finder
        self._heads: Generations[str, dict[tuple[Analysis, str], int]] = Generations(
            capacity * 2 // 3, _weigh
        )
        self._tails: Generations[tuple[str, int], dict[tuple[Analysis, str, str], int]] = (
            Generations(capacity // 3, _weigh)
        )

    @property
    def memory(self) -> int:
        """Bytes held, by reckoning."""
        return self._heads.weight + self._tails.weight

    def tail(self, head: str, tail: str) -> EojeolReading | None:
        """How `tail` is read behind the noun `head`; None for what was never met behind a noun."""
        tails = self._tails.get((tail, _final(head[-1])))
        nominal = {found: n for found, n in (tails or {}).items() if found[1] == "N"}
        if not nominal:
            return None
        found, _, last = max(nominal, key=nominal.__getitem__)
        return EojeolReading(found, last)

    def learn(self, part: str, key: str, analysed: Analysed) -> None:
        """Take an analysed eojeol apart; `key` is what is remembered of it."""
        offset = part.find(key)
        tokens, words = analysed.tokens, analysed.words
        if offset < 0 or not tokens:  # figures were made alike, and places moved
            return
        begin = analysed.base + offset
        end = begin + len(key)
        inside = [at for at, token in enumerate(tokens) if begin <= token.start < end]
        if not inside:
            return
        tokens = tokens[inside[0] : inside[-1] + 1]
        words = words[inside[0] : inside[-1] + 1]
        at = _cut(tokens)
        if at == len(tokens):
            _count(self._heads, key, (_closed(_kept(words)), _kind(tokens[-1].tag)))
            self._hear(key, "", tokens, words)
            return
        place = tokens[at].start - begin
        if at == 0 or place <= 0:
            return
        kind = _kind(tokens[at - 1].tag)
        _count(self._heads, key[:place], (_closed(_kept(words[:at])), kind))
        if not tokens[at].tag.startswith("E"):
            # Behind an ending stands a verb: 못하-는, 못하-지, 못하-고 make no noun of 못하.
            self._hear(key[:place], key[place:], tokens[:at], words[:at])
        tail = (_kept(words[at:]), kind, ending(tokens[-1]))
        _count(self._tails, (key[place:], _final(key[place - 1])), tail)

    def _hear(
        self, head: str, tail: str, tokens: Sequence[Morpheme], words: Sequence[Analysis]
    ) -> None:
        if self._finder is not None:
            whole = [piece.word for piece in _kept(words)] == [head]
            self._finder.hear(head, tail, tokens, whole=whole)

    def read(self, eojeol: str) -> EojeolReading | None:
        """The one way to read `eojeol`, None when there is none or more than one."""
        found: dict[Analysis, int] = {}
        shown: dict[Analysis, str] = {}
        for place in range(1, len(eojeol)):
            tails = self._tails.get((eojeol[place:], _final(eojeol[place - 1])))
            heads = self._heads.get(eojeol[:place]) if tails else None
            if not heads or not tails:
                continue
            for (words, kind), often in heads.items():
                for (more, behind, last), times in tails.items():
                    if behind == kind:
                        both = words + more
                        found[both] = found.get(both, 0) + often * times
                        shown[both] = last
        if not found:
            return None
        best = next(iter(found))
        if len(found) > 1 or found[best] < _LEAST:
            return None
        return EojeolReading(best, shown[best])


def _cut(tokens: Sequence[Morpheme]) -> int:
    """Number of morphemes that belong to the head: up to the last content morpheme, and those that
    melt with it (했 is 하 and 었)."""
    at = len(tokens)
    while at and tokens[at - 1].tag.startswith(_FUNCTIONAL):
        at -= 1
    if at == 0:
        return 0
    end = max(token.start + token.len for token in tokens[:at])
    while at < len(tokens) and tokens[at].start < end:
        end = max(end, tokens[at].start + tokens[at].len)
        at += 1
    return at


def _kept(words: Sequence[Analysis]) -> Analysis:
    return tuple(chain.from_iterable(words))


def _closed(words: Analysis) -> Analysis:
    """The words of a head that has a tail: its last one does not end the eojeol."""
    if not words or not words[-1].edges & TOUCHES_BEHIND:
        return words
    last = words[-1]
    return (*words[:-1], last._replace(edges=last.edges & ~TOUCHES_BEHIND))


def _kind(tag: str) -> str:
    base = tag.partition("-")[0]
    return "N" if base in _NOMINAL else base


def _final(letter: str) -> int:
    """What a particle's form depends on: 0 no final consonant, 1 ㄹ, 2 another, -1 no Hangul."""
    at = ord(letter) - _SYLLABLE
    if not 0 <= at < 11_172:
        return -1
    final = at % 28
    return 0 if final == 0 else 1 if final == 8 else 2


def _count(held: Generations[K, dict[V, int]], key: K, value: V) -> None:
    counts = held.get(key)
    if counts is None:
        held.put(key, {value: 1})
        return
    if value not in counts:
        held.grew(_VARIANT)
    counts[value] = counts.get(value, 0) + 1
