"""A sentence as words, and which of them touch in the text, so that phrases can be found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from embedding.text.eojeols import EojeolReading
from embedding.text.morphemes import MARKS, TOUCHES_BEFORE, TOUCHES_BEHIND

_END = re.compile(r"(?:(?<=[.!?。])|(?<=[.!?。][\"')\]”’」』]))\s+|\n+")
_LONGEST = 60  # characters of one whitespace-delimited word; longer ones are debris


def split_sentences(text: str) -> list[str]:
    """Sentences without outer blanks; none is empty."""
    return [part for part in (piece.strip() for piece in _END.split(text)) if part]


def eojeols(sentence: str) -> list[str]:
    """Whitespace-delimited words; overlong ones (no spaces, encoded data) are cut into pieces."""
    words = sentence.split()
    if len(sentence) <= _LONGEST or all(len(word) <= _LONGEST for word in words):
        return words
    return [word[i : i + _LONGEST] for word in words for i in range(0, len(word), _LONGEST)]


APART, BLANK, TOUCHES = 0, 1, 2
"""How a word stands to the one before it: something lies between them, a blank alone, nothing."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The words of one sentence, n of them.

    words     in dictionary form
    surfaces  as a noun phrase would hold each, "" where a word is no part of one
    links     APART, BLANK or TOUCHES: how each stands to the word before it
    """

    words: list[str]
    surfaces: list[str] = field(default_factory=list)
    links: list[int] = field(default_factory=list)


def linked(parts: Sequence[str], readings: Sequence[EojeolReading | None]) -> Passage:
    """The passage of a sentence's eojeols `parts`, read as `readings`."""
    words: list[str] = []
    surfaces: list[str] = []
    links: list[int] = []
    open_ = False  # a phrase may go on from the eojeol before
    for part, reading in zip(parts, readings, strict=True):
        pieces = reading.pieces if reading is not None else ()
        if not pieces:
            open_ = False
            continue
        link = BLANK if open_ and part[0] not in MARKS else APART
        for word, surface, edges in pieces:
            words.append(word)
            surfaces.append(surface)
            links.append(link if edges & TOUCHES_BEFORE else APART)
            link = TOUCHES
        open_ = bool(surface and edges & TOUCHES_BEHIND) and part[-1] not in MARKS
    return Passage(words, surfaces, links)
