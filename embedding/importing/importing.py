"""`yeoron import`: files of any known kind become one dated corpus."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from json.encoder import encode_basestring
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embedding.importing.encodings import check_encoding
from embedding.importing.opening import check_file, opened
from embedding.importing.readers import (
    READERS,
    RECORD_FIELDS,
    RawRecords,
    ReadOptions,
    WrongRecord,
    reader_of,
)
from embedding.kernel.durable import replaced, sync
from embedding.kernel.errors import ConfigError, InputError
from embedding.kernel.records import TimeArray
from embedding.kernel.zones import zone_of
from embedding.sources.base import Pseudonyms
from embedding.sources.markup import plain_text
from embedding.sources.times import parse_time

_UNIT = "us"
_NAIVE, _UTC = pa.timestamp(_UNIT), pa.timestamp(_UNIT, "UTC")
_FORMATS = (
    (r"^\d{8}$", "%Y%m%d"),
    (r"^\d{14}$", "%Y%m%d%H%M%S"),
    (r"^\d{4}\.\d\d?\.\d\d?$", "%Y.%m.%d"),
    (r"^\d{4}/\d\d?/\d\d?$", "%Y/%m/%d"),
    (r"^\d{4}\.\d\d?\.\d\d? \d\d?:\d\d$", "%Y.%m.%d %H:%M"),
    (r"^\d{4}\.\d\d?\.\d\d? \d\d?:\d\d:\d\d$", "%Y.%m.%d %H:%M:%S"),
    (r"^\d{4}/\d\d?/\d\d? \d\d?:\d\d$", "%Y/%m/%d %H:%M"),
    (r"^\d{4}/\d\d?/\d\d? \d\d?:\d\d:\d\d$", "%Y/%m/%d %H:%M:%S"),
)
"""What is read a column at once, by what it looks like: strptime takes 17 for a year of 1700."""
_FIRST_YEAR, _LAST_YEAR = 1600, 2300
"""A date before or behind these stands for none; so it is in a dated corpus, too."""
_SERIAL = re.compile(r"(?:3[3-9]|[4-6]\d|7[0-2])\d{3}(?:\.\d{1,12})?")
"""Days of a spreadsheet from 1990 to 2099, as in a table that lost their form."""
_DAY_0 = datetime(1899, 12, 30)  # noqa: DTZ001  (it is one of any zone)
_MIDNIGHT = datetime.min.time()
_DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Dated:
    """What some values say of time.

    when  UTC, µs [n]; null where a value is no date
    days  bool [n]: whether it is a day of any zone, midnight in `when`; nowhere in UTC itself
    """

    when: pa.TimestampArray
    days: pa.BooleanArray

    def or_else(self, other: Dated) -> Dated:
        return Dated(pc.coalesce(self.when, other.when), pc.coalesce(self.days, other.days))


class DateReading:
    """Reads dates. A time without a zone is in `zone`; a date without a time stays that day.

    form  strptime's, where dates are written otherwise than is understood; None: as they are
    """

    def __init__(self, zone: str = "UTC", form: str | None = None) -> None:
        try:
            self._local = zone_of(zone)
        except ValueError as error:
            raise ConfigError(f"--timezone {zone}: {error}.") from error
        self._zone, self._form = zone, form
        if form is None:
            return
        shown = datetime(2024, 12, 31, 23, 59, tzinfo=UTC)
        try:
            back = datetime.strptime(shown.strftime(form), form).date()  # noqa: DTZ007
        except ValueError as error:
            raise ConfigError(f"--date-format {form}: {error}; %d/%m/%Y is an example.") from error
        if back != shown.date():
            raise ConfigError(
                f"--date-format {form}: year, month and day are needed, as in %d/%m/%Y."
            )

    def times(self, values: pa.StringArray) -> Dated:
        """Times [n]; null where a value is none."""
        if self._form is not None:
            return self._placed(self._by_format(values, self._form))
        for kind in (_NAIVE, _UTC):
            try:
                return self._placed(values.cast(kind))
            except pa.ArrowInvalid:
                continue
        plain = pc.utf8_trim_whitespace(values)
        dated = Dated(pa.nulls(len(values), _UTC), pa.nulls(len(values), pa.bool_()))
        for look, form in _FORMATS:
            fitting = pc.match_substring_regex(plain, look)
            if pc.any(fitting).as_py():
                some = self._by_format(pc.if_else(fitting, plain, None), form)
                dated = dated.or_else(self._placed(some))
            if dated.when.null_count == values.null_count:
                return dated
        rest = pc.if_else(dated.when.is_null(), plain, None)
        return dated.or_else(self._one_by_one(rest))

    @staticmethod
    def _by_format(values: pa.StringArray, form: str) -> pa.TimestampArray:
        """Arrow takes February 30 for March 2; such a day is none."""
        moments = pc.strptime(values, form, _UNIT, error_is_null=True)
        # What ran over lies in the first three days of a month.
        first = pc.if_else(pc.less_equal(pc.day(moments), 3), values, None).dictionary_encode()
        days = pa.array([_is_day(text, form) for text in first.dictionary.to_pylist()], pa.bool_())
        return pc.if_else(pc.fill_null(days.take(first.indices), True), moments, None)

    def _placed(self, moments: pa.TimestampArray) -> Dated:
        """In UTC; null where a year is out of range."""
        days = pc.if_else(moments.is_valid(), False, None)
        if moments.type == _NAIVE:
            local = moments.cast(_NAIVE)
            utc = pc.assume_timezone(local, "UTC")
            if self._zone != "UTC":
                micros = local.cast(pa.int64())
                whole = pc.multiply(pc.divide(micros, _DAY_US), _DAY_US)
                shifted = pc.assume_timezone(
                    local, self._zone, ambiguous="earliest", nonexistent="earliest"
                ).cast(_UTC)
                days = pc.equal(micros, whole)
                utc = pc.if_else(days, utc, shifted)
            moments = utc
        year = pc.year(moments)
        usable = pc.and_(pc.greater_equal(year, _FIRST_YEAR), pc.less_equal(year, _LAST_YEAR))
        return Dated(pc.if_else(usable, moments, pa.scalar(None, _UTC)), days)

    def _one_by_one(self, values: pa.StringArray) -> Dated:
        """The other ways in which times are written; each value is read once."""
        coded = values.dictionary_encode()
        read = [self._read(value) for value in coded.dictionary.to_pylist()]
        when, days = zip(*read, strict=True) if read else ((), ())
        return Dated(
            pa.array(when, _UTC).take(coded.indices), pa.array(days, pa.bool_()).take(coded.indices)
        )

    def _read(self, value: str) -> tuple[datetime | None, bool]:
        """The time, and whether it is a day."""
        bare = False
        try:
            seconds = round(86_400 * float(value)) if _SERIAL.fullmatch(value) else 0
            of_sheet = _DAY_0 + timedelta(seconds=seconds) if seconds else None
            when: datetime | None = of_sheet or datetime.fromisoformat(value)
        except ValueError:
            when, local = parse_time(value), parse_time(value, self._zone)
            bare = when is not None and when.time() == _MIDNIGHT and local != when
            when = when if bare else local
        if when is None or not _FIRST_YEAR <= when.year <= _LAST_YEAR:
            return None, False
        if when.tzinfo is None:
            bare = when.time() == _MIDNIGHT
            when = when.replace(tzinfo=UTC if bare else self._local)
        return when.astimezone(UTC), bare and self._local is not UTC


def _is_day(value: str, form: str) -> bool:
    try:
        datetime.strptime(value, form)  # noqa: DTZ007
    except ValueError:
        return False
    return True


_KNOWN: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("Media Cloud", {"date": "publish_date", "source": "media_name", "text": "title"}),
    ("GDELT", {"date": "seendate", "source": "domain", "text": "title"}),
)
"""Exports whose columns have names of their own; all of them must be there."""
_NAMES = {
    "date": """date publishedat publishdate published pubdate createdat created datetime timestamp
        time 일자 날짜 작성일 작성일시 작성일자 작성시간 등록일 등록일시 등록일자
        게시일 게시일시 게시일자 발행일 입력일 보도일자 일시 updated updatedat""",
    "text": """text content contents body fulltext article message comment description
        본문 내용 글 원문 기사내용 기사본문 게시글 댓글 댓글내용 요약""",
    "title": "title headline subject 제목 기사제목 청원제목",
    "source": """source media medianame publisher outlet newspaper site domain channel forum board
        출처 언론사 매체 매체명 신문사 사이트 게시판 채널""",
    "author": """author writer user username userid nickname byline creator journalist
        작성자 글쓴이 기고자 기자 기자명 닉네임 아이디""",
}
"""How columns are called, the likeliest first; without spaces, points and lines."""
_HINTS = {
    "date": re.compile(r"date|time|일자|날짜|일시|작성일|등록일|게시일"),
    "text": re.compile(r"text|content|body|본문|내용"),
}
_OF_A_DAY = (("년", "연도", "년도", "year"), ("월", "month"), ("일", "day"))
_FITS = 0.6
"""Share of a column's values that must be dates."""
_LEAST = 4
"""Characters that values of a text have on average, at least."""


