"""Reading the many ways in which the web writes a time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from typing import Any
from zoneinfo import ZoneInfo

_LONGEST = 200
"""Characters of a time; what is longer is none."""
_KOREAN = re.compile(
    r"(?P<year>\d{4})\s*[년./-]\s*(?P<month>\d{1,2})\s*[월./-]\s*(?P<day>\d{1,2})\s*[일.]?"
    r"(?:\s*\(?[월화수목금토일]\)?(?:요일)?)?"
    r"(?:[\sT,]*(?P<half>오전|오후|AM|PM|am|pm)?\s*(?P<hour>\d{1,2})\s*[:시]\s*"
    r"(?P<minute>\d{1,2})(?:\s*[:분]\s*(?P<second>\d{1,2})?)?)?"
)
_SHORT_YEAR = re.compile(r"\d{2}(?=[.-]\s?\d{1,2}[.-]\s?\d{1,2}\b)")
_AGO = re.compile(
    r"(?P<n>\d{1,4})\s*(?P<unit>초|분|시간|일|주|second|minute|hour|day|week)s?\s*(?:전|ago)"
)
_UNITS = {"초": "seconds", "분": "minutes", "시간": "hours", "일": "days", "주": "weeks"}
_JUST_NOW = re.compile(r"방금(?:\s*전)?|just now")
_CLOCK = r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?"
_TODAY = re.compile(_CLOCK)
_THIS_YEAR = re.compile(
    r"(?P<month>\d{1,2})\s*[./월-]\s*(?P<day>\d{1,2})\s*[일.]?(?:\s+" + _CLOCK + ")?"
)
_FAST = timedelta(minutes=10)
"""A clock of a site may be so much ahead of ours before its time is taken for yesterday's."""
_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
_NAMED_ZONE = re.compile(r"\s+\(?KST\)?$")


def parse_time(value: object, zone: str = "UTC", now: datetime | None = None) -> datetime | None:
    """The time (UTC) that `value` means, or None when it means none.

    Understands ISO 8601, RFC 822, Unix seconds and milliseconds, `2020년 2월 3일 오후 4:05`,
    `2020.02.03. 16:05`, `20.02.03` and, when `now` is given, what boards write of late: `방금`,
    `5분 전`, `2 hours ago`, `16:05` (of today), `02.03 16:05` (of the last twelve months). A time
    without a zone is in `zone`. Years before 1990 are taken for nonsense.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _checked(_from_unix(float(value)))
    if not isinstance(value, str) or len(value) > _LONGEST:
        return None
    text = " ".join(value.split())[:120]
    if not text:
        return None
    if re.fullmatch(r"\d{9,13}(?:\.\d+)?", text):
        return _checked(_from_unix(float(text)))
    local = ZoneInfo(zone)
    for read in (_iso, _rfc, _korean):
        when = read(text, local)
        if when is not None:
            return _checked(when)
    return _checked(_recent(text, now.astimezone(local))) if now is not None else None


def _checked(when: datetime | None) -> datetime | None:
    """`when` in UTC, unless it is out of range."""
    if when is None:
        return None
    try:
        utc = when.astimezone(UTC)
    except (OverflowError, ValueError):
        return None
    return utc if utc >= _EARLIEST else None


def _from_unix(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _iso(text: str, zone: tzinfo) -> datetime | None:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=zone)


def _rfc(text: str, zone: tzinfo) -> datetime | None:
    try:
        when = parsedate_to_datetime(_NAMED_ZONE.sub(" +0900", text))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return when if when.tzinfo else when.replace(tzinfo=zone)


def _korean(text: str, zone: tzinfo) -> datetime | None:
    found = _KOREAN.search("20" + text if _SHORT_YEAR.match(text) else text)
    if found is None:
        return None
    part = found.groupdict()
    hour = int(part["hour"] or 0)
    half = (part["half"] or "").lower()
    if half in ("오후", "pm") and hour < 12:
        hour += 12
    elif half in ("오전", "am") and hour == 12:
        hour = 0
    try:
        return datetime(
            int(part["year"]),
            int(part["month"]),
            int(part["day"]),
            hour,
            int(part["minute"] or 0),
            int(part["second"] or 0),
            tzinfo=zone,
        )
    except (ValueError, OverflowError):
        return None


def _recent(text: str, now: datetime) -> datetime | None:
    """A time that is only told in relation to `now`, in the zone of `now`."""
    if _JUST_NOW.fullmatch(text):
        return now
    if ago := _AGO.search(text):
        unit = ago["unit"]
        return now - timedelta(**{_UNITS.get(unit, unit + "s"): int(ago["n"])})
    found = _TODAY.fullmatch(text) or _THIS_YEAR.fullmatch(text)
    if found is None:
        return None
    part: dict[str, Any] = {name: int(value or 0) for name, value in found.groupdict().items()}
    try:
        when = now.replace(**part, microsecond=0)
        if when <= now + _FAST:
            return when
        return when.replace(year=now.year - 1) if "month" in part else when - timedelta(days=1)
    except (ValueError, OverflowError):
        return None
