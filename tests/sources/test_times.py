from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.sources.times import parse_time


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2020-02-03T04:05:06+09:00", "2020-02-02T19:05:06"),
        ("2020-02-03T04:05:06Z", "2020-02-03T04:05:06"),
        ("2020-02-03 04:05:06", "2020-02-02T19:05:06"),
        ("2020-02-03", "2020-02-02T15:00:00"),
        ("Mon, 03 Feb 2020 04:05:06 +0900", "2020-02-02T19:05:06"),
        ("Mon, 03 Feb 2020 04:05:06 KST", "2020-02-02T19:05:06"),
        ("Mon, 03 Feb 2020 04:05:06 GMT", "2020-02-03T04:05:06"),
        ("2020년 2월 3일 오후 4:05", "2020-02-03T07:05:00"),
        ("2020년 2월 3일 오전 12시 5분", "2020-02-02T15:05:00"),
        ("입력 2020.02.03. 16:05", "2020-02-03T07:05:00"),
        ("2020.02.03 (월) 16:05:09", "2020-02-03T07:05:09"),
        ("2020/2/3", "2020-02-02T15:00:00"),
        ("20.02.03 16:05", "2020-02-03T07:05:00"),
        ("20-2-3", "2020-02-02T15:00:00"),
        (1580670306, "2020-02-02T19:05:06"),
        (1580670306000, "2020-02-02T19:05:06"),
        ("1580670306", "2020-02-02T19:05:06"),
    ],
)
def test_times_are_understood(value: object, expected: str) -> None:
    assert parse_time(value, "Asia/Seoul") == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("방금", "2020-02-03T12:00:00"),
        ("5분 전", "2020-02-03T11:55:00"),
        ("2 hours ago", "2020-02-03T10:00:00"),
        ("3일전", "2020-01-31T12:00:00"),
        ("20:59", "2020-02-03T11:59:00"),
        ("21:05", "2020-02-03T12:05:00"),
        ("23:30", "2020-02-02T14:30:00"),
        ("02.03 09:00", "2020-02-03T00:00:00"),
        ("12-31", "2019-12-30T15:00:00"),
        ("1월 2일", "2020-01-01T15:00:00"),
    ],
)
def test_relative_times_need_a_now(value: str, expected: str) -> None:
    now = datetime(2020, 2, 3, 12, tzinfo=UTC)  # 21:00 in Seoul
    found = parse_time(value, "Asia/Seoul", now)
    assert found == datetime.fromisoformat(expected).replace(tzinfo=UTC)
    assert parse_time(value, "Asia/Seoul") is None


@pytest.mark.parametrize(
    "value", [None, True, "", "어제", "2020-13-45", "0001-01-01T00:00:00+14:00", [], "9" * 13, 0]
)
def test_nonsense_is_no_time(value: object) -> None:
    found = parse_time(value, "Asia/Seoul")
    assert found is None or found.year > 2000


@given(st.one_of(st.text(max_size=80), st.floats(), st.integers(), st.none()))
def test_nothing_makes_it_fail(value: object) -> None:
    found = parse_time(value, "Asia/Seoul", datetime(2020, 1, 1, tzinfo=UTC))
    assert found is None or (found.tzinfo is UTC and found.year >= 1990)


@given(st.datetimes(min_value=datetime(1991, 1, 1), max_value=datetime(2100, 1, 1)))
def test_iso_times_round_trip(when: datetime) -> None:
    aware = when.replace(tzinfo=UTC)
    assert parse_time(aware.isoformat()) == aware
