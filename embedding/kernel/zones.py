"""Time zones by their IANA names."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones


def zone_of(name: str) -> tzinfo:
    """The time zone of an IANA name; ValueError, which says why, where there is none."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        why = "no such time zone; a name such as Asia/Seoul is accepted"
        if not available_timezones():
            why = "this machine has no time zones: install the package tzdata"
        raise ValueError(why) from error


def known_zone(name: str) -> str:
    """The name itself; ValueError as from `zone_of`."""
    zone_of(name)
    return name
