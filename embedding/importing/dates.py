"""Times as people write them, a column at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time

import pyarrow as pa
import pyarrow.compute as pc

from embedding.kernel.errors import ConfigError
from embedding.kernel.zones import zone_of
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
        """What the other says where this one says nothing."""
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
        if form is not None:
            self._check(form)

    @staticmethod
    def _check(form: str) -> None:
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
        found = Dated(pa.nulls(len(values), _UTC), pa.nulls(len(values), pa.bool_()))
        for look, form in _FORMATS:
            fitting = pc.match_substring_regex(plain, look)
            if pc.any(fitting).as_py():
                some = self._by_format(pc.if_else(fitting, plain, None), form)
                found = found.or_else(self._placed(some))
            if found.when.null_count == values.null_count:
                return found
        rest = pc.if_else(found.when.is_null(), plain, None)
        return found.or_else(self._one_by_one(rest))

    @staticmethod
    def _by_format(values: pa.StringArray, form: str) -> pa.TimestampArray:
        """Arrow takes February 30 for March 2; such a day is none."""
        found = pc.strptime(values, form, _UNIT, error_is_null=True)
        # What ran over lies in the first three days of a month.
        first = pc.if_else(pc.less_equal(pc.day(found), 3), values, None).dictionary_encode()
        days = pa.array([_is_day(one, form) for one in first.dictionary.to_pylist()], pa.bool_())
        return pc.if_else(pc.fill_null(days.take(first.indices), True), found, None)

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
            when: datetime | None = datetime.fromisoformat(value)
        except ValueError:
            when, local = parse_time(value), parse_time(value, self._zone)
            bare = when is not None and when.time() == time() and local != when
            when = when if bare else local
        if when is None or not _FIRST_YEAR <= when.year <= _LAST_YEAR:
            return None, False
        if when.tzinfo is None:
            bare = when.time() == time()
            when = when.replace(tzinfo=UTC if bare else self._local)
        return when.astimezone(UTC), bare and self._local is not UTC


def _is_day(value: str, form: str) -> bool:
    try:
        datetime.strptime(value, form)  # noqa: DTZ007
    except ValueError:
        return False
    return True
