"""Tell Korean from other text by script."""

from __future__ import annotations

import re

_HANGUL = re.compile(r"[가-힣]+")
_LETTERS = re.compile(r"[^\W\d_]+")
KOREAN_SHARE = 0.2
"""Share of Hangul among letters from which a text is Korean: news mixes in Latin names freely."""


def hangul_share(text: str, limit: int = 4_000) -> float:
    """Share of Hangul syllables among the letters of the first `limit` characters; 0 without."""
    head = text[:limit]
    letters = sum(map(len, _LETTERS.findall(head)))
    return sum(map(len, _HANGUL.findall(head))) / letters if letters else 0.0


def is_korean(text: str, language: str | None = None) -> bool:
    """Whether to analyse as Korean: by script, and by the declared language where there are few
    letters to judge from."""
    share = hangul_share(text)
    if share == 0.0:
        return False
    declared = (language or "").lower()[:2] == "ko"
    return share >= (KOREAN_SHARE / 4 if declared else KOREAN_SHARE)
