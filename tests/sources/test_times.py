import calendar
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.sources.times import parse_time

SEOUL = ZoneInfo("Asia/Seoul")
DAYS = st.datetimes(min_value=datetime(1991, 1, 1), max_value=datetime(2069, 12, 31)).map(
    lambda when: when.replace(microsecond=0)
)
WEEKDAYS = "월화수목금토일"
ENGLISH_DATES = ("%d %b %Y", "%b %d, %Y", "%B %d %Y", "%d %B, %Y", "%a, %d %b %Y", "%a %b %d %Y")
NUMERIC_DATES = ("%Y-%m-%d", "%Y.%m.%d", "%Y.%m.%d.", "%Y/%m/%d", "%Y. %m. %d.", "%Y년 %m월 %d일")
ZONES = {
    "": None, " Z": 0, " UTC": 0, " GMT": 0, " -0000": 0, " +0000": 0, "+09:00": 9, " +0900": 9,
    " GMT+0900": 9, " UTC+9": 9, " KST": 9, " (KST)": 9, " JST": 9, " CET": 1, " EST": -5,
    " -05:00": -5, " -0500": -5, "+09:00[Asia/Seoul]": 9, " GMT+0900 (대한민국 표준시)": 9,
}  # fmt: skip


def plainly(when: datetime) -> str:
    return when.strftime("%H:%M:%S")


def with_marker(when: datetime) -> str:
    return when.strftime("%I:%M:%S %p")


def with_korean_marker(when: datetime) -> str:
    return ("오후 " if when.hour >= 12 else "오전 ") + when.strftime("%I:%M:%S")


def in_words(when: datetime) -> str:
    return when.strftime("%H시 %M분 %S초")


def in_parts_of_a_day(when: datetime) -> str:
    hour = when.hour % 12 or 12
    part = next(
        name
        for until, name in ((6, "새벽"), (12, "오전"), (13, "낮"), (18, "오후"), (24, "밤"))
        if when.hour < until
    )
    return f"{part} {hour}:{when:%M:%S}"


@given(
    DAYS,
    st.sampled_from(ENGLISH_DATES + NUMERIC_DATES),
    st.sampled_from([plainly, with_marker, with_korean_marker, in_words, in_parts_of_a_day]),
    st.sampled_from(sorted(ZONES)),
    st.sampled_from(["Asia/Seoul", "UTC", "America/New_York"]),
)
def test_a_date_with_clock_and_zone_is_that_moment(
    when: datetime, date: str, clock: object, mark: str, zone: str
) -> None:
    hours = ZONES[mark]
    where = ZoneInfo(zone) if hours is None else timezone(timedelta(hours=hours))
    text = f"{when.strftime(date)} {clock(when)}{mark}"  # type: ignore[operator]
    assert parse_time(text, zone) == when.replace(tzinfo=where).astimezone(UTC)


@given(DAYS, st.sampled_from(NUMERIC_DATES + ENGLISH_DATES), st.booleans())
def test_a_date_alone_is_its_midnight(when: datetime, form: str, weekday: bool) -> None:
    text = when.strftime(form) + (f" ({WEEKDAYS[when.weekday()]})" if weekday else "")
    midnight = when.replace(hour=0, minute=0, second=0, tzinfo=SEOUL)
    assert parse_time(text, "Asia/Seoul") == midnight


@given(DAYS, st.sampled_from(["+0900", "GMT", ""]))
def test_rfc_822_in_korean(when: datetime, zone: str) -> None:
    text = f"{WEEKDAYS[when.weekday()]}, {when.day:02} {when.month}월 {when:%Y %H:%M:%S} {zone}"
    where = {"+0900": SEOUL, "GMT": UTC, "": SEOUL}[zone]
    assert parse_time(text, "Asia/Seoul") == when.replace(tzinfo=where)


