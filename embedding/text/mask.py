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

MASK_VERSION = "3"


@dataclass(frozen=True)
class Masked:
    """A text without personal data, and how many pieces of each kind it held."""

    text: str
    counts: Mapping[str, int] = field(default_factory=dict)


# Order matters: an address may hold a number, a card is also the shape of an account.
_PATTERNS = tuple(
    (f" <{kind}>", kind, re.compile(shape))
    for kind, group in (
        ("url", shapes.URL),
        ("email", shapes.EMAIL),
        ("resident", shapes.RESIDENT),
        ("phone", shapes.PHONE),
        ("card", shapes.CARD),
        ("account", shapes.ACCOUNT),
        ("handle", shapes.HANDLE),
    )
    for shape in group
)
_WORTH_A_LOOK = re.compile(
    r"[0-9](?:[^0-9\n]{0,4}[0-9]){5}|@|://|www\.|골뱅이|[앳엣][A-Za-z]|[0공영][1일][0-9공영일육칠팔구]"
    r"|[oO]1|[공영일이삼사오육륙칠팔구]{6}|[A-Za-z]#[0-9]|[A-Za-z0-9]#[0-9]{4}"
    r"|(?:아이디|아디|계정|톡|ㅋㅌ|텔레|그램|라인|인스타|트위터|위챗|디스코드|디코|스카이프)"
    r"[^가-힣\n]{0,4}[은는]?[^가-힣\n]{0,2}[A-Za-z0-9]"
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
    for token, kind, pattern in _PATTERNS:
        text, found = _replace(text, token, pattern)
        if found:
            counts[kind] += found
    if counts:
        text = _TAIL.sub(r"\1 ", text)
    return Masked(text, dict(counts))


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
