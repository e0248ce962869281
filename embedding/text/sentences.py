"""Cut normalised text into sentences by punctuation and lines.

A rule, not a model: windows of a few words hardly notice a missed end, and the analyser's own
splitter would analyse every text twice.
"""

from __future__ import annotations

import re

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
    return [word[at : at + _LONGEST] for word in words for at in range(0, len(word), _LONGEST)]