def find_columns(
    columns: Mapping[str, pa.StringArray], dates: DateReading, given: Mapping[str, str]
) -> dict[str, str]:
    """The column of each field, in the order of `RECORD_FIELDS`; those that none has are left out.

    columns  a sample of the file
    given    what a person said, which counts
    """
    for _, known in _KNOWN:
        if set(known.values()) <= set(columns) and not given:
            return {name: known[name] for name in RECORD_FIELDS if name in known}
    mapping = dict(given)
    for name in ("date", "source", "author", "title", "text"):
        if name not in mapping:
            taken = mapping.values()
            free = {k: v for k, v in columns.items() if k.strip() and k not in taken}
            column = _by_name(name, free, dates) or _by_value(name, free, dates)
            if column is not None:
                mapping[name] = column
    if "text" not in mapping and "title" in mapping:
        mapping["text"] = mapping.pop("title")
    return {name: mapping[name] for name in RECORD_FIELDS if name in mapping}


def check_columns(path: Path, mapping: Mapping[str, str], columns: Sequence[str]) -> None:
    """Raises InputError where date or text is missing, or a column is not in the file."""
    shown = ", ".join(columns) or "none"
    for name, column in mapping.items():
        if column not in columns:
            raise InputError(f"{path}: --map {name}={column}: no such column; there are {shown}.")
    for name, example in (("date", "date=작성일"), ("text", "text=본문")):
        if name not in mapping:
            raise InputError(
                f"{path}: no column of {name}s is found among {shown}; name it, as in "
                f"--map {example}."
            )