@given(DAYS)
def test_digits(when: datetime) -> None:
    for form, length in (("%Y%m%d%H%M%S", 0), ("%Y%m%d%H%M", 1), ("%Y%m%d", 3)):
        known = list(when.timetuple()[: 6 - length])
        expected = datetime(*known, tzinfo=SEOUL)
        assert parse_time(when.strftime(form), "Asia/Seoul") == expected


@given(st.integers(min_value=1_000_000_000, max_value=4_000_000_000))
def test_unix_times_in_their_units(seconds: int) -> None:
    expected = datetime.fromtimestamp(seconds, UTC)
    for scale in (1, 1_000, 1_000_000):
        assert parse_time(str(seconds * scale)) == parse_time(seconds * scale) == expected


@pytest.mark.parametrize(
    "value",
    [
        "2021-02-30", "2021.02.30 10:00", "2021년 13월 1일", "31 Apr 2020", "Feb 30, 2020",
        "2020-02-03 25:10", "2020-02-03 10:75", "2020-13-45", "20210230", "20200203256100",
    ],
)  # fmt: skip
def test_impossible_times_are_none(value: str) -> None:
    assert parse_time(value, "Asia/Seoul", datetime(2024, 1, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2020-02-03T04:05:06+09:00", "2020-02-02T19:05:06"),
        ("2020-02-03T24:00:00Z", "2020-02-04T00:00:00"),
        ("Mon, 03 Feb 2020 04:05:06 KST", "2020-02-02T19:05:06"),
        ("Thu, 01 Jan 04 19:48:21 GMT", "2004-01-01T19:48:21"),
        ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37"),
        ("Mon Feb 03 16:05:00 KST 2020", "2020-02-03T07:05:00"),
        ("2020년 2월 3일 오전 12시 5분", "2020-02-02T15:05:00"),
        ("2020년 2월 3일 밤 12:05", "2020-02-02T15:05:00"),
        ("2020년 2월 3일 정오", "2020-02-03T03:00:00"),
        ("입력 2020.02.03. 16:05", "2020-02-03T07:05:00"),
        ("2020.02.03 16:05 ~ 2020.02.04 18:00", "2020-02-03T07:05:00"),
        ("2020.02.03 10:00-18:00", "2020-02-03T01:00:00"),
        ("2020.02.03 16:05 조회 37", "2020-02-03T07:05:00"),
        ("20.02.03 16:05", "2020-02-03T07:05:00"),
        ("'20.02.03 16:05", "2020-02-03T07:05:00"),
        ("20-2-3", "2020-02-02T15:00:00"),
        ("24/03/01", "2024-02-29T15:00:00"),
        ("2020-02", "2020-01-31T15:00:00"),
        ("２０２０．０２．０３", "2020-02-02T15:00:00"),
        (1580670306, "2020-02-02T19:05:06"),
    ],
)
def test_times_are_understood(value: object, expected: str) -> None:
    assert parse_time(value, "Asia/Seoul") == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_a_short_date_outside_east_asia_is_read_where_it_can_mean_one_thing() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert parse_time("31.10.23", "UTC", now) == datetime(2023, 10, 31, tzinfo=UTC)
    assert parse_time("24/03/01", "UTC", now) == datetime(2024, 3, 1, tzinfo=UTC)
    assert parse_time("03/02/24", "UTC", now) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("방금", "2020-02-03T12:00:00"),
        ("5분 전", "2020-02-03T11:55:00"),
        ("2 hours ago", "2020-02-03T10:00:00"),
        ("an hour ago", "2020-02-03T11:00:00"),
        ("3일전", "2020-01-31T12:00:00"),
        ("1주일 전", "2020-01-27T12:00:00"),
        ("하루 전", "2020-02-02T12:00:00"),
        ("1개월 전", "2020-01-03T12:00:00"),
        ("2년 전", "2018-02-03T12:00:00"),
        ("20:59", "2020-02-03T11:59:00"),
        ("21:05", "2020-02-03T12:05:00"),
        ("23:30", "2020-02-02T14:30:00"),
        ("오후 3:05", "2020-02-03T06:05:00"),
        ("오늘 10:30", "2020-02-03T01:30:00"),
        ("어제", "2020-02-01T15:00:00"),
        ("어제 오후 3시", "2020-02-02T06:00:00"),
        ("그저께 12:30", "2020-02-01T03:30:00"),
        ("yesterday at 4 PM", "2020-02-02T07:00:00"),
        ("02.03 09:00", "2020-02-03T00:00:00"),
        ("12-31", "2019-12-30T15:00:00"),
        ("1월 2일", "2020-01-01T15:00:00"),
        ("3d ago", "2020-01-31T12:00:00"),
        ("1 hour and 5 minutes ago", "2020-02-03T10:55:00"),
        ("half an hour ago", "2020-02-03T11:30:00"),
        ("1시간 반 전", "2020-02-03T10:30:00"),
        ("하루 2시간 전", "2020-02-02T10:00:00"),
        ("열흘 전에", "2020-01-24T12:00:00"),
        ("반년 전", "2019-08-03T12:00:00"),
        ("몇 분 전", "2020-02-03T11:57:00"),
        ("잠시 전", "2020-02-03T12:00:00"),
        ("어젯밤 11:30", "2020-02-02T14:30:00"),
        ("어제(일) 11:30 KST", "2020-02-02T02:30:00"),
        ("토요일", "2020-01-31T15:00:00"),
        ("Monday at 3:05 PM", "2020-02-03T06:05:00"),
        ("(월) 23:30", "2020-01-27T14:30:00"),
        ("last Friday", "2020-01-30T15:00:00"),
    ],
)
def test_relative_times_need_a_now(value: str, expected: str) -> None:
    now = datetime(2020, 2, 3, 12, tzinfo=UTC)  # 21:00 in Seoul
    found = parse_time(value, "Asia/Seoul", now)
    assert found == datetime.fromisoformat(expected).replace(tzinfo=UTC)
    assert parse_time(value, "Asia/Seoul") is None


