"""Reading the many ways in which the web writes a time.

    time     = moment | date [weekday] [clock [zone]] | clock [zone] date | ago | near
    moment   = Unix seconds, milliseconds, microseconds | 14, 12 or 8 digits [zone] | ISO 8601
    date     = 2020-02-03 | 2020년 2월 3일 | 20.02.03 | 3 Feb 2020 | Feb 3, 2020 | 03 2월 2020
    clock    = [half] 4:05[:06] [PM] | [half] 4시 [5분 [6초] | 반] | 4 PM | 4.05pm | 정오 | noon
    half     = 오전 | 오후 | 새벽 | 아침 | 낮 | 저녁 | 밤 | AM | PM
    zone     = Z | +09:00 | GMT+9 | KST | [Asia/Seoul]
    weekday  = (금) | 금요일 | Fri | Friday
    ago      = length {length} (전 | ago) | 방금 | 조금 전 | just now
    length   = 5분 | 1시간 반 | 두 달 | 사흘 | 2 hours | 5m | 2h | 3d | 1w | 2mo | half an hour
    near     = (어제 | 02.03 [weekday] | 금요일) [clock] | clock

`ago` and `near` mean a time only beside the time at which they were read. A date of a month alone
is its first day, and a date without a clock the midnight at which it begins. A length alone (`5m`,
`12시간`) may be how long something lasts, and `몇 년 전` names no day: both mean nothing.
"""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from html import unescape
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from embedding.kernel.patterns import later

_LONGEST = 120
"""Characters in which a time is looked for."""
_FAST = timedelta(minutes=10)
"""A clock of a site may be so much ahead of ours before its time is taken for yesterday's."""
_EARLIEST, _LATEST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_FURTHEST = timedelta(hours=14)
"""No zone is further from UTC."""

_UNSEEN = re.compile("[\u200b\u200e\u200f\u2060\ufeff\xad]")
"""Marks without a width, as programs put them around a date."""
_IN_HANGUL = str.maketrans(
    "年月日時分秒間前午後火水木金土昨今−", "년월일시분초간전오후화수목금토작금-"
)
"""How a date in Japanese or Chinese characters is read in Korean; and the sign of minus."""

_MONTH_NAMES = (
    "jan ene gen", "feb fev fév", "mar mär mrz", "apr avr abr", "may mai mag", "jun juin giu",
    "jul juil lug", "aug aoû aou ago", "sep set", "oct okt ott out", "nov", "dec dez déc dic",
)  # fmt: skip
"""How names of months begin in English, German, French, Spanish, Italian and Portuguese."""
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}
_HOURS = {
    "Z": 0, "UT": 0, "UTC": 0, "GMT": 0, "WET": 0, "BST": 1, "WEST": 1, "CET": 1, "MET": 1,
    "CEST": 2, "MEST": 2, "EET": 2, "SAST": 2, "EEST": 3, "MSK": 3, "IST": 5.5, "ICT": 7, "WIB": 7,
    "HKT": 8, "SGT": 8, "AWST": 8, "KST": 9, "JST": 9, "AEST": 10, "AEDT": 11, "NZST": 12,
    "NZDT": 13, "NST": -3.5, "AST": -4, "ADT": -3, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5,
    "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10,
}  # fmt: skip
"""Hours east of UTC of an abbreviation; those of America as RFC 822 has them."""
_PLACES = {
    "AT": "America/Halifax",
    "ET": "America/New_York",
    "CT": "America/Chicago",
    "MT": "America/Denver",
    "PT": "America/Los_Angeles",
    "한국": "Asia/Seoul",
    "서울": "Asia/Seoul",
    "대한민국": "Asia/Seoul",
    "일본": "Asia/Tokyo",
}
_EAST_ASIAN = ("Asia/Seoul", "Asia/Pyongyang", "Asia/Tokyo", "Asia/Shanghai", "Asia/Taipei")
"""Where a date that begins with two digits of a year is the custom."""
_MORNING = ("오전", "새벽", "아침", "am")
_EVENING = ("오후", "저녁", "pm")