def _by_name(name: str, columns: Mapping[str, pa.StringArray], dates: DateReading) -> str | None:
    plain = {re.sub(r"[\s_.\-]+", "", key).lower(): key for key in reversed(list(columns))}
    for known in _NAMES[name].split():
        key = plain.get(known)
        if key is not None and (name != "date" or _are_dates(columns[key], dates)):
            return key
    return None


def _by_value(name: str, columns: Mapping[str, pa.StringArray], dates: DateReading) -> str | None:
    hint = _HINTS.get(name)
    if hint is None:
        return None
    ranked = sorted(columns, key=lambda key: not hint.search(key.lower()))
    if name == "date":
        # Numbers may be such as those of days in a spreadsheet and count something else.
        for key in ranked:
            numbers = pc.all(pc.match_substring_regex(columns[key], r"^\d{5}(\.\d+)?$")).as_py()
            if (hint.search(key.lower()) or not numbers) and _are_dates(columns[key], dates):
                return key
        return None
    best = max(ranked, key=lambda key: _length(columns[key]), default=None)
    return best if best is not None and _length(columns[best]) >= _LEAST else None


def _are_dates(column: pa.StringArray, dates: DateReading) -> bool:
    values = column.drop_null()
    if not len(values):
        return False
    when = dates.times(values).when
    return bool(len(when) - when.null_count >= _FITS * len(values))


