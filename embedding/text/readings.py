"""What an eojeol is read as without asking the morpheme analyser, and what is learnt from it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from embedding.text.compose import Analysed, EojeolComposer
from embedding.text.config import TextConfig
from embedding.text.eojeols import EojeolCache, EojeolReading
from embedding.text.morphemes import (
    MARKS,
    TOUCHES_BEFORE,
    TOUCHES_BEHIND,
    Piece,
)
from embedding.text.neutral import NEUTRAL
from embedding.text.newwords import LEAST, MOST, WordFinder

_FIGURES = re.compile(r"[0-9]+")
_PLAIN_ONLY = frozenset(("SN", "SF", "SP", "SS", "SSO", "SSC", "SE", "SB", "W_SERIAL"))
GUESS_CHECK = 2
"""Occurrence at which an eojeol that was put together from parts is analysed after all."""


_NEVER = 0
"""Occurrence of the check of a reading that is not the analyser's to say."""


class Readings:
    """The cache of eojeols, and the parts that unknown ones are put together from.

    Marks around an eojeol are left out and figures are alike, as long as no such thing is kept.
    """

    def __init__(self, config: TextConfig) -> None:
        # A half for words, a third for their parts, a sixth for candidates: near to how they grow.
        room = config.cache_mb * 1_000_000
        self._cache = EojeolCache(room * 6 // 12)
        self._finder = WordFinder(room * 2 // 12) if config.new_words else None
        self._composer = EojeolComposer(room * 4 // 12, self._finder)
        self._most_found, self._every = config.new_words, config.new_words_every
        self._looked = 0
        self.found: frozenset[str] = frozenset()
        folds = not _PLAIN_ONLY.intersection(config.keep_tags)
        self._marks = MARKS if folds else ""
        self._folds = folds
        self.composed = 0

    @property
    def hit_rate(self) -> float:
        """Share of eojeols that were read without an analysis."""
        read = self._cache.hits + self.composed
        return read / max(1, self._cache.hits + self._cache.misses)

    def figures(self) -> dict[str, int]:
        """Eojeols held, those that had to go for others, and the bytes of everything held."""
        memory = self._cache.memory + self._composer.memory
        return {
            "cached_words": len(self._cache),
            "forgotten_words": self._cache.forgotten,
            "cache_bytes": memory + (self._finder.memory if self._finder is not None else 0),
        }

    def renew(self) -> bool:
        """Take the words found into the dictionary, when it is time; whether there were any.

        A found word is put together with its particles here: the analyser, which would need
        seconds for each word, is not told.
        """
        cache = self._cache
        if self._finder is None or cache.hits + cache.misses < self._looked + self._every:
            return False
        self._looked = cache.hits + cache.misses
        fresh = self._finder.take(self._most_found - len(self.found))
        if not fresh:
            return False
        self.found |= frozenset(fresh)
        cache.forget(tuple(fresh))
        return True

    def look_up(self, parts: Sequence[str]) -> list[EojeolReading | None]:
        """Readings of the eojeols of a sentence, None where the analyser has to say."""
        known: list[EojeolReading | None] = []
        before: str | None = ""
        for part in parts:
            if part[0] == "<" and NEUTRAL.fullmatch(part):
                reading: EojeolReading | None = EojeolReading((Piece(part),), "<>")
            else:
                reading = self._read(part, before)
            known.append(reading)
            before = None if reading is None else reading.ending
        return known

    def learn(self, part: str, before: str, analysed: Analysed) -> EojeolReading:
        """Remember an analysis made in context; `before` is the ending of the eojeol before."""
        reading = analysed.reading()
        key = self._key(part)
        if key:
            self._cache.learn(key, before, reading)
            self._composer.learn(part, key, analysed)
        return reading

    def _read(self, part: str, before: str | None) -> EojeolReading | None:
        key = self._key(part)
        if not key:
            return EojeolReading((), part[-1])
        reading = self._cache.get(key, before)
        if reading is None and not self._cache.knows(key):
            reading, check = self._found(key), _NEVER
            if reading is None:
                reading, check = self._composer.read(key), GUESS_CHECK
            if reading is not None:
                self.composed += 1
                self._cache.put(key, before or "", reading, check)
        return reading

    def _found(self, key: str) -> EojeolReading | None:
        """The reading of an eojeol that is a found word with or without particles."""
        for end in range(min(len(key), MOST), LEAST - 1, -1) if self.found else ():
            word = key[:end]
            if word in self.found:
                if end == len(key):
                    whole = Piece(word, word, TOUCHES_BEFORE | TOUCHES_BEHIND)
                    return EojeolReading((whole,), "NNP")
                tail = self._composer.tail(word, key[end:])
                if tail is not None:
                    head = Piece(word, word, TOUCHES_BEFORE)
                    return EojeolReading((head, *tail.pieces), tail.ending)
        return None

    def _key(self, part: str) -> str:
        """The eojeol as it is remembered; "" for marks alone."""
        key = part.strip(self._marks) if self._marks else part
        if self._folds and not key.isalpha():
            key = _FIGURES.sub("0", key)
        return key

    def __len__(self) -> int:
        return len(self._cache)
