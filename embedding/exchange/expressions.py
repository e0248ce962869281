"""Phrases in the header of a push: what nodes found to be one expression."""

from __future__ import annotations

import math
from collections.abc import Sequence

from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Phrase

_MOST = 100_000
"""Phrases that one push may name."""
_MOST_PARTS = 16
_LONGEST = 1_000
"""Characters of a phrase, and of a part of one."""


def phrase_header(phrases: Sequence[Phrase]) -> list[list[object]]:
    """[word, parts, since, joined, earlier] of each."""
    return [[p.word, list(p.parts), p.since, p.joined, p.earlier] for p in phrases]


def phrases_of(rows: object) -> tuple[Phrase, ...]:
    """Inverse of `phrase_header`; RefusedError for what is none."""
    if not isinstance(rows, list) or len(rows) > _MOST:
        raise RefusedError(f"push: `phrases` must be a list of at most {_MOST:,} rows.")
    return tuple(map(_phrase, rows))


def _phrase(row: object) -> Phrase:
    if not (isinstance(row, list) and len(row) == 5):
        raise RefusedError("push: a phrase is [word, parts, since, joined, earlier].")
    word, parts, since, joined, earlier = row
    if not (isinstance(parts, list) and 2 <= len(parts) <= _MOST_PARTS):
        raise RefusedError(f"push: a phrase has 2 to {_MOST_PARTS} parts.")
    if not all(isinstance(each, str) and 0 < len(each) <= _LONGEST for each in (word, *parts)):
        raise RefusedError(f"push: a phrase and its parts are words of 1 to {_LONGEST} characters.")
    if not all(type(when) in (int, float) and math.isfinite(when) for when in (since, joined)):
        raise RefusedError("push: the times of a phrase must be Unix seconds.")
    if type(earlier) is not int or not 0 <= earlier < 2**53:
        raise RefusedError("push: the earlier documents of a phrase must be a whole number.")
    return Phrase(word, tuple(parts), float(since), float(joined), earlier)