def with_days(columns: Mapping[str, pa.StringArray]) -> Mapping[str, pa.StringArray]:
    """Columns, and one of dates where year, month and day have one each."""
    plain = {key.strip().lower(): key for key in columns}
    keys = [next((plain[name] for name in names if name in plain), "") for names in _OF_A_DAY]
    if not all(keys):
        return columns
    digits = (pc.replace_substring_regex(columns[key], r"\D", "") for key in keys)
    return {**columns, f"date: {', '.join(keys)}": pc.binary_join_element_wise(*digits, "-")}


def _length(column: pa.StringArray) -> float:
    """Mean length of values that hold spaces or letters beyond ASCII, as texts do."""
    values = [value for value in column.to_pylist() if value]
    spoken = [value for value in values if not value.isascii() or len(value.split()) > 1]
    return sum(map(len, spoken)) / len(values) if values else 0.0


_MOST_SOURCE = 80
"""Characters of a source's name, at most, as in a dated corpus."""
_UNFIT = r"[\x00-\x1f\x7f\x{80}-\x{9f}]+"
_WRAPPED = r'^="(.*)"$'
"""How Excel is told to take a value for text."""
_FORMULA = r"^=\s*[A-Za-z_.]+\s*\(|^=\s*[-+(\d$]|^=[A-Z]{1,3}\d"
_NOTHING = pa.array(["", "NaN", "nan", "NULL", "null", "None", "\\N", "#N/A", "N/A", "<NA>", "NaT"])
"""How programs write that a value is missing."""
_SHOWN = 40
_DAY_OR_MONTH = re.compile(r"(?:0?[1-9]|1[0-2])([/.-])(?:0?[1-9]|1[0-2])\1(?:\d{4}|\d\d)\b")
_SECONDS = pa.timestamp("s", "UTC")
_FORM = "%Y-%m-%dT%H:%M:%SZ"
_AUTHORS = 1 << 16
_OF_A_LINE = ("text", "title", "source", "author")