_HALF = r"오전|오후|새벽|아침|한낮|낮|저녁|밤|(?<![a-z])[ap]\.?m\.?(?![a-z])"
_CLOCK = (
    rf"(?:(?P<noon>정오|자정|(?<![a-z])(?:noon|midnight)(?![a-z]))|(?P<half>{_HALF})?\s*(?<!\d)(?P<hour>\d{{1,2}})"
    r"(?:(?:\s*[:h]\s*|\.(?=\d\d\s?(?:[ap]\.?m|gmt|uhr)))"
    r"(?P<minute>\d{2})(?!\d)(?:\s*:\s*(?P<second>\d{2})(?:[.,]\d{1,9})?(?!\d))?"
    r"|\s*시(?!간)(?:\s*(?P<korean_minute>\d{1,2})\s*분(?!\s*전)(?:\s*(?P<korean_second>\d{1,2})\s*초)?"
    r"|\s?(?P<thirty>반)|\s*(?P<loose_minute>\d{2})(?![\d분]))?"
    rf"|(?=\s*(?:{_HALF})))"
    rf"(?:\s*(?P<after>{_HALF}))?)"
)
_ZONE = (
    r"(?:\s*(?:\(?(?:gmt|utc|ut)\s*)?(?P<sign>[+-])(?P<offset_hour>\d{1,2})(?::?(?P<offset_minute>\d{2}))?(?![\d:])"
    r"|\s*\(?(?P<zone>z|[a-z]{2,5}|한국|서울|대한민국|일본)(?![a-z가-힣/])(?:\s?(?:표준시|시간|시각))?\)?)?"
    r"(?:\s*[\[(]?(?P<place>[a-z_]{1,20}(?:/[a-z_]{1,20}){1,2})[\])]?)?"
)
_DAY_NAME = r"(?:mon|tue|wed|thu|fri|sat|sun)(?:(?:s|nes|rs|ur)?day|r?s)?(?![a-z])"
_WEEKDAY = rf"[(\[]?(?:[월화수목금토일](?:요일)?(?![가-힣])|{_DAY_NAME})[)\]]?"
_GAP = r"(?:[\s,T|_(]|(?<=\s)[-–·/](?=\s)|\b(?:at|on|um|à)\b){0,4}"
_THEN = rf"(?:{_GAP}(?:{_WEEKDAY})?{_GAP}{_CLOCK}{_ZONE}|{_GAP}{_WEEKDAY})?"
_NAME = rf"(?P<name>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})[a-zéû]{{0,6}}\.?"
_DAY = r"(?<!\d)(?P<day>\d{1,2})(?:st|nd|rd|th|\.|er|º)?(?!\d)"
_YEAR = r"(?P<year>\d{4})(?!\d)"
_PARTS = r"\s?(?P<mark>[./-])\s?(?P<month>0?\d{1,2})\s?(?P=mark)\s?(?P<day>\d{1,2})(?![\d:])\.?"


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(later(pattern, re.IGNORECASE) for pattern in patterns)


