"""Replace personal data by neutral tokens before anything else sees the text.

Resident and foreigner registration numbers, phone numbers, cards, bank accounts, e-mail addresses,
handles; web addresses too, because they carry names and account numbers. A number is masked whether
or not its check digit is right: people mistype, and since October 2020 registration numbers are
given out without one.

Not found here: names of people and street addresses
(they have no shape to go by), and the public service numbers 15xx-xxxx to 18xx-xxxx (they belong to
companies and look like spans of years).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from embedding.kernel.patterns import later
from embedding.text import handles, shapes

KINDS = ("resident", "phone", "card", "account", "email", "handle", "url", "emoji")
NEUTRAL = re.compile(r"<(?:" + "|".join(KINDS) + r")>")

MASK_VERSION = "8"


@dataclass(frozen=True)
class Masked:
    """A text without personal data, and how many pieces of each kind it held."""

    text: str
    counts: Mapping[str, int] = field(default_factory=dict)


Patterns = tuple[tuple[str, str, re.Pattern[str]], ...]


def _compiled(*groups: tuple[str, tuple[str, ...]]) -> Patterns:
    return tuple((f" <{kind}>", kind, later(shape)) for kind, group in groups for shape in group)


# Order matters: an address may hold a number, a card holds others and has the shape of an account.
_ADDRESSES = _compiled(("url", shapes.URL), ("email", shapes.EMAIL))
_CARDS = _compiled(("card", shapes.CARD), ("resident", shapes.RESIDENT))
_PHONES = _compiled(("phone", shapes.PHONE))
_NUMBERS = _CARDS + _PHONES
_GLUED = _compiled(("account", shapes.GLUED))
_ABROAD = _compiled(("account", shapes.FOREIGN_ACCOUNT))
_ACCOUNTS = _compiled(("account", shapes.ACCOUNT))
_HIDDEN = _compiled(("card", shapes.HIDDEN_CARD), ("phone", shapes.HIDDEN_PHONE))
_HIDDEN_ACCOUNTS = _compiled(("account", shapes.HIDDEN_ACCOUNT))
_ODDLY = _compiled(("card", shapes.ODD_CARD), ("account", shapes.ODD_ACCOUNT))
_CALLED = _compiled(("handle", handles.AT))
_TAGGED = _compiled(("handle", handles.TAGGED))
_NAMED = _compiled(("handle", handles.BESIDE))
_NINE = later(rf"[0-9](?:[{shapes.SIGN}, ]{{0,3}}[0-9]){{8}}")
_ODD = later(shapes.ODD)
_HIDES = later(shapes.HIDES)
_SPELLED = later(shapes.SPELLED)
_DIGIT = later(rf"[0-9{shapes.HANGUL_DIGITS}]")
# 010-OOOO-1234: so many letters for hidden digits that hardly a number is left
_SHOWN = rf"(?:[^0-9{shapes.HANGUL_DIGITS}]*+[0-9{shapes.HANGUL_DIGITS}])"
_EMPTY = later(
    rf"(?=.*[oO]{{4}})(?:{_SHOWN}{{0,6}}|(?=0[0-9]{{1,2}}[^0-9]){_SHOWN}{{7}})[^0-9{shapes.HANGUL_DIGITS}]*",
    re.DOTALL,
)
_TELLS = later(rf"{_SHOWN}{{3}}")  # OIO lol IlIl is no number
_CONTEXT = 24  # letters beside a number that is said in which a word may tell what it is
_LABELLED = later(shapes.LABELLED)
# Digits of labelled numbers, while the shapes are asked: private letters, which normalising drops.
_HIDE = {ord(digit): 0x10FF00 + int(digit) for digit in "0123456789"}
_SHOW = {hidden: digit for digit, hidden in _HIDE.items()}
_BLANK = later(r" ")
# A last word that is none of a number's: 1234 3일 전, 1234 이 사람, 1234 lol
_LAST_WORD = later(
    rf"(?:(?<=[0-9.,/] )|(?<=[{shapes.HANGUL_DIGITS}]{{2}} ))"
    rf"(?:[0-9]{{1,2}}일|[일이](?: [{shapes.HANGUL_DIGITS}])?|(?![oO]{{4}})[oOlI]+)\Z"
)
_WORTH_A_LOOK = later(
    rf"(?=[^가-힣\n ]|[골{shapes.HANGUL_DIGITS}]|(?i: at ))(?:"  # most letters are passed at once
    r"[0-9](?:[^0-9\n]{0,4}[0-9]){5}|[0-9]{4}-?\n-?[0-9]{4}|@|://|www\.|골뱅이|[A-Za-z0-9] ?[앳엣]"
    r"|[0공영][1일][0-9공영일육칠팔구]"
    rf"|[0-9]{{2}}[^0-9\n]{{0,2}}[oO{shapes.CROSSED}]{{4}}|ㅇㅣ[ㅇ0-9]"
    r"|[oO○][1-7lIㅣ]|[공영일이삼사오육륙칠팔구]{6}"
    r"|[A-Za-z0-9] ?[#*&][a-z]"
    rf"|[{shapes.HANGUL_DIGITS}]{{3}}{shapes.BETWEEN}[{shapes.HANGUL_DIGITS}0-9]{{2}}"
    rf"|[{shapes.HANGUL_DIGITS}][0-9][{shapes.HANGUL_DIGITS}]|[{shapes.HANGUL_DIGITS}]{{2}}[0-9]{{2}}|[0-9]{{2}}{shapes.BETWEEN}[{shapes.HANGUL_DIGITS}]{{3}}"
    rf"|\.{shapes.SITE_SUFFIX}/[A-Za-z0-9_@]"
    r"|#(?<=[A-Za-z0-9_가-힣]#)(?:[0-9]{4}|[A-Z]{2})"
    r"|(?i:[(\[{<] ?at? ?[)\]}>]| at |[_-]at[_-]))"
)
_WORTH_A_NAME = later(handles.WORTH_A_LOOK)
_TAIL = later(rf"({NEUTRAL.pattern})({shapes.PARTICLE}(?![가-힣]))?")


def mask(text: str) -> Masked:
    """Replace personal data in normalised text (see `normalise`) by `<phone>` and its like.

    The tokens stand between blanks; a particle glued to what was replaced goes with it, for alone
    it would be read as a word.
    """
    named = _WORTH_A_NAME.search(text) is not None
    if not named and not _WORTH_A_LOOK.search(text):
        return Masked(text)
    counts: Counter[str] = Counter()
    text = _apply(_ADDRESSES, text, counts)
    hidden = _LABELLED.sub(lambda number: number[0].translate(_HIDE), text)
    labelled, text = hidden != text, hidden
    text = _SPELLED.sub(lambda run: _unspelled(run, counts), text)
    text = _plain(text, counts, named)
    if labelled:
        text = text.translate(_SHOW)
    if counts:
        text = _TAIL.sub(r"\1 ", text)
    return Masked(text, dict(counts))


def _plain(text: str, counts: Counter[str], named: bool) -> str:
    """The text with what is written plainly masked.

    Accounts, names beside a cue and numbers partly crossed out are only looked for where there can
    be some: that costs less.
    """
    long = _NINE.search(text) is not None
    hides = _HIDES.search(text) is not None
    if hides:
        text = _apply(_HIDDEN, text, counts)
    if long:
        text = _apply(_ABROAD, text, counts)
    text = _apply(_CARDS, text, counts)
    if long:
        text = _apply(_GLUED, text, counts)
    text = _apply(_PHONES, text, counts)
    if long:
        text = _apply(_ACCOUNTS, text, counts)
    if hides:
        text = _apply(_HIDDEN_ACCOUNTS, text, counts)
    if _ODD.search(text):
        text = _apply(_ODDLY, text, counts)
    if "#" in text:
        text = _apply(_TAGGED, text, counts)
    if "@" in text:
        text = _apply(_CALLED, text, counts)
    return _apply(_NAMED, text, counts) if named else text


def _apply(patterns: Patterns, text: str, counts: Counter[str]) -> str:
    for token, kind, pattern in patterns:
        text, n = _replace(text, token, pattern)
        if n:
            counts[kind] += n
    return text


def _unspelled(match: re.Match[str], counts: Counter[str]) -> str:
    """The run found with its number masked when it is one once all its digits are written so.

    Its first and last letters may be those of words around it (3일, 공일공; 칠팔 이 사람), so that
    parts of it are tried after the whole, and at last with the words beside it.
    """
    run = match[0]
    word = _LAST_WORD.search(run)
    numerals_end = word.start() if word else len(run)
    written = run[:numerals_end].translate(shapes.DIGITS) + run[numerals_end:]
    if written == run or not _DIGIT.search(run) or _EMPTY.fullmatch(run):  # OOO-OOOO-OOOO
        return run
    beside = _unspelled_beside(match, written, _GLUED, counts)
    if beside != run:
        return beside
    begins = [0, *(gap.end() for gap in _BLANK.finditer(run))][:3]
    for begin in begins:
        for end in range(len(run), max(len(run) - 9, begin), -1):
            if written[begin:end] == run[begin:end] or not _TELLS.match(run, begin, end):
                break
            if run[end - 1 : end + 1].isdecimal() and end < len(run):
                continue
            if _of_words(match, written, begin, end):
                continue
            inside: Counter[str] = Counter()
            masked = _apply(_NUMBERS, written[begin:end], inside)
            if NEUTRAL.fullmatch(masked.strip()):
                counts.update(inside)
                return run[:begin] + masked + run[end:]
    return _unspelled_beside(match, written, _NUMBERS + _ACCOUNTS, counts)


def _of_words(match: re.Match[str], written: str, begin: int, end: int) -> bool:
    """Whether all that is said in a part belongs to words: 30일 25, 1234이고, 1234 IBK."""
    run, text, start = match[0], match.string, match.start()
    for i in range(begin, end):
        if written[i] != run[i] and not (
            text[start + i + 1 : start + i + 2].isalpha()
            if i == end - 1
            else run[i] in "일이" and run[i - 1 : i].isdecimal() and run[i + 1] == " "
        ):
            return False
    return True


def _unspelled_beside(
    match: re.Match[str], written: str, patterns: Patterns, counts: Counter[str]
) -> str:
    """The run with what is a number because of the words beside it, such as an account."""
    run, text = match[0], match.string
    before = text[max(0, match.start() - _CONTEXT) : match.start()]
    whole = before + written + text[match.end() : match.end() + _CONTEXT]
    for token, kind, pattern in patterns:
        for number in pattern.finditer(whole):
            if "other" in pattern.groupindex:
                if number["other"] is not None:
                    continue
                begin = number.start()
            else:
                cue = pattern.groups and number[1] is not None
                begin = number.end(1) if cue else number.start()
            begin, end = begin - len(before), number.end() - len(before)
            if begin < 0 or end > len(run) or written[begin:end] == run[begin:end]:
                continue
            if _TELLS.match(run, begin, end) and not _of_words(match, written, begin, end):
                counts[kind] += 1
                return run[:begin] + token + run[end:]
    return run


def _replace(text: str, token: str, pattern: re.Pattern[str]) -> tuple[str, int]:
    """Put `token` for each match; what stands in a group stays, and with `other` all of it."""
    if "other" not in pattern.groupindex:
        return pattern.subn(rf"\g<1>{token}" if pattern.groups else token, text)
    replaced = 0

    def put(match: re.Match[str]) -> str:
        nonlocal replaced
        if match["other"] is not None:
            return match[0]
        replaced += 1
        return token

    return pattern.sub(put, text), replaced