class Conversion:
    """Makes lines of records. Names of authors become pseudonyms, and times are in UTC.

    mapping  column of each field
    """

    def __init__(
        self, mapping: Mapping[str, str], dates: DateReading, pseudonyms: Pseudonyms
    ) -> None:
        self._mapping = mapping
        self._dates = dates
        self._pseudonym = lru_cache(_AUTHORS)(pseudonyms.of)

    def convert(self, raw: RawRecords) -> tuple[list[bytes], TimeArray, tuple[WrongRecord, ...]]:
        """Lines of a dated corpus of those with a date and a text, each with its line end; their
        Unix seconds, float64 [n]; and the records that are left out."""
        if not raw.numbers:
            return [], np.empty(0), raw.wrong
        raw = replace(raw, columns=with_days(raw.columns))
        field = {name: self._field(raw, name) for name in ("date", *_OF_A_LINE)}
        dated = self._dates.times(field["date"])
        when = dated.when
        formula = pc.fill_null(pc.starts_with(field["text"], "="), False)
        if pc.any(formula).as_py():
            formula = pc.fill_null(pc.match_substring_regex(field["text"], _FORMULA), False)
        good = pc.and_(pc.and_(when.is_valid(), field["text"].is_valid()), pc.invert(formula))
        wrong = [
            WrongRecord(raw.numbers[row], self._reason(field, formula, row))
            for row in np.flatnonzero(~good.to_numpy(zero_copy_only=False)).tolist()
        ]
        when = pc.floor_temporal(when.filter(good), unit="second").cast(_SECONDS)
        shown = pc.strftime(when, _FORM)
        shown = pc.if_else(dated.days.filter(good), pc.utf8_slice_codeunits(shown, 0, 10), shown)
        columns = (field[name].filter(good).to_pylist() for name in _OF_A_LINE)
        lines = map(self._line, shown.to_pylist(), *columns)
        seconds: TimeArray = when.cast(pa.int64()).to_numpy().astype(np.float64)
        # In one go, which is quicker; JSON has no line end inside of a line.
        coded = "".join(lines).encode().splitlines(keepends=True)
        return coded, seconds, (*raw.wrong, *wrong)

    def _field(self, raw: RawRecords, name: str) -> pa.StringArray:
        """A field's values without space around them, null where there is none."""
        column = raw.columns.get(self._mapping[name]) if name in self._mapping else None
        if column is None:
            return pa.nulls(len(raw.numbers), pa.string())
        values = pc.utf8_trim_whitespace(column)
        if pc.any(pc.starts_with(values, '="')).as_py():
            values = pc.replace_substring_regex(values, _WRAPPED, r"\1")
        if name == "source":
            printable = pc.replace_substring_regex(values, _UNFIT, " ")
            values = pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(printable), 0, _MOST_SOURCE)
        if name in ("text", "title"):
            values = _without_markup(values)
        return pc.if_else(pc.is_in(values, _NOTHING), pa.scalar(None, pa.string()), values)

    def _line(
        self, date: str, text: str, title: str | None, source: str | None, author: str | None
    ) -> str:
        quoted = encode_basestring
        named = f', "source": {quoted(source)}' if source else ""
        by = f', "author": "{self._pseudonym(source or "", author)}"' if author else ""
        titled = f', "title": {quoted(title)}' if title and title != text else ""
        return f'{{"date": "{date}"{named}{by}{titled}, "text": {quoted(text)}}}\n'

    @staticmethod
    def _reason(field: Mapping[str, pa.StringArray], formula: pa.BooleanArray, row: int) -> str:
        if not field["text"][row].is_valid:
            return "no text"
        if formula[row].as_py():
            return "a formula in place of a text"
        value = field["date"][row].as_py()
        if value is None:
            return "no date"
        shown = " ".join(re.sub(r"[^\w\s.:/+-]", "?", value).split())
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
        why = " may begin with its day or its month, so it" if _DAY_OR_MONTH.match(shown) else ""
        return f"{shown!r}{why} is no date"


def _without_markup(values: pa.StringArray) -> pa.StringArray:
    """Texts written in HTML as their words; the others as they are."""
    data = values.buffers()[2].to_pybytes() if values.buffers()[2] else b""
    if b"<" not in data and b"&" not in data:
        return values
    marked = pc.fill_null(pc.match_substring_regex(values, "[<&]"), False)
    texts = [plain_text(text) for text in values.filter(marked).to_pylist()]
    return pc.replace_with_mask(values, marked, pa.array(texts, pa.string()))


# The corpus that an import writes: it is there whole and in order of time, or not at all.
#
#     .NAME.part    lines, in the order in which they came
#     .NAME.lines   Unix seconds and length of each, float64 and int64
#     .NAME.state   how much of both counts, and what whoever writes must know to go on
#
# After a kill the first two are cut to what the third says.
_FORMAT = 2
_LINE = np.dtype([("when", "<f8"), ("bytes", "<i8")])
_TOGETHER = 8192
"""Lines that are copied at once when they are brought into order."""