_DATES = _compiled(
    rf"(?<![\d./-])(?P<year>\d{{4}}){_PARTS}{_THEN}",
    r"(?<!\d)(?P<year>\d{4})\s?년\s?(?P<month>\d{1,2})\s?월\s?(?P<day>\d{1,2})\s?일?" + _THEN,
    r"(?<!\d)(?P<short>\d{2})\s?년\s?(?P<month>\d{1,2})\s?월\s?(?P<day>\d{1,2})\s?일?" + _THEN,
    rf"(?<![\d./:+-])(?P<short>\d{{2}}){_PARTS}{_THEN}",
    # 3 Feb 2020 and 03 2월 2020, as RFC 822 and its translations have it
    rf"{_DAY}[\s-]?(?:(?:of|de)\s)?(?:{_NAME}|(?P<month>\d{{1,2}})월),?[\s-]?(?:de\s)?{_YEAR}{_THEN}",
    rf"{_DAY}[\s-]{_NAME}[\s-](?P<short>\d{{2}})(?![\d:.]){_THEN}",
    rf"\b{_NAME}\s?{_DAY},?\s?{_YEAR}{_THEN}",
    rf"(?<!\d){_YEAR}(?P<mark>[/-]){_NAME}(?P=mark){_DAY}{_THEN}",
    # 금, 03 2 2020, as Java translates RFC 822
    rf"{_WEEKDAY},\s{_DAY}\s(?P<month>\d{{1,2}})\s{_YEAR}{_THEN}",
    # Mon Feb 03 16:05:00 KST 2020, as `date` prints it
    rf"(?:\b{_NAME}|(?P<month>\d{{1,2}})월)\s{_DAY}\s{_CLOCK}{_ZONE}\s{_YEAR}",
)
_DAY_FIRST = _compiled(
    # 3.2.2020; with / or - where one of the two is no month
    rf"(?<![\d./-])(?P<day>\d{{1,2}})\.\s?(?P<month>\d{{1,2}})\.\s?{_YEAR}{_THEN}",
    rf"(?<![\d./-])(?P<day>1[3-9]|2\d|3[01])(?P<mark>[/-])(?P<month>\d{{1,2}})(?P=mark){_YEAR}{_THEN}",
    rf"(?<![\d./-])(?P<month>\d{{1,2}})(?P<mark>[/-])(?P<day>1[3-9]|2\d|3[01])(?P=mark){_YEAR}{_THEN}",
)
_MONTH_ALONE = _compiled(
    r"(?P<year>\d{4})[./-]\s?(?P<month>\d{1,2})\.?",
    r"(?P<year>\d{4})\s?년\s?(?P<month>\d{1,2})\s?월",
    rf"{_NAME},?\s?{_YEAR}",
)
_DIGITS = _compiled(
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)"
    rf"(?:(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)?)?(?:\.\d{{1,9}})?{_ZONE}"
)[0]
_WRAPPED = re.compile(r"/Date\((\d{1,16})(?:[+-]\d{4})?\)/")
"""A moment in the JSON of .NET."""
_THIS_YEAR = _compiled(
    rf"(?P<month>\d{{1,2}})\s?(?:[./-]|월)\s?(?P<day>\d{{1,2}})\s?(?:일|\.)?(?![\d:]){_THEN}",
    rf"{_NAME}\s?{_DAY}{_THEN}",
    rf"{_DAY}\s?{_NAME}{_THEN}",
)
_BEFORE = _compiled(
    r"the\s|지난\s?|last\s"
    rf"|{_WEEKDAY}[\s,]{{1,2}}(?=\d{{1,2}}\s?[./월-]|(?:\d{{1,2}}\s)?[a-z]{{3}})"
)[0]
"""What may stand before a day of `near`."""
_DAYS_AGO = {
    "오늘": 0, "금일": 0, "today": 0, "어제": 1, "어저께": 1, "어젯": 1, "전일": 1, "작일": 1,
    "yesterday": 1, "그제": 2, "그저께": 2, "엊그제": 2, "day before yesterday": 2, "그끄저께": 3,
}  # fmt: skip
_NEAR_DAY = _compiled(
    rf"(?P<near>{'|'.join(_DAYS_AGO)}){_THEN}",
    rf"(?P<near>[월화수목금토일])요일{_THEN}",
    rf"(?P<near>(?:mon|tue|wed|thu|fri|sat|sun))(?:s|nes|rs|ur)?day{_THEN}",
    rf"\(?(?P<near>[월화수목금토일]|mon|tue|wed|thu|fri|sat|sun)\)?{_GAP}{_CLOCK}{_ZONE}",
)
_WEEKDAYS = ("월 mon", "화 tue", "수 wed", "목 thu", "금 fri", "토 sat", "일 sun")
_WEEKDAY_NUMBERS = {name: at for at, names in enumerate(_WEEKDAYS) for name in names.split()}
_CLOCK_ALONE = _compiled(_CLOCK + _ZONE)[0]
_NOW = _compiled(
    r"방금(?:\s*전)?|지금|(?:조금|좀|잠시|막|1분 (?:미만|이내))\s*전|(?:just|right)?\s?now"
    r"|(?:(?:a|just a|a few)\s)?moments? ago|less than a minute ago"
)[0]
_NUMBERS = {
    "half an": 0.5, "half a": 0.5, "an": 1, "a": 1, "one": 1, "two": 2, "three": 3, "four": 4,
    "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
    "반": 0.5, "한": 1, "두": 2, "세": 3, "석": 3, "네": 4, "넉": 4, "다섯": 5, "여섯": 6,
    "일곱": 7, "여덟": 8, "아홉": 9, "열": 10,
}  # fmt: skip
_FEW = {"몇": 3, "수": 3, "a few": 3, "a couple of": 2}
"""Of hours and less; of days and more nobody knows which is meant."""
_DAYS = {
    "하루": 1, "이틀": 2, "사흘": 3, "나흘": 4, "닷새": 5, "엿새": 6, "이레": 7, "여드레": 8,
    "아흐레": 9, "열흘": 10, "일주일": 7, "보름": 15,
}  # fmt: skip
_UNITS = {
    "mo": (1, 0), "개월": (1, 0), "달": (1, 0), "년": (12, 0), "y": (12, 0),
    "초": (0, 1), "s": (0, 1), "분": (0, 60), "m": (0, 60), "시간": (0, 3600), "h": (0, 3600),
    "일": (0, 86_400), "d": (0, 86_400), "주": (0, 604_800), "w": (0, 604_800),
}  # fmt: skip
"""How units begin, with their months and seconds."""
_LENGTH = (
    r"(?:(?P<n>\d{1,4}(?:\.\d{1,2})?|(?<![a-z가-힣])"
    rf"(?:{'|'.join([*_FEW, *_NUMBERS])})(?:(?<=[가-힣])|(?=\s)))\s?"
    r"(?P<unit>(?:초|분|시간|일|주일|주|개월|달|년)(?P<half>\s?반)?|(?:mo(?:nth)?|s(?:ec(?:ond)?)?"
    r"|m(?:in(?:ute)?)?|h(?:r|our)?|d(?:ay)?|w(?:k|eek)?|y(?:r|ear)?)s?\.?(?![a-z]))"
    rf"|(?P<word>(?<![가-힣])(?:{'|'.join(_DAYS)})))"
)
_LENGTHS = _compiled(_LENGTH)[0]
_AGO = _compiled(
    rf"(?<![\d.a-z])(?<!\d,)(?:{re.sub('[?]P<[a-z]+>', '?:', _LENGTH)}(?:\s|,|and\b){{0,4}}){{1,6}}"
    r"(?:전(?:에)?(?![가-힣])|ago(?![a-z]))"
)[0]


