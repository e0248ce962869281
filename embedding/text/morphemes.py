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
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

MORPHEME_TAGS = (
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


@dataclass(slots=True)
class MorphemePart:
    """A `Morpheme` that is a part of what an analyser gave."""

    form: str
    tag: str
    start: int
    len: int


class Piece(NamedTuple):
    """A word kept of an eojeol, and how it is written there.

    word     in its dictionary form
    surface  as a noun phrase holds it, with the suffix or the nominal ending that belongs to it
             (사회 is written 사회적, 두다 is written 두기); "" where it is no part of one
    edges    TOUCHES_BEFORE and TOUCHES_BEHIND, added
    """

    word: str
    surface: str = ""
    edges: int = 0


TOUCHES_BEFORE = 1
"""Nothing stands between this piece and the piece before it, or the beginning of the eojeol."""
TOUCHES_BEHIND = 2
"""Nothing stands between this piece and the end of the eojeol."""
MARKS = ".,!?\"'()[]{}“”‘’…「」『』《》〈〉·:~/-"
"""Marks at the ends of an eojeol that do not change how it is read."""
_PHRASAL = frozenset(("NNG", "NNP", "XR", "SL", "SH"))
_VERBAL = frozenset(("VV", "VA"))
_MAKES_VERBS = frozenset(("XSV", "XSA", "XSM", "VCN"))
_PLURAL = "들"
_RELATIONAL = frozenset("속상하중내외간전후시측때앞뒤밖안위밑옆쪽")
"""Nouns of one syllable that say where or when the noun before them is: they end a phrase."""


def join(tokens: Iterable[Morpheme]) -> Iterator[tuple[str, str, int]]:
    """(form, tag, number of the first) of the morphemes, prefixes and one-syllable nouns joined."""
    form, tag, first, end = "", "", 0, -1
    single = False
    for number, token in enumerate(tokens):
        start, length, own = token.start, token.len, token.tag
        noun = length == 1 and own in _NOUNS
        if start == end and (tag == "XPN" or (single and noun)):
            tag = own if tag == "XPN" else tag
            form, end, single = form + token.form, start + length, single and noun
            continue
        if form:
            yield form, tag, first
        form, tag, first, end = token.form, own, number, start + length
        single = noun
    if form:
        yield form, tag, first


_NOUNS = ("NNG", "NNP")
_EXPRESSIVE = re.compile(r"[ㄱ-ㅎㅏ-ㅣ☀-➿⬀-⯿🌀-🫿🇦-🇿‼⁉♡♥^;]+")


def make_select(keep: tuple[str, ...], min_length: int, max_length: int) -> Select:
    """A function (form, tag) → the word to keep, or None."""
    wanted = frozenset(keep)

    def select(form: str, tag: str) -> str | None:
        base = tag.partition("-")[0]  # VV-I, VA-R: (ir)regular conjugation
        if base not in wanted:
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


def pieces(
    text: str, begin: int, end: int, tokens: Sequence[Morpheme], select: Select
) -> Iterator[tuple[int, Piece]]:
    """The words kept of the eojeol `text[begin:end]`, each with the number of its first morpheme.

    tokens  the morphemes of the eojeol, placed in `text`; Kiwi finds none in U+2800
    """
    parts = [*join(tokens), ("", "", len(tokens))]
    touched = -1  # the end of the piece before, where that may be a part of a phrase
    for (form, tag, first), (_, _, after) in pairwise(parts):
        word = select(form, tag)
        if word is None:
            continue
        start = tokens[first].start
        close = _close(text, start, tokens, tag.partition("-")[0], after, select)
        if close < 0 or (start > begin and text[start - 1].isdigit()):  # 1인 시위
            touched = -1
            yield first, Piece(sys.intern(word))
            continue
        before = start == touched or (touched < 0 and not text[begin:start].strip(MARKS))
        behind = not text[close:end].strip(MARKS)
        edges = TOUCHES_BEFORE * before + TOUCHES_BEHIND * behind
        surface = sys.intern(text[start:close].lower())
        yield first, Piece(sys.intern(word), surface, edges)
        touched = close


def _close(
    text: str, start: int, tokens: Sequence[Morpheme], base: str, after: int, select: Select
) -> int:
    """Where the surface of a piece ends; -1 where it is no part of a phrase.

    start  where the piece begins; after  number of the first morpheme behind it
    """
    close = tokens[after - 1].start + tokens[after - 1].len
    if base in _VERBAL:
        if after == len(tokens) or tokens[after].tag != "ETN" or tokens[after].start != close:
            return -1
        close, after = close + tokens[after].len, after + 1
    elif base not in _PHRASAL or (close - start == 1 and text[start] in _RELATIONAL):
        return -1
    while after < len(tokens) and tokens[after].start == close:
        token = tokens[after]
        tag, end = token.tag.partition("-")[0], close + token.len
        if tag in _MAKES_VERBS:
            return -1
        suffix = tag == "XSN" and token.form != _PLURAL
        # Behind a dependent noun another may follow, as in n번방.
        following = tokens[after + 1 : after + 2] if tag == "NNB" else ()
        goes_on = any(t.start == end and t.tag.partition("-")[0] in _PHRASAL for t in following)
        if not suffix and not goes_on:
            break
        if select(token.form, tag) is not None:  # a word of its own
            break
        close, after = end, after + 1
    return close