class CorpusFile:
    """A corpus that is being written; see `writing`."""

    def __init__(self, path: Path, part: IO[bytes], lines: IO[bytes], state: Mapping[str, Any]):
        self.path = path
        self.state = state
        """What the last `keep` was given; empty at the beginning."""
        self.ordered = bool(state.get("ordered", True))
        """Whether the lines came in order of time so far."""
        self.latest = float(state.get("latest", -np.inf))
        self._part, self._lines = part, lines

    def add(self, lines: Sequence[bytes], when: TimeArray) -> None:
        """Lines with their line ends, and the Unix seconds of each, float64 [n]."""
        if not lines:
            return
        self._part.write(b"".join(lines))
        marks = np.empty(len(lines), dtype=_LINE)
        marks["when"] = when
        marks["bytes"] = np.fromiter(map(len, lines), np.int64, len(lines))
        self._lines.write(marks.tobytes())
        times = np.concatenate([[self.latest], when])
        self.ordered = self.ordered and bool((np.diff(times[np.isfinite(times)]) >= 0).all())
        self.latest = max(self.latest, float(when.max()))

    def keep(self, state: Mapping[str, Any]) -> None:
        """What was added so far is on the disk, with what is to be known to go on from here."""
        for file in (self._part, self._lines):
            file.flush()
            os.fsync(file.fileno())
        self.state = {
            **state,
            "format": _FORMAT,
            "bytes": self._part.tell(),
            "marks": self._lines.tell(),
            "ordered": self.ordered,
            "latest": self.latest if np.isfinite(self.latest) else None,
        }
        with replaced(_beside(self.path, "state")) as file:
            file.write(json.dumps(self.state, ensure_ascii=False).encode())

    def finish(self) -> None:
        """Bring the lines into order of time and put the file in its place."""
        self._part.flush()
        self._lines.flush()
        if self.ordered:
            os.fsync(self._part.fileno())
            _beside(self.path, "part").replace(self.path)
            sync(self.path.parent)
        else:
            self._sort()
        self.drop()

    def drop(self) -> None:
        """Leave nothing of an unfinished file."""
        for kind in ("part", "lines", "state"):
            _beside(self.path, kind).unlink(missing_ok=True)

    def _sort(self) -> None:
        """Lines of the same time stay in the order in which they came."""
        marks = np.memmap(_beside(self.path, "lines"), dtype=_LINE, mode="r")
        order = np.argsort(marks["when"], kind="stable")
        ends = np.cumsum(marks["bytes"])
        with _beside(self.path, "part").open("rb") as part, replaced(self.path) as file:
            os.fchmod(file.fileno(), 0o600)
            for first in range(0, len(order), _TOGETHER):
                some = order[first : first + _TOGETHER]
                sizes = marks["bytes"][some]
                spans = zip(sizes.tolist(), (ends[some] - sizes).tolist(), strict=True)
                # Not by a map of the file: the pages around each line would count as memory.
                file.write(b"".join([os.pread(part.fileno(), *span) for span in spans]))


