"""The neutral tokens that stand for personal data, addresses and emoji."""

from __future__ import annotations

import re
from collections.abc import Iterator

KINDS = ("resident", "phone", "card", "account", "email", "handle", "url", "emoji")
NEUTRAL = re.compile(r"<(?:" + "|".join(KINDS) + r")>")


def split_neutral(text: str) -> Iterator[tuple[str, bool]]:
    """Pieces of `text` in order, each with whether it is a neutral token; blank ones left out."""
    last = 0
    for found in NEUTRAL.finditer(text):
        if text[last : found.start()].strip():
            yield text[last : found.start()], False
        yield found[0], True
        last = found.end()
    if text[last:].strip():
        yield text[last:], False