UNITS = {
    "s m h d w": ("s", "m", "h", "d", "w"),
    "words": (" seconds", " mins.", " hours", " days", " weeks"),
    "Korean": ("초", "분", " 시간", "일", "주"),
}
SECONDS = (1, 60, 3600, 86_400, 604_800)


@given(
    st.sampled_from(sorted(UNITS)),
    st.lists(st.integers(1, 99), min_size=5, max_size=5),
    st.sets(st.integers(0, 4), min_size=1),
    st.sampled_from(["", " ", ", "]),
)
def test_lengths_of_several_units_add_up(
    kind: str, counts: list[int], chosen: set[int], between: str
) -> None:
    places = sorted(chosen, reverse=True)
    length = between.join(f"{counts[at]}{UNITS[kind][at]}" for at in places)
    text = length + (" 전" if kind == "Korean" else " ago")
    now = datetime(2024, 3, 5, 3, tzinfo=UTC)
    ago = timedelta(seconds=sum(counts[at] * SECONDS[at] for at in places))
    assert parse_time(f"등록 {text}", "Asia/Seoul", now) == now - ago
    assert parse_time(length, "Asia/Seoul", now) is None


@given(
    st.dates(datetime(2023, 3, 6).date(), datetime(2024, 3, 5).date()),
    st.sampled_from(["{0.month}.{0.day} ({1})", "{0:%m/%d}[{1}]", "{0.month}월 {0.day}일 {1}요일"]),
    st.sampled_from([("", 0), (" 00:01", 1), (" 오전 0시 1분", 1)]),
)
def test_a_day_of_the_last_year_may_have_its_weekday(
    day: datetime, form: str, clock: tuple[str, int]
) -> None:
    now = datetime(2024, 3, 5, 3, tzinfo=UTC)
    wanted = datetime(day.year, day.month, day.day, 0, clock[1], tzinfo=SEOUL)
    text = form.format(day, WEEKDAYS[day.weekday()]) + clock[0]
    assert parse_time(text, "Asia/Seoul", now) == wanted


