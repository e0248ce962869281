"""Windows are those of the calendar in a time zone: days begin where its clock shows midnight."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import Calendar, Window, WindowUnit
from embedding.server.config import ServerConfig

ZONES = ["UTC", "Asia/Seoul", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"]
moments = st.integers(-(2**33), 2**34).map(lambda second: second + 0.25)
midnights = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)).map(
    lambda when: when.replace(hour=0, minute=0, second=0, microsecond=0)
)
zones, units = st.sampled_from(ZONES), st.sampled_from(list(WindowUnit))


def floor(unit: WindowUnit, when: datetime) -> datetime:
    """Begin of the window by what a clock without changes shows."""
    hour = when.replace(minute=0, second=0, microsecond=0)
    day = hour.replace(hour=0)
    return {
        "hour": hour,
        "day": day,
        "week": day - timedelta(days=day.weekday()),
        "month": day.replace(day=1),
    }[unit.value]


@pytest.mark.parametrize("unit", list(WindowUnit))
@given(st.lists(moments, min_size=1, max_size=20))
def test_a_window_starts_where_the_calendar_says(unit: WindowUnit, times: list[float]) -> None:
    calendar = Calendar(unit)
    wanted = [int(floor(unit, datetime.fromtimestamp(t, UTC)).timestamp()) for t in times]
    assert [calendar.start(t) for t in times] == wanted
    assert calendar.starts(np.array(times)).tolist() == wanted
    assert [calendar.start(float(w)) for w in wanted] == wanted


@given(zones, midnights, st.sampled_from([WindowUnit.DAY, WindowUnit.WEEK, WindowUnit.MONTH]))
def test_a_second_before_local_midnight_is_of_the_day_before(
    zone: str, midnight: datetime, unit: WindowUnit
) -> None:
    calendar = Calendar(unit, ZoneInfo(zone))
    local = midnight.replace(tzinfo=calendar.zone)
    assume(local.astimezone(UTC).astimezone(calendar.zone) == local)  # a day that Apia left out
    for at in (local.timestamp() - 1, local.timestamp(), local.timestamp() + 1):
        moment = datetime.fromtimestamp(at, calendar.zone)
        begin = floor(unit, moment.replace(tzinfo=None)).replace(tzinfo=calendar.zone)
        assert calendar.start(at) == begin.timestamp()
        assert calendar.days(np.array([at])).tolist() == [(moment.date() - date(1970, 1, 1)).days]
        window = calendar.window(at)
        assert window == Window.holding(moment, unit)
        if unit is not WindowUnit.WEEK:
            assert window.label == f"{moment:%Y-%m-%d}"[: 7 if unit is WindowUnit.MONTH else 10]


@given(zones, units, st.integers(int(6e8), int(4e9)))
def test_windows_follow_each_other_without_gap(zone: str, unit: WindowUnit, at: int) -> None:
    calendar = Calendar(unit, ZoneInfo(zone))
    window = calendar.window(at)
    start, end = int(window.start.timestamp()), int(window.end.timestamp())
    assert start == calendar.start(at) <= at < end
    assert calendar.start(end - 1) == start
    assert calendar.start(end) == end
    assert calendar.window(start) == window


@pytest.mark.parametrize(
    ("zone", "label", "hours"),
    [
        ("America/New_York", "2020-03-08", 23),
        ("America/New_York", "2020-11-01", 25),
        ("America/Sao_Paulo", "2018-11-04", 23),
        ("America/St_Johns", "2010-11-07", 25),
        ("Asia/Seoul", "2020-03-08", 24),
    ],
)
def test_a_day_is_as_long_as_its_clock_says(zone: str, label: str, hours: int) -> None:
    noon = datetime.fromisoformat(f"{label}T12:00").replace(tzinfo=ZoneInfo(zone))
    day = Window.holding(noon, WindowUnit.DAY)
    assert day.label == label
    assert day.end - day.start == timedelta(hours=hours)
    assert Window.holding(noon, WindowUnit.MONTH).label == label[:7]


def test_a_day_that_a_zone_left_out_has_no_window() -> None:
    apia = ZoneInfo("Pacific/Apia")
    before = Window.holding(datetime(2011, 12, 29, 23, tzinfo=apia), WindowUnit.DAY)
    after = Window.holding(datetime(2011, 12, 31, 1, tzinfo=apia), WindowUnit.DAY)
    assert (before.label, after.label) == ("2011-12-29", "2011-12-31")
    assert before.end == after.start


def test_the_hour_that_comes_twice_is_two_windows_with_two_names() -> None:
    calendar = Calendar.of("hour America/New_York")
    first = calendar.window(datetime(2020, 11, 1, 5, 30, tzinfo=UTC).timestamp())
    second = calendar.window(datetime(2020, 11, 1, 6, 30, tzinfo=UTC).timestamp())
    assert first.end == second.start
    assert (first.label, second.label) == ("20201101T0100_20201101T0100", "2020-11-01T01")


def test_hours_begin_with_those_of_the_zone() -> None:
    half_past = datetime(2020, 3, 1, 0, 30, tzinfo=ZoneInfo("Asia/Kathmandu"))
    hour = Window.holding(half_past, WindowUnit.HOUR)
    assert (hour.label, hour.start.isoformat()) == ("2020-03-01T00", "2020-03-01T00:00:00+05:45")


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("when", [datetime(1700, 5, 5), datetime(1900, 1, 1), datetime(2020, 7, 1)])
def test_a_window_is_the_same_after_it_was_written(zone: str, when: datetime) -> None:
    window = Window.holding(when.replace(tzinfo=ZoneInfo(zone)), WindowUnit.MONTH)
    again = Window(*(datetime.fromisoformat(t.isoformat()) for t in (window.start, window.end)))
    assert (again, again.label) == (window, window.label)
    assert window.start.utcoffset().seconds % 60 == 0, "ISO 8601 has no seconds in an offset"


@given(zones, units)
def test_a_calendar_is_read_back_from_its_text(zone: str, unit: WindowUnit) -> None:
    calendar = Calendar(unit, UTC if zone == "UTC" else ZoneInfo(zone))
    assert Calendar.of(str(calendar)) == calendar
    assert str(Calendar(unit)) == unit.value, "as servers of before wrote it"


def test_a_zone_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no such time zone; a name such as Asia/Seoul"):
        ServerConfig(timezone="Asia/Soul")


def test_a_machine_without_time_zones_is_told_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr("embedding.kernel.zones.available_timezones", set)
    with pytest.raises(ValueError, match="install the package tzdata"):
        ServerConfig(timezone="Asia/Nowhere")
    assert ServerConfig(timezone="UTC").timezone == "UTC"


def test_windows_of_another_zone_are_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError) as refused:
        ServerConfig(timezone="Asia/Seoul").check_timezone("UTC", "snapshots var/snapshots")
    assert "set server.timezone to UTC, or begin in a new folder" in str(refused.value)
