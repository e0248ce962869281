"""Which window and which day of the reader's time zone a moment falls in: decided here alone.

Days, weeks and months are those of a wall calendar, so that some last an hour more or less than
others. Moments are Unix seconds or `datetime` with a zone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from enum import StrEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from embedding.kernel.errors import ConfigError
from embedding.kernel.zones import zone_of

_HOUR, _QUARTER = 3600, 900
_EPOCH = date(1970, 1, 1).toordinal()
_YEARS = (2, 9997)
"""Years of which windows are known; a moment beyond them falls in the first or last window."""


class WindowUnit(StrEnum):
    """How event time is cut into windows."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    def first(self, day: date) -> date:
        """First day of the window that holds a day; weeks start on Monday."""
        if self is WindowUnit.WEEK:
            return day - timedelta(days=day.weekday())
        return day.replace(day=1) if self is WindowUnit.MONTH else day

    def next(self, day: date) -> date:
        """First day of the window after the one that starts on `day`."""
        if self is WindowUnit.MONTH:
            return (day + timedelta(days=32)).replace(day=1)
        return day + timedelta(days=7 if self is WindowUnit.WEEK else 1)


@dataclass(frozen=True)
class Window:
    """A half-open interval [start, end) of event time; both ends say how their clock was set.

    Their zones are fixed offsets: of two times in one zone of `zoneinfo`, Python compares and
    subtracts what the clock shows, and an hour that comes twice would be one.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ConfigError(f"window {self.start} – {self.end}: both ends need a time zone.")
        for name in ("start", "end"):
            object.__setattr__(self, name, fixed(getattr(self, name)))
        if self.end <= self.start:
            raise ConfigError(
                f"window {self.start:%Y-%m-%d %H:%M} – {self.end:%Y-%m-%d %H:%M}: "
                "the end must lie after the start."
            )

    @classmethod
    def holding(cls, when: datetime, unit: WindowUnit) -> Window:
        """The window of `unit` that holds `when`, in the time zone of `when`."""
        return Calendar(unit, when.tzinfo or UTC).window(fixed(when).timestamp())

    @property
    def label(self) -> str:
        """Short name by its clock: `2020-02`, `2020-02-03`, `2020-02-03T04`, or `start_end`."""
        start, end = (each.replace(tzinfo=None) for each in (self.start, self.end))
        if not (start.minute or start.second) and end - start == timedelta(hours=1):
            return f"{start:%Y-%m-%dT%H}"
        if start.time() == end.time() == time():
            for unit, pattern in ((WindowUnit.MONTH, "%Y-%m"), (WindowUnit.DAY, "%Y-%m-%d")):
                if unit.first(start) == start and unit.next(start) == end:
                    return f"{start:{pattern}}"
        return f"{start:%Y%m%dT%H%M}_{end:%Y%m%dT%H%M}"


@dataclass(frozen=True)
class Calendar:
    """Windows of one unit in one time zone. As a text it is `day`, or `day Asia/Seoul`."""

    unit: WindowUnit
    zone: tzinfo = UTC

    @classmethod
    def of(cls, text: str) -> Calendar:
        """Inverse of `str`; ValueError for what is none."""
        unit, _, name = text.partition(" ")
        return cls(WindowUnit(unit), zone_of(name or "UTC"))

    def __str__(self) -> str:
        return self.unit.value if self.zone is UTC else f"{self.unit.value} {self.zone}"

    def window(self, when: float) -> Window:
        """The window that holds a moment."""
        start = self.start(when)
        if self.unit is WindowUnit.HOUR:
            return Window(*(datetime.fromtimestamp(at, self.zone) for at in (start, start + _HOUR)))
        day = self.unit.first(datetime.fromtimestamp(start, self.zone).date())
        return Window(_begin(day, self.zone), _begin(self.unit.next(day), self.zone))

    def start(self, when: float) -> int:
        """Where that window starts, in Unix seconds."""
        return int(self.starts(np.array([when]))[0])

    def starts(self, when: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """int64 [n]: `start` of each of float64 [n]."""
        seconds = np.floor(np.asarray(when, dtype=np.float64)).astype(np.int64)
        if self.unit is WindowUnit.HOUR:
            ahead = _ahead(self.zone)
            return (seconds + ahead) // _HOUR * _HOUR - ahead
        years = seconds.astype("datetime64[s]").astype("datetime64[Y]").astype(np.int64) + 1970
        starts = np.empty(len(seconds), dtype=np.int64)
        for year in np.unique(years).tolist():
            edges = _edges(self.unit, self.zone, min(max(year, _YEARS[0]), _YEARS[1]))
            own = years == year
            starts[own] = edges[np.searchsorted(edges[1:], seconds[own], side="right")]
        return starts

    def iso(self, when: float | None) -> str | None:
        """A moment in ISO 8601 by the zone's clock; None of none."""
        return None if when is None else datetime.fromtimestamp(when, self.zone).isoformat()

    def days(self, when: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """int64 [n]: the day of each moment on the calendar, counted from 1 January 1970."""
        starts, own = np.unique(
            replace(self, unit=WindowUnit.DAY).starts(when), return_inverse=True
        )
        dates = [datetime.fromtimestamp(start, self.zone) for start in starts.tolist()]
        return np.array([day_number(each) for each in dates], dtype=np.int64)[own]


def of_clock(shown: npt.NDArray[np.float64], zone: tzinfo) -> npt.NDArray[np.float64]:
    """float64 [n]: Unix seconds of what a zone's clock shows, which is given as if it were UTC.

    Arrow does the same, but takes no clock to change after 2037.
    """
    if zone is UTC:
        return shown
    quarters, own = np.unique(np.floor(shown / _QUARTER), return_inverse=True)
    clocks = (datetime.fromtimestamp(at * _QUARTER, UTC) for at in quarters.tolist())
    ahead = [_offset(clock.replace(tzinfo=zone)).total_seconds() for clock in clocks]
    moments: npt.NDArray[np.float64] = shown - np.array(ahead)[own]
    return moments


def day_number(day: date) -> int:
    """A date, or that of a time by its own clock, in days from 1 January 1970."""
    return day.toordinal() - _EPOCH


def day_of(number: int) -> date:
    """Inverse of `day_number`."""
    return date.fromordinal(number + _EPOCH)


@lru_cache(maxsize=4096)
def _edges(unit: WindowUnit, zone: tzinfo, year: int) -> npt.NDArray[np.int64]:
    """Starts of the windows that hold moments of a year (UTC), increasing, in Unix seconds."""
    day = unit.first(date(year, 1, 1) - timedelta(days=2))
    starts = []
    while day <= date(year + 1, 1, 2):
        starts.append(int(_begin(day, zone).timestamp()))
        day = unit.next(day)
    return np.unique(starts)  # a day that a zone left out begins with the one after it


def _begin(day: date, zone: tzinfo) -> datetime:
    """Midnight; where the clock was put forward over it, the same moment by the clock before."""
    return fixed(datetime.combine(day, time(), zone))


def _ahead(zone: tzinfo) -> int:
    """Seconds by which a zone's hours begin before those of UTC, as in 2020: 1,800 in India.

    Taken at one time for all: where a clock was put back half an hour, hours would overlap.
    """
    return int(_offset(datetime(2020, 1, 1, tzinfo=zone)).total_seconds()) % _HOUR


def fixed(when: datetime) -> datetime:
    """The same with its offset as zone, in whole minutes as ISO 8601 has them (before 1912 zones
    had seconds)."""
    return when.replace(tzinfo=timezone(_offset(when)), fold=0)


def _offset(when: datetime) -> timedelta:
    offset = when.utcoffset() or timedelta()
    return offset - offset % timedelta(minutes=1)