@pytest.mark.parametrize(
    "value",
    [
        "조금", "잠시", "5m", "12시간", "1h", "5 min read", "30+ days ago", "몇 년 전", "수일 전",
        "a few days ago", "반나절 전", "2분 후", "in 5 minutes", "내일", "다음 달", "작년",
        "3일 전국대회", "접수일 전", "1,234 days ago", "Sun", "friend", "monthly", "3.1절",
    ],
)  # fmt: skip
def test_what_names_no_moment_is_not_now(value: str) -> None:
    assert parse_time(value, "Asia/Seoul", datetime(2024, 3, 5, 3, tzinfo=UTC)) is None


@given(DAYS, st.integers(min_value=1, max_value=40))
def test_months_ago_end_on_a_day_of_that_month(now: datetime, months: int) -> None:
    found = parse_time(f"{months}개월 전", "UTC", now.replace(tzinfo=UTC))
    if found is not None:  # else before 1990
        assert (now.year - found.year) * 12 + now.month - found.month == months
        assert found.day == min(now.day, calendar.monthrange(found.year, found.month)[1])


@pytest.mark.parametrize(
    "value", [None, True, "", "어제", "0001-01-01T00:00:00+14:00", [], "9" * 13, 0, "010-1234-5678"]
)
def test_nonsense_is_no_time(value: object) -> None:
    found = parse_time(value, "Asia/Seoul")
    assert found is None or found.year > 2000


@given(st.one_of(st.text(max_size=200), st.floats(), st.integers(), st.none()))
def test_nothing_makes_it_fail(value: object) -> None:
    found = parse_time(value, "Asia/Seoul", datetime(2020, 1, 1, tzinfo=UTC))
    assert found is None or (found.tzinfo is UTC and found.year >= 1990)


@given(st.datetimes(min_value=datetime(1991, 1, 1), max_value=datetime(2100, 1, 1)))
def test_iso_times_round_trip(when: datetime) -> None:
    aware = when.replace(tzinfo=UTC)
    assert parse_time(aware.isoformat()) == aware


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("3.2.2020", (2020, 2, 3)),
        ("03.02.2020, 16:05 Uhr", (2020, 2, 3, 16, 5)),
        ("24. 5. 2020", (2020, 5, 24)),
        ("17/02/2020", (2020, 2, 17)),
        ("02/17/2020", (2020, 2, 17)),
        ("17-02-2020 04:05 PM", (2020, 2, 17, 16, 5)),
        ("03/02/2020", None),
        ("31.02.2020", None),
        ("2020.02.03", (2020, 2, 3)),
    ],
)
def test_a_day_goes_first_where_it_can_only_be_one(text: str, when: tuple[int, ...] | None) -> None:
    wanted = datetime(*when, tzinfo=UTC) if when else None  # type: ignore[arg-type, misc]
    assert parse_time(text, day_first=True) == wanted
    if text[:4] != "2020":
        assert parse_time(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "3. Februar 2020", "3 févr. 2020", "3 de febrero de 2020", "3 febbraio 2020",
        "3 fevereiro 2020", "3rd of February 2020",
    ],
)  # fmt: skip
def test_months_are_read_in_six_languages(text: str) -> None:
    assert parse_time(text) == datetime(2020, 2, 3, tzinfo=UTC)
    assert parse_time(f"{text} 16:05") == datetime(2020, 2, 3, 16, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        *("3:05 PM, March 1, 2024", "15:05, 1 March 2024", "오후 3:05 2024.03.01"),
        *("2024.03.01 (15:05)", "2024.03.01_15:05", "202403011505", "20240301150500 +0900"),
        *("/Date(1709273100000)/", "/Date(1709273100000+0900)/", "2024\u200b.03.01 15:05"),
        *("\u200e3/\u200e1/2024 noon", "2024. 3. 1.(금) 오후 3:05", "'24.3.1 15:05"),
    ],
)
def test_times_as_programs_and_papers_write_them(text: str) -> None:
    found = parse_time(text, "Asia/Seoul")
    wanted = datetime(2024, 3, 1, 15, 5, tzinfo=SEOUL)
    assert found == (None if "noon" in text else wanted)


