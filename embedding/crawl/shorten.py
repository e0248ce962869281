"""A document has so many characters at most: what is made of it takes time for each."""

from __future__ import annotations

import re

_END = re.compile(r"[.!?。…][\"'”’)\]]*(?=\s)|\n")
_BLANK = re.compile(r"\s")
_NEAR = 0.8
"""A sentence that ends before this share of the limit is too far back to cut there."""


def shortened(text: str, most: int) -> str:
    """The first `most` characters at most, to the end of a sentence, else of a word."""
    if len(text) <= most:
        return text
    least = int(most * _NEAR)
    for end in (_END, _BLANK):
        # One character more: it says whether a sentence or word ends right at the limit.
        ends = [found.end() for found in end.finditer(text, least, most + 1)]
        ends = [at for at in ends if at <= most + (end is _BLANK)]
        if ends:
            return text[: ends[-1]].rstrip()
    return text[:most]
