"""Which morphemes are words worth a vector, and in which form.

Kept by default are content words, because particles and endings say how a sentence is built and
not what it is about:

- NNG NNP (nouns; new words come out as these), NR (number words), NP (pronouns), XR (roots such as
  영리 in 영리하다), SL (foreign words, in lower case), SH (Chinese characters);
- VV VA as dictionary forms with -다 (먹다, 좋다), so that the noun 가 and the verb 가다 differ;
- MAG (adverbs, with 안 and 못: negation is opinion), IC (interjections), W_HASHTAG without #;
- SW and SO only where they are emoji or laughing and crying letters (ㅋㅋ, ㅠㅠ): opinion again.

Left out: particles J*, endings E*, suffixes XS*, dependent nouns NNB (것, 수), auxiliary verbs VX,
copulas VCP VCN, determiners MM, conjunctions MAJ, digits SN, punctuation. A verb made of a noun and
하다 is kept as its noun (시작/NNG + 하/XSV → 시작). A prefix joins its noun (비 + 정규직 →
비정규직): it often turns the meaning round. Nouns of one syllable that touch are one word (꿀 + 잼
→ 꿀잼): so new words are made, and Kiwi takes them apart. Other compounds stay as Kiwi sees them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

TAGS = (
    *("NNG", "NNP", "NNB", "NR", "NP", "VV", "VA", "VX", "VCP", "VCN", "MM", "MAG", "MAJ", "IC"),
    *("JKS", "JKC", "JKG", "JKO", "JKB", "JKV", "JKQ", "JX", "JC"),
    *("EP", "EF", "EC", "ETN", "ETM", "XPN", "XSN", "XSV", "XSA", "XSM", "XR"),
    *("SF", "SP", "SS", "SSO", "SSC", "SE", "SO", "SW", "SB", "SL", "SH", "SN"),
    *(
        "UN",
        "W_HASHTAG",
        "W_EMOJI",
        "W_URL",
        "W_EMAIL",
        "W_MENTION",
        "W_SERIAL",
        "Z_CODA",
        "Z_SIOT",
    ),
)
"""The tag set of Kiwi: the Sejong tags and its own W_*, Z_* and UN."""

CONTENT_TAGS = (
    *("NNG", "NNP", "NR", "NP", "XR", "SL", "SH", "VV", "VA", "MAG", "IC"),
    *("W_HASHTAG", "W_EMOJI", "SW", "SO", "UN"),
)
"""The tags kept by default."""

Select = Callable[[str, str], str | None]


class Morpheme(Protocol):
    """What Kiwi gives: a surface of `len` characters from `start` on, analysed as form and tag."""

    form: str
    tag: str
    start: int
    len: int


def join(tokens: Iterable[Morpheme]) -> Iterator[tuple[str, str, int]]:
    """(form, tag, number of the first) of the morphemes, prefixes and one-syllable nouns joined."""
    form, tag, first, end = "", "", 0, -1
    single = False
    for at, token in enumerate(tokens):
        start, length, own = token.start, token.len, token.tag
        noun = length == 1 and own in _NOUNS
        if start == end and (tag == "XPN" or (single and noun)):
            tag = own if tag == "XPN" else tag
            form, end, single = form + token.form, start + length, single and noun
            continue
        if form:
            yield form, tag, first
        form, tag, first, end = token.form, own, at, start + length
        single = noun
    if form:
        yield form, tag, first


_NOUNS = ("NNG", "NNP")
_EXPRESSIVE = re.compile(r"[ㄱ-ㅎㅏ-ㅣ☀-➿⬀-⯿🌀-🫿🇦-🇿‼⁉♡♥^;]+")


def make_select(keep: tuple[str, ...], min_length: int, max_length: int) -> Select:
    """A function (form, tag) → the word to keep, or None."""
    kept = frozenset(keep)

    def select(form: str, tag: str) -> str | None:
        base = tag.partition("-")[0]  # VV-I, VA-R: (ir)regular conjugation
        if base not in kept:
            return None
        if base in ("VV", "VA", "VX", "VCN"):
            return form + "다" if len(form) <= max_length else None
        if base == "SL":
            form = form.lower()
        elif base == "W_HASHTAG":
            form = form.lstrip("#")
        elif base in ("SW", "SO") and not _EXPRESSIVE.fullmatch(form):
            return None
        return form if min_length <= len(form) <= max_length else None

    return select