def parse_time(
    value: object, zone: str = "UTC", now: datetime | None = None, *, day_first: bool = False
) -> datetime | None:
    """The time (UTC) that `value` means, or None when it means none, or an impossible one.

    value  a number of Unix seconds, milliseconds, microseconds or nanoseconds, or text in which the
           first date counts (see the module for what is understood)
    zone   of a time that names none
    now    when the text was read: without it `어제` and `5분 전` mean nothing
    day_first  whether 3.2.2020 is 3 February

    Years before 1990 and from 2200 on are taken for nonsense, and 30 February is no day.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float):
        return _checked(_from_unix(value))
    if isinstance(value, int):  # 20240301, or Unix seconds
        value = str(value) if abs(value) < 10**19 else ""
    if not isinstance(value, str):
        return None
    text = unescape(value[: 4 * _LONGEST])
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).translate(_IN_HANGUL)
    text = " ".join(text.split())[:_LONGEST]
    text = _WRAPPED.sub(r"\1", text) if text[:1] == "/" else text
    if not text:
        return None
    local = ZoneInfo(zone)
    if text.isascii() and (digits := _DIGITS.fullmatch(text)):
        return _checked(_placed(digits.groupdict(), local))
    if re.fullmatch(r"\d{9,19}(?:\.\d+)?", text) and text.isascii():
        return _checked(_from_unix(float(text)))
    patterns = (*_DATES, *_DAY_FIRST) if day_first else _DATES
    try:
        when: datetime | None = datetime.fromisoformat(text)
    except ValueError:
        when = _dated(text, local, now or datetime.now(UTC), patterns)
    if when is not None and when.tzinfo is None:
        when = when.replace(tzinfo=local)
    if when is None and now is not None:
        here = now.astimezone(local)
        with suppress(ValueError, OverflowError):
            when = here if _NOW.fullmatch(text) else _ago(text, here) or _near(text, here)
    return _checked(when)


def _checked(when: datetime | None) -> datetime | None:
    """`when` in UTC, unless it is out of range."""
    if when is None:
        return None
    try:
        utc = when.astimezone(UTC)
    except (OverflowError, ValueError):
        return None
    return utc if _EARLIEST <= utc < _LATEST else None


def _from_unix(number: float) -> datetime | None:
    units = (unit for unit in (1.0, 1e3, 1e6, 1e9) if 0 <= number / unit <= 1e11)
    return next((datetime.fromtimestamp(number / unit, UTC) for unit in units), None)


def _dated(
    text: str, zone: ZoneInfo, now: datetime, patterns: Sequence[re.Pattern[str]]
) -> datetime | None:
    """The first date of a text, with the clock and the zone behind it."""
    for pattern in patterns:
        if match := pattern.search(text):
            part = match.groupdict()
            if part.get("short") and part.get("mark"):
                part = _in_order(part, zone, now)
            if part.get("hour") is part.get("noon") is None and match.start():
                clock = _CLOCK_ALONE.fullmatch(text[: match.start()].strip(" ,|·-"))
                part = {**part, **clock.groupdict()} if clock else part
            return _placed(part, zone)
    for pattern in _MONTH_ALONE:
        if month := pattern.fullmatch(text):
            return _placed({**month.groupdict(), "day": "1"}, zone)
    return None


def _in_order(part: dict[str, str | None], zone: ZoneInfo, now: datetime) -> dict[str, str | None]:
    """What of 24/02/03 is the year: the first, but where that is yet to come, as in 31.10.23.

    03/02/24 may begin with a day or a month, too: outside East Asia it is no date.
    """
    first, last = int(part["short"] or 0), int(part["day"] or 0)
    if zone.key in _EAST_ASIAN:
        return part
    if 2000 + first > now.year + 1 and 2000 + last <= now.year + 1 and first <= 31:
        return {**part, "short": str(last), "day": str(first)}
    if part["mark"] == "/" and first <= 12:
        return {**part, "month": None}
    return part


def _placed(part: Mapping[str, str | None], zone: tzinfo) -> datetime | None:
    """A date with its clock, in its zone; None where one of them cannot be."""
    year = part.get("year")
    if year is None:
        short = int(part.get("short") or 0)
        year = str(short + (2000 if short < 70 else 1900))
    name = part.get("name")
    month = _MONTHS[name.lower()] if name else int(part.get("month") or 0)
    try:
        day = date(int(year), month, int(part.get("day") or 0))
        clock = _clock(part)
        where = _zone_of(part, zone)
        return None if clock is None or where is None else _at(day, clock, where)
    except (ValueError, OverflowError):
        return None


def _at(day: date, clock: timedelta, zone: tzinfo) -> datetime:
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001  (its zone comes last)
    return (midnight + clock).replace(tzinfo=zone)


def _clock(part: Mapping[str, str | None]) -> timedelta | None:
    """Time of day since midnight, 0 where no clock was written; None: there is no such time."""
    noon = part.get("noon")
    if noon:
        return timedelta(hours=12 if noon.lower() in ("정오", "noon") else 0)
    if part.get("hour") is None:
        return timedelta()
    hour = int(part["hour"] or 0)
    written = _first(part, "minute", "korean_minute", "loose_minute")
    minute = 30 if part.get("thirty") else int(written or 0)
    second = int(_first(part, "second", "korean_second") or 0)
    half = (_first(part, "half", "after") or "").lower().replace(".", "")
    hour = _of_half(hour, half)
    # 24:00 is the end of a day, and a leap second the one before.
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second)):
        return None
    return timedelta(hours=hour, minutes=minute, seconds=min(second, 59))


def _first(part: Mapping[str, str | None], *names: str) -> str | None:
    return next((value for name in names if (value := part.get(name))), None)


def _of_half(hour: int, half: str) -> int:
    """The hour of 24 that is meant by one of 12 in a part of the day."""
    if half in _MORNING:
        return 0 if hour == 12 else hour
    if half in _EVENING:
        return hour + 12 if hour < 12 else hour
    if half in ("낮", "한낮"):
        return hour + 12 if hour < 6 else hour
    if half == "밤":
        return 0 if hour == 12 else hour + 12 if 5 < hour < 12 else hour
    return hour


def _zone_of(part: Mapping[str, str | None], zone: tzinfo) -> tzinfo | None:
    """The zone that is written, else `zone`; None: one is written that cannot be."""
    if part.get("sign"):
        hours, minutes = int(part["offset_hour"] or 0), int(part["offset_minute"] or 0)
        offset = timedelta(hours=hours, minutes=minutes)
        if offset > _FURTHEST or minutes > 59:
            return zone  # `10:00-18:00` is a time and its end
        return timezone(-offset if part["sign"] == "-" else offset)
    if part.get("place"):
        try:
            return ZoneInfo(str(part["place"]))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return zone
    name = (part.get("zone") or "").upper()
    if name in _PLACES:
        return ZoneInfo(_PLACES[name])
    if name == "CST" and str(zone) in ("Asia/Shanghai", "Asia/Taipei"):
        return zone
    return timezone(timedelta(hours=_HOURS[name])) if name in _HOURS else zone


def _ago(text: str, now: datetime) -> datetime | None:
    match = _AGO.search(text)
    if match is None:
        return None
    months = seconds = 0.0
    for part in _LENGTHS.finditer(match[0]):
        if part["word"]:
            seconds += _DAYS[part["word"]] * 86_400
            continue
        word, unit = part["n"].lower(), part["unit"].lower()
        of_months, of_seconds = next(_UNITS[mark] for mark in _UNITS if unit.startswith(mark))
        if word in _FEW and (of_months or of_seconds > 3600):
            return None
        n = _FEW.get(word) or _NUMBERS.get(word) or float(word)
        n += 0.5 if part["half"] else 0.0
        months, seconds = months + n * of_months, seconds + n * of_seconds
    whole = int(months)
    # The same day of an earlier month, or that month's last.
    year, month = divmod(now.year * 12 + now.month - 1 - whole, 12)
    day = min(now.day, monthrange(year, month + 1)[1])
    then = now.replace(year=year, month=month + 1, day=day)
    return then - timedelta(days=30 * (months - whole), seconds=seconds)


def _near(text: str, now: datetime) -> datetime | None:
    """`어제 12:30`, `금요일` of the last seven days, `02.03 (금) 10:30` of the last twelve months,
    `10:30` of the last 24 hours."""
    zone = now.tzinfo or UTC
    if before := _BEFORE.match(text):
        text = text[before.end() :]
    for pattern in (*_NEAR_DAY, _CLOCK_ALONE):
        if match := pattern.fullmatch(text):
            part = match.groupdict()
            clock, where = _clock(part), _zone_of(part, zone)
            if clock is None or where is None:
                return None
            name = (part.get("near") or "").lower()
            ago, again = _DAYS_AGO.get(name, 0), 0 if name else 1
            if name in _WEEKDAY_NUMBERS:
                ago, again = (now.weekday() - _WEEKDAY_NUMBERS[name]) % 7, 7
            day = _at(now.astimezone(where).date() - timedelta(days=ago), clock, where)
            return day - timedelta(days=again if day > now + _FAST else 0)
    for pattern in _THIS_YEAR:
        if match := pattern.fullmatch(text):
            part = match.groupdict()
            for year in (now.year, now.year - 1):
                when = _placed({**part, "year": str(year)}, zone)
                if when is not None and when <= now + _FAST:
                    return when
            return None
    return None
