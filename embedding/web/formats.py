"""How figures, dates and windows are written in each language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from urllib.parse import unquote

from embedding.kernel.zones import zone_of

LONGEST_WORD = 60
MOST_MISSING = 400
"""Windows that a chart leaves room for between two."""
_PATTERNS = {"%Y-%m": None, "%Y-%m-%d": timedelta(days=1), "%Y-%m-%dT%H": timedelta(hours=1)}
"""How labels are written, by what lies between two; months differ in length."""


def short_label(label: str) -> str:
    """A window's label as short as an axis needs it."""
    parts = re.fullmatch(r"\d\d(\d\d)-(\d\d)(?:-(\d\d)(?:T(\d\d))?)?", label)
    if not parts:
        start = re.fullmatch(r"\d{4}(\d\d)(\d\d)T\d{4}_.+", label)
        return f"{int(start[1])}/{int(start[2])}" if start else label[:10]
    year, month, day, hour = parts.groups()
    if hour:
        return f"{int(month)}/{int(day)} {hour}h"
    return f"{int(month)}/{int(day)}" if day else f"{year}.{month}"


def missing_between(label: str, later: str) -> int:
    """How many windows of a calendar's unit lie between two; 0 where it is not known."""
    for pattern, length in _PATTERNS.items():
        try:
            first, last = (datetime.strptime(text, pattern) for text in (label, later))  # noqa: DTZ007
        except ValueError:
            continue
        months = 12 * (last.year - first.year) + last.month - first.month
        apart = months if length is None else (last - first) // length
        return min(max(apart - 1, 0), MOST_MISSING)
    return 0


def number(value: float | None, digits: int = 0) -> str:
    """`1,234` or `1,234.5`; a dash for what is not known."""
    return "–" if value is None else f"{value:,.{digits}f}"


def rate(value: float | None) -> str:
    """A rate with as many digits as it deserves."""
    return number(value, 0 if not value or value >= 100 else 1 if value >= 1 else 2)


def rates(before: float, now: float) -> tuple[str, str]:
    """Two rates with as many digits as it takes to tell them apart, as far as six."""
    written = rate(before), rate(now)
    for digits in range(7):
        was, is_now = (float(text.replace(",", "")) for text in written)
        if was != is_now or before == now:
            return written
        written = f"{before:,.{digits}f}", f"{now:,.{digits}f}"
    return written


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
    order = sorted(parts.items(), key=lambda part: (-part[1], part[0]))
    return ", ".join(f"{short_word(name, 24)} {100 * share:.0f} %" for name, share in order)


def moment(iso: str, timezone: str) -> str:
    """An ISO time as `2020-02-29 15:00 UTC`, or of another time zone."""
    try:
        when = datetime.fromisoformat(iso).astimezone(zone_of(timezone))
    except ValueError:
        return iso
    return f"{when:%Y-%m-%d %H:%M} {timezone}"


def short_word(word: str, longest: int = LONGEST_WORD) -> str:
    """A word cut to a length that a page can hold."""
    return word if len(word) <= longest else word[: longest - 1] + "…"


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
