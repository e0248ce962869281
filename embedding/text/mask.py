"""Replace personal data by neutral tokens before anything else sees the text.

Resident and foreigner registration numbers, phone numbers, cards, bank accounts, e-mail addresses,
handles; web addresses too, because they carry names and account numbers. A number is masked whether
or not its check digit is right: people mistype, and since October 2020 registration numbers are
given out without one.

Not found here: names of people and street addresses (they have no shape to go by), and the public
service numbers 15xx-xxxx to 18xx-xxxx (they belong to companies and look like spans of years).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from embedding.text import shapes
from embedding.text.neutral import NEUTRAL

MASK_VERSION = "4"


@dataclass(frozen=True)
class Masked:
    """A text without personal data, and how many pieces of each kind it held."""

    text: str
    counts: Mapping[str, int] = field(default_factory=dict)


Patterns = tuple[tuple[str, str, re.Pattern[str]], ...]


def _compiled(*groups: tuple[str, tuple[str, ...]]) -> Patterns:
    return tuple((f" <{kind}>", kind, re.compile(one)) for kind, group in groups for one in group)


# Order matters: an address may hold a number, a card holds others and has the shape of an account.
_ADDRESSES = _compiled(("url", shapes.URL), ("email", shapes.EMAIL))
_NUMBERS = _compiled(("card", shapes.CARD), ("resident", shapes.RESIDENT), ("phone", shapes.PHONE))
_OTHERS = _compiled(("account", shapes.ACCOUNT), ("handle", shapes.HANDLE))
_SAID = re.compile(shapes.SAID)
_BLANK = re.compile(r" ")
_WORTH_A_LOOK = re.compile(
    r"[0-9](?:[^0-9\n]{0,4}[0-9]){5}|@|://|www\.|골뱅이|[앳엣][A-Za-z]|[0공영][1일][0-9공영일육칠팔구]"
    r"|[oO][1lI]|[공영일이삼사오육륙칠팔구]{6}"
    r"|[A-Za-z]#[0-9]|[A-Za-z0-9]#[0-9]{4}|[A-Za-z0-9] ?#[a-z]"
    rf"|[{shapes.TOLD}]{{3}}{shapes.BETWEEN}[{shapes.TOLD}0-9]{{2}}"
    rf"|[{shapes.TOLD}][0-9][{shapes.TOLD}]|[0-9]{{2}}{shapes.BETWEEN}[{shapes.TOLD}]{{3}}"
    r"|(?:아이디|아디|계정|톡|ㅋㅌ|텔레|그램|라인|인스타|트위터|위챗|디스코드|디코|스카이프)"
    r"[^가-힣\n]{0,4}(?:[은는]|친구 ?추가|친추|추가)?[^가-힣\n]{0,2}[A-Za-z0-9]"
    r"|[A-Za-z0-9_] ?(?:카카오톡|카톡|까톡|텔레|라인|인스타|트위터|위챗|디스코드|디코)"
    r"|(?i:[(\[{]at[)\]}]| at |\bid\b|kakao|telegram|insta|wechat|discord|\bline\b)"
)
_TAIL = re.compile(rf"({NEUTRAL.pattern})({shapes.PARTICLE}(?![가-힣]))?")


def mask(text: str) -> Masked:
    """Replace personal data in normalised text (see `normalise`) by `<phone>` and its like.

    The tokens stand between blanks; a particle glued to what was replaced goes with it, for alone
    it would be read as a word.
    """
    if not _WORTH_A_LOOK.search(text):
        return Masked(text)
    counts: Counter[str] = Counter()
    text = _apply(_ADDRESSES, text, counts)
    text = _SAID.sub(lambda run: _said(run[0], counts), text)
    text = _apply(_NUMBERS + _OTHERS, text, counts)
    if counts:
        text = _TAIL.sub(r"\1 ", text)
    return Masked(text, dict(counts))


def _apply(patterns: Patterns, text: str, counts: Counter[str]) -> str:
    for token, kind, pattern in patterns:
        text, found = _replace(text, token, pattern)
        if found:
            counts[kind] += found
    return text


def _said(run: str, counts: Counter[str]) -> str:
    """`run` with its number masked when it is one once all its digits are written as digits.

    Its first and last letters may be those of words around it (3일, 공일공; 칠팔 이 사람), so that
    parts of it are tried after the whole.
    """
    written = run.translate(shapes.DIGITS)
    if written == run:
        return run
    begins = [0, *(gap.end() for gap in _BLANK.finditer(run))][:3]
    for begin in begins:
        for end in range(len(run), max(len(run) - 9, begin), -1):
            if written[begin:end] == run[begin:end]:
                break
            if run[end - 1 : end + 1].isdecimal() and end < len(run):
                continue
            found: Counter[str] = Counter()
            masked = _apply(_NUMBERS, written[begin:end], found)
            if NEUTRAL.fullmatch(masked.strip()):
                counts.update(found)
                return run[:begin] + masked + run[end:]
    return run


def _replace(text: str, token: str, pattern: re.Pattern[str]) -> tuple[str, int]:
    """Put `token` for each match; what stands in a group stays, and with `other` all of it."""
    if "other" not in pattern.groupindex:
        return pattern.subn(rf"\g<1>{token}" if pattern.groups else token, text)
    found = 0

    def put(match: re.Match[str]) -> str:
        nonlocal found
        if match["other"] is not None:
            return match[0]
        found += 1
        return token

    return pattern.sub(put, text), found
