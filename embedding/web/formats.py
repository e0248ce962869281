"""How figures, dates and windows are written in each language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import unquote

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
LONGEST_WORD = 60


def window_name(label: str, language: str) -> str:
    """A window's label for reading: `2020년 2월`, `3 February 2020`, or as it is."""
    found = re.fullmatch(r"(\d{4})-(\d\d)(?:-(\d\d)(?:T(\d\d))?)?", label)
    if not found:
        return label.replace("_", " – ")
    year, month, day, hour = found.groups()
    m = int(month)
    if language == "ko":
        parts = [f"{year}년", f"{m}월"]
        parts += [f"{int(day)}일"] if day else []
        parts += [f"{int(hour)}시"] if hour else []
        return " ".join(parts)
    text = f"{_MONTHS[m - 1]} {year}" if 1 <= m <= 12 else label
    text = f"{int(day)} {text}" if day else text
    return f"{text}, {hour}:00" if hour else text


def short_label(label: str) -> str:
    """A window's label as short as an axis needs it."""
    found = re.fullmatch(r"\d\d(\d\d)-(\d\d)(?:-(\d\d)(?:T(\d\d))?)?", label)
    if not found:
        return label[:10]
    year, month, day, hour = found.groups()
    if hour:
        return f"{int(month)}/{int(day)} {hour}h"
    return f"{int(month)}/{int(day)}" if day else f"{year}.{month}"


def number(value: float | None, digits: int = 0) -> str:
    """`1,234` or `1,234.5`; a dash for what is not known."""
    return "–" if value is None else f"{value:,.{digits}f}"


def rate(value: float | None) -> str:
    """A rate with as many digits as it deserves."""
    if value is None:
        return "–"
    return (
        f"{value:,.0f}"
        if value >= 100 or value == 0
        else f"{value:.1f}"
        if value >= 1
        else f"{value:.2f}"
    )


def chance(value: float) -> str:
    """A q or p value."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def change(now: float, before: float) -> str:
    """`+12 %`, `×3.4`, or a dash when there was nothing before."""
    if before <= 0:
        return "–"
    ratio = now / before
    if ratio >= 3:
        return f"×{ratio:.1f}"
    percent = round((ratio - 1) * 100)
    return f"{percent:+d} %".replace("-", "−") if percent else "0 %"


def shares(parts: Mapping[str, float]) -> str:
    """Named shares in per cent, largest first: `뉴스 62 %, 게시판 38 %`."""
    order = sorted(parts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{short_word(name, 24)} {100 * share:.0f} %" for name, share in order)


def day(when: datetime) -> str:
    """A time as `2020-02-29`, in UTC."""
    return f"{when.astimezone(UTC):%Y-%m-%d}"


def moment(iso: str) -> str:
    """An ISO time as `2020-02-29 15:00 UTC`."""
    try:
        when = datetime.fromisoformat(iso).astimezone(UTC)
    except ValueError:
        return iso
    return f"{when:%Y-%m-%d %H:%M} UTC"


def short_word(word: str, longest: int = LONGEST_WORD) -> str:
    """A word cut to a length that a page can hold."""
    return word if len(word) <= longest else word[: longest - 1] + "…"


def particle(word: str, closed: str, opened: str) -> str:
    """The Korean particle after a word: `closed` follows a final consonant (을), `opened` a vowel
    (를); both, as 을(를), after what is no Hangul.
    """
    last = ord(word[-1:] or " ") - 0xAC00
    if not 0 <= last < 11_172:
        return f"{closed}({opened})"
    return closed if last % 28 else opened


def short_address(url: str, longest: int = 90) -> str:
    """An address without its scheme, decoded as far as it is text, cut in the middle."""
    plain = unquote(url.partition("://")[2] or url)
    plain = "".join(c if c.isprintable() else "\ufffd" for c in plain)
    if len(plain) <= longest:
        return plain
    return f"{plain[: longest - 25]}…{plain[-24:]}"


def seconds(value: float | None) -> str:
    """A duration: `0.8 s`, `42 s`, `5 min`, `3.2 h`."""
    if value is None:
        return "–"
    if value < 120:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"
