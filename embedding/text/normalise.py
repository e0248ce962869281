"""Bring text into one form, so that one word has one spelling.

Unicode NFKC (UAX #15) with one exception: the compatibility letters ㄱ–ㅣ (U+3131–U+318E), which
Koreans type on their own (ㅋㅋ, ㅠㅠ), stay as they are; NFKC would turn them into conjoining
letters, which no dictionary holds and which would melt with their neighbours.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Literal

NORMALISER_VERSION = "5"

_LETTERS = re.compile(r"[^\u3131-\u318e]+")
_HALFWIDTH = {
    code: int(unicodedata.decomposition(chr(code)).split()[-1], 16)
    for code in range(0xFFA0, 0xFFDD)
    if unicodedata.decomposition(chr(code))
}
_HAS_HALFWIDTH = re.compile(r"[\uffa0-\uffdc]")
# Controls, format characters (zero-width, direction marks, soft hyphen), variation selectors,
# skin tones, private use and surrogates: invisible, or of no agreed meaning. Marks that enclose a
# letter or digit (the keycap of 1\ufe0f\u20e3) go too: it is the digit that is read.
_INVISIBLE = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20dd-\u20e0\u20e2-\u20e4\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    r"\U0001f3fb-\U0001f3ff\U000e0000-\U000e0fff\ue000-\uf8ff\ud800-\udfff"
    r"\U000f0000-\U0010ffff]+"
)
_BREAKS = re.compile(r"[ \t\f\v]*(?:[\r\n\x85\u2028\u2029]+[ \t\f\v]*)+")
_BLANKS = re.compile(r"(?:[^\S\n]|\u2800)+")  # a braille cell without a dot is a blank, too
_EDGES = re.compile(r" ?\n[ \n]*")
_DASHES = re.compile(r"[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]")
_DIGITS = re.compile(r"[^\D0-9]")
_ROUND_A = re.compile(r"(?<=[A-Za-z0-9])ⓐ(?=[A-Za-z0-9])")  # hongⓐnaver.com
_EMOJI = re.compile(
    r"[\U0001f1e6-\U0001f1ff]{2}|[\U0001f300-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a-\u23ff]"
)


def normalise(
    text: str, *, run_length: int = 2, emoji: Literal["keep", "token", "drop"] = "keep"
) -> str:
    """NFKC, plain digits and dashes, no invisible characters, single blanks, runs cut.

    Lines stay apart (one newline); emoji stand alone between blanks, or are replaced or dropped.
    """
    text = _BREAKS.sub("\n", _INVISIBLE.sub("", text))
    if not text.isascii():
        text = _long_marks().sub(r"\1", text)
    if not unicodedata.is_normalized("NFKC", text):
        text = _ROUND_A.sub("@", text)
        if _HAS_HALFWIDTH.search(text):
            text = text.translate(_HALFWIDTH)
        text = _LETTERS.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
    if not text.isascii():
        text = _DASHES.sub("-", text)
        text = _DIGITS.sub(lambda digit: str(unicodedata.decimal(digit[0], 0)), text)
        text = _EMOJI.sub(_EMOJI_AS[emoji], text)
    text = _runs(run_length).sub(r"\1", text)
    # Last: emoji stand between blanks, and some marks come apart into a blank and another.
    text = _BLANKS.sub(" ", text)
    return (_EDGES.sub("\n", text) if "\n" in text else text).strip()


@cache
def _long_marks() -> re.Pattern[str]:
    """More than 30 marks on a letter; group 1 is what stays (UAX #15, stream-safe text).

    Python puts marks in order in time that grows with the square of their number.
    """
    marks = "".join(c for c in map(chr, range(0x300, 0x1F000)) if unicodedata.combining(c))
    return re.compile(f"([{marks}]{{30}})[{marks}]+")


_EMOJI_AS = {"keep": r" \g<0> ", "token": " <emoji> ", "drop": " "}


@cache
def _runs(length: int) -> re.Pattern[str]:
    """Runs of one laughing or crying letter, or mark, beyond `length`; group 1 is what stays."""
    # One class for alternating runs too: ㅋㅎㅋㅎㅋ is laughter, but keeps its first letters.
    return re.compile(rf"((?P<one>[ㄱ-ㅎㅏ-ㅣ!?~^;.,ᄏ♡♥…])(?P=one){{{length - 1}}})(?P=one)+")