@pytest.mark.parametrize(("word", "hour"), [("noon", 12), ("midnight", 0), ("정오", 12)])
def test_noon_is_a_clock(word: str, hour: int) -> None:
    assert parse_time(f"Mar 1, 2024 {word}") == datetime(2024, 3, 1, hour, tzinfo=UTC)


@pytest.mark.parametrize("mark", [" - ", " – ", " · ", " / ", " | "])
@pytest.mark.parametrize("date", ["2024.03.01", "2024-03-01 (금)", "Mar 1, 2024"])
def test_a_mark_may_stand_between_a_date_and_its_clock(date: str, mark: str) -> None:
    wanted = datetime(2024, 3, 1, 9, 30, tzinfo=SEOUL)
    assert parse_time(f"{date}{mark}09:30", "Asia/Seoul") == wanted


@pytest.mark.parametrize(
    "zone", ["(UTC+9)", "(GMT+09:00)", "Asia/Seoul", "(Asia/Seoul)", "[Asia/Seoul]"]
)
def test_a_zone_may_stand_in_brackets_or_by_its_place(zone: str) -> None:
    assert parse_time(f"2024-03-01 09:30 {zone}") == datetime(2024, 3, 1, 0, 30, tzinfo=UTC)


def test_the_date_of_java_in_korean_a_month_alone_and_less_than_a_minute() -> None:
    now = datetime(2024, 3, 1, 9, 30, tzinfo=SEOUL)
    assert parse_time("금 3월  1 09:30:00 KST 2024") == now
    assert parse_time("2024. 3.", "Asia/Seoul") == datetime(2024, 3, 1, tzinfo=SEOUL)
    assert parse_time("1분 미만 전", "Asia/Seoul", now) == now


@pytest.mark.parametrize(
    "text",
    [
        *("3:05 PM · 2024년 3월 1일", "오후 3:05 - 2024년 3월 1일", "2024年3月1日(金) 午後3時5分"),
        *("2024-03-01 午後 3:05", "2024.03.01&nbsp;15:05", "금, 01 3 2024 15:05:00 +0900"),
        *("2024-Mar-01 15:05", "2024-03-01T01:05:00\u221205:00", "Fri 1 Mar 2024 06.05 GMT"),
        *("March 1 2024 3.05pm", "1. März 2024 um 15:05", "le 1er mars 2024 à 15h05"),
        "20240301150500.0",
    ],
)
def test_clocks_and_dates_of_other_lands_and_programs(text: str) -> None:
    wanted = datetime(2024, 3, 1, 15, 5, tzinfo=SEOUL)
    assert parse_time(text, "Asia/Seoul") == wanted


def test_half_past_and_hours_ago_in_japanese() -> None:
    now = datetime(2024, 3, 1, 14, 20, tzinfo=SEOUL)
    assert parse_time("2024년 3월 1일 저녁 7시 반") == datetime(2024, 3, 1, 19, 30, tzinfo=UTC)
    assert parse_time("3時間前", "Asia/Seoul", now) == now - timedelta(hours=3)
    assert parse_time("昨日 10:05", "Asia/Seoul", now) == datetime(2024, 2, 29, 10, 5, tzinfo=SEOUL)


@given(st.datetimes(min_value=datetime(1991, 1, 1), max_value=datetime(2100, 1, 1)))
def test_a_number_may_be_the_digits_of_a_date(when: datetime) -> None:
    whole = when.replace(microsecond=0, tzinfo=UTC)
    assert parse_time(int(f"{whole:%Y%m%d%H%M%S}")) == whole
    assert parse_time(int(f"{whole:%Y%m%d}")) == whole.replace(hour=0, minute=0, second=0)
    assert parse_time(10**5000) is None