@contextmanager
def writing(path: Path, marks: Mapping[str, Any]) -> Iterator[CorpusFile]:
    """The corpus `path`, begun or gone on with; what is not finished stays for the next time.

    marks  what must be the same to go on: files, columns, options; JSON-safe

    Raises InputError where it cannot be written, or another process writes it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(_beside(path, "part"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}.") from error
    with os.fdopen(handle, "r+b") as part:
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"{path}: another import is writing it; wait for its end.") from error
        state = _state(path, marks)
        lines_path = _beside(path, "lines")
        lines_path.touch(0o600)
        with lines_path.open("r+b") as lines:
            for file, key in ((part, "bytes"), (lines, "marks")):
                file.truncate(int(state.get(key, 0)))
                file.seek(0, os.SEEK_END)
            yield CorpusFile(path, part, lines, state)


def _state(path: Path, marks: Mapping[str, Any]) -> dict[str, Any]:
    """What an import of the same left; empty where there is none, or it cannot be gone on with."""
    try:
        state: dict[str, Any] = json.loads(_beside(path, "state").read_text(encoding="utf-8"))
        whole = _beside(path, "part").stat().st_size >= state["bytes"]
        whole = whole and _beside(path, "lines").stat().st_size >= state["marks"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    if not whole or state.get("format") != _FORMAT or state.get("of") != marks:
        return {}
    if state.get("latest") is None:
        del state["latest"]
    return state


def _beside(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{kind}")


NAMED = 5
"""Records left out that are named; of the others there are counts."""
_HEAD = 64
_SAMPLE = 200
"""Records in which columns are looked for."""
_REST = "rest of a damaged file"
_KEEP_S = 2.0
"""Seconds between two times at which the import can be gone on with."""


@dataclass(frozen=True, kw_only=True)
class ImportRequest:
    """What is imported, and how it is read.

    reader       name of one for all files; None: what each file says
    columns      column of each field where a person named it
    date_format  strptime's; None: as dates are usually written
    key          of pseudonyms of authors; empty: a random one
    """

    files: tuple[Path, ...]
    out: Path
    reader: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    timezone: str = "UTC"
    date_format: str | None = None
    key: bytes = b""

    def __post_init__(self) -> None:
        if not self.files:
            raise ConfigError("no file is named; name one or more.")
        if self.reader is not None:
            try:
                READERS.check(self.reader)
            except ValueError as error:
                raise ConfigError(f"--reader {error}.") from error
        if self.encoding is not None:
            check_encoding(self.encoding)
        _ = self.dates

    @property
    def dates(self) -> DateReading:
        """Raises ConfigError for a zone or a form that is none."""
        return DateReading(self.timezone, self.date_format)

    @property
    def reading(self) -> ReadOptions:
        return ReadOptions(encoding=self.encoding, timezone=self.timezone)


@dataclass(frozen=True)
class FilePlan:
    """How one file is going to be read: by which reader, which column for which field.

    guessed  columns that nobody named, so that a person should look at them
    """

    path: Path
    reader: str
    mapping: Mapping[str, str]
    guessed: bool


@dataclass
class ImportResult:
    """What an import wrote and left out; JSON-safe by `to_dict`.

    wrong     records left out, by reason
    examples  the first of them, each a sentence
    notes     what a person should look at in how files were read, each a sentence
    resumed   records that an earlier call had written
    """

    records: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    first: str | None = None
    last: str | None = None
    sorted: bool = False
    resumed: int = 0

    def __post_init__(self) -> None:
        self.wrong = Counter(self.wrong)

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "wrong": dict(self.wrong), "left_out": sum(self.wrong.values())}


ImportProgress = Callable[[float, int], None]
"""Share of the bytes that are read, and records so far."""


def plan_import(request: ImportRequest) -> list[FilePlan]:
    """Look at each file; raises InputError for one that cannot be read or has no date or text."""
    if request.out.exists():
        raise ConfigError(f"{request.out}: is there already; the name of a new file is accepted.")
    return [_plan(path, request) for path in request.files]


def _plan(path: Path, request: ImportRequest) -> FilePlan:
    check_file(path)
    if path.resolve() == request.out.resolve():
        raise ConfigError(f"{path}: would be read and written at once; give another -o FILE.")
    with opened(path) as file:
        name = request.reader or reader_of(path, file.head(_HEAD), file.name)
    if READERS.traits(name).named:
        return FilePlan(path, name, {key: key for key in RECORD_FIELDS}, guessed=False)
    sample = _sample(path, name, request)
    columns = list(sample.columns)
    mapping = dict(request.columns)
    if all(column in columns for column in mapping.values()):
        mapping = find_columns(sample.columns, request.dates, request.columns)
    check_columns(path, mapping, columns)
    return FilePlan(path, name, mapping, guessed=mapping != request.columns)


def _sample(path: Path, reader: str, request: ImportRequest) -> RawRecords:
    """The first records; InputError where there are none."""
    wrong: list[WrongRecord] = []
    rows = READERS.get(reader)(path, request.reading, 0)
    try:
        for raw in rows:
            if raw.numbers:
                columns = {name: column.slice(0, _SAMPLE) for name, column in raw.columns.items()}
                return RawRecords(raw.numbers[:_SAMPLE], with_days(columns))
            wrong += raw.wrong
    finally:
        getattr(rows, "close", lambda: None)()
    why = f"; record 1: {wrong[0].reason}" if wrong else ""
    raise InputError(f"{path}: holds no record that can be read{why}.")


def run_import(
    request: ImportRequest, plans: Sequence[FilePlan], show: ImportProgress
) -> ImportResult:
    """Write the corpus; the same call after a kill goes on and writes the same bytes.

    Raises InputError where no record is left; then there is no file.
    """
    marks = _marks(request, plans)
    with writing(request.out, marks) as file:
        result = _Run(request, plans, file, marks).run(show)
        if not result.records:
            file.drop()
            if result.wrong[_REST] and not result.examples:
                raise InputError(result.notes[-1])
            raise InputError(
                f"{', '.join(map(str, request.files))}: no record has a date and a text; "
                f"{result.examples[0] if result.examples else 'there is none.'}"
            )
        result.sorted = not file.ordered
        file.finish()
    return result


class _Run:
    def __init__(
        self,
        request: ImportRequest,
        plans: Sequence[FilePlan],
        file: CorpusFile,
        marks: Mapping[str, Any],
    ) -> None:
        state = file.state
        self._request, self._plans, self._file, self._marks = request, plans, file, marks
        self._key = bytes.fromhex(state.get("key", "")) or request.key or secrets.token_bytes(32)
        self._file_number, self._since = int(state.get("file", 0)), int(state.get("record", 0))
        self._times: list[float] = state.get("times", [])
        self._result = ImportResult(**state.get("result", {}))
        self._result.resumed = self._result.records

    def run(self, show: ImportProgress) -> ImportResult:
        sizes = [plan.path.stat().st_size for plan in self._plans]
        saved = time.monotonic()
        for number in range(self._file_number, len(self._plans)):
            plan, before, size = self._plans[number], sum(sizes[:number]), sizes[number]
            conversion = Conversion(plan.mapping, self._request.dates, Pseudonyms(self._key))
            records = READERS.get(plan.reader)
            try:
                for raw in records(plan.path, self._request.reading, self._since):
                    self._take(plan.path, raw, conversion)
                    show((before + raw.done * size) / sum(sizes), self._result.records)
                    if time.monotonic() - saved >= _KEEP_S:
                        self._keep()
                        saved = time.monotonic()
            except InputError as error:
                # Its head could be read: what is damaged behind it costs itself alone.
                self._result.wrong[_REST] += 1
                self._result.notes.append(str(error))
            self._file_number, self._since = number + 1, 0
        if self._times:
            first, last = (datetime.fromtimestamp(when, UTC).date() for when in self._times)
            self._result.first, self._result.last = first.isoformat(), last.isoformat()
        return self._result

    def _take(self, path: Path, raw: RawRecords, conversion: Conversion) -> None:
        lines, when, left_out = conversion.convert(raw)
        self._file.add(lines, when)
        result = self._result
        result.records += len(lines)
        note = f"{path}: {raw.note}."
        if raw.note and note not in result.notes:
            result.notes.append(note)
        for wrong in sorted(left_out, key=lambda record: record.number):
            undated = wrong.reason.endswith("is no date")
            result.wrong["no date that can be read" if undated else wrong.reason] += 1
            if len(result.examples) < NAMED:
                result.examples.append(f"{path}: record {wrong.number + 1}: {wrong.reason}.")
        if len(when):
            first, last = float(when.min()), float(when.max())
            times = self._times or [first, last]
            self._times = [min(times[0], first), max(times[1], last)]
        self._since = max(self._since, raw.next)

    def _keep(self) -> None:
        self._file.keep(
            {
                "of": self._marks,
                "file": self._file_number,
                "record": self._since,
                "result": vars(self._result),
                "times": self._times,
                "key": self._key.hex(),
            }
        )


def _marks(request: ImportRequest, plans: Sequence[FilePlan]) -> dict[str, Any]:
    """What must be the same to go on, JSON-safe."""
    files = []
    for plan in plans:
        stat = plan.path.stat()
        path = str(plan.path.resolve())
        files.append([path, stat.st_size, stat.st_mtime_ns, plan.reader, dict(plan.mapping)])
    options = [request.encoding, request.timezone, request.date_format]
    return {"files": files, "options": options}
