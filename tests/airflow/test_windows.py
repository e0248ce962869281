"""Which window a run is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import Calendar, Window, WindowUnit
from embedding_airflow.windows import run_window

NOON = datetime(2020, 3, 4, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("params", "start", "end"),
    [
        ({"window": "2020-02"}, "2020-02-01", "2020-03-01"),
        ({"window": "2020-02", "unit": "month"}, "2020-02-01", "2020-03-01"),
        ({"window": "2020-02-03"}, "2020-02-03", "2020-02-04"),
        ({"window": "2020-02-05", "unit": "week"}, "2020-02-03", "2020-02-10"),
        ({"window": "2020-02-03T04"}, "2020-02-03T04:00", "2020-02-03T05:00"),
        ({}, "2020-03-03", "2020-03-04"),
        ({"unit": "auto"}, "2020-03-03", "2020-03-04"),
        ({"unit": "month"}, "2020-02-01", "2020-03-01"),
        ({"unit": "week"}, "2020-02-24", "2020-03-02"),
        ({"unit": "hour"}, "2020-03-04T11:00", "2020-03-04T12:00"),
        (
            {"window_start": "2020-01-05T00:00:00+09:00", "window_end": "2020-01-06"},
            "2020-01-04T15:00",
            "2020-01-06",
        ),
    ],
)
def test_window_of_params(params, start, end):
    window = run_window(params, NOON, "day")
    assert window.start == datetime.fromisoformat(start).replace(tzinfo=UTC)
    assert window.end == datetime.fromisoformat(end).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "params",
    [
        {"window": "2020-02-30"},
        {"window": "2020"},
        {"window": "이월"},
        {"window": "2020-02", "unit": "day"},
        {"window": "2020-02-03", "unit": "month"},
        {"window_start": "2020-02-01"},
        {"window_end": "2020-02-01"},
        {"window_start": "gestern", "window_end": "2020-02-01"},
        {"window_start": "2020-02-02", "window_end": "2020-02-01"},
    ],
)
def test_what_is_no_window_is_refused(params):
    with pytest.raises(ConfigError, match=r"window"):
        run_window(params, NOON, "day")


MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))
ZONES = st.sampled_from(["UTC", "Asia/Seoul", "America/New_York", "Asia/Kathmandu"])


@given(MOMENTS, st.sampled_from(list(WindowUnit)), ZONES)
def test_without_label_it_is_the_last_window_that_has_ended(when, unit, zone):
    calendar = Calendar.of(f"{unit} {zone}")
    window = run_window({}, when, str(calendar))
    assert window == calendar.window(window.start.timestamp())
    assert window.end <= when
    assert calendar.window(window.end.timestamp()).end > when


@given(MOMENTS, st.sampled_from(["month", "day", "hour"]), ZONES)
def test_a_label_names_its_own_window(when, unit, zone):
    window = Calendar.of(f"{unit} {zone}").window(when.timestamp())
    label = window.label
    assume("_" not in label)  # an hour in which the clock was changed has no short name
    assert run_window({"window": label}, when + timedelta(days=999), f"week {zone}") == window


def test_a_window_is_one_of_the_servers_time_zone():
    midnight = datetime(2020, 3, 2, tzinfo=ZoneInfo("Asia/Seoul"))
    assert run_window({}, midnight, "day Asia/Seoul").label == "2020-03-01"
    assert run_window({"unit": "month"}, midnight, "day Asia/Seoul").label == "2020-02"
    given = {"window_start": "2020-02-29T15:00:00Z", "window_end": "2020-03-02"}
    assert run_window(given, NOON, "day Asia/Seoul") == Window(
        datetime(2020, 3, 1, tzinfo=midnight.tzinfo), midnight
    )
