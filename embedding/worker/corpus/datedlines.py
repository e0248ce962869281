"""The dated lines of a corpus, in columns: no line becomes a Python object on its way to a block.

Arrow reads the lines of a stretch at once. Where it cannot, because one of them is malformed or of
an unusual form, the stretch is read line by line (`corpus.dated_line`), which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from embedding.kernel.calendar import of_clock
from embedding.kernel.errors import InputError
from embedding.kernel.records import Calendar, IntArray, TimeArray
from embedding.kernel.zones import zone_of
from embedding.worker.corpus.corpus import (
    FIRST_YEAR,
    LAST_YEAR,
    CorpusStretch,
    Fault,
    dated_line,
    fits_source,
    stretches,
    unsaid,
)
from embedding.worker.spec import CorpusShare

_FIELDS = ("date", "text", "content", "title", "source", "author")
_PARSING = pj.ParseOptions(
    explicit_schema=pa.schema([(name, pa.string()) for name in _FIELDS]),
    unexpected_field_behavior="ignore",
)
_FIRST = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC).timestamp()
_LAST = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class DatedLines:
    """Some dated lines of a corpus, in the order of the file.

    numbers  int64 [n], from 0
    texts    Arrow strings [n]
    lengths  int64 [n], characters of each text
    when     float64 [n], Unix seconds
    done     float64 [n], share of the reading that is done with each
    sources  Arrow strings [n], names without blanks around them; "" where a line names none
    authors  Arrow strings [n], "" or null where a line does not say who wrote it
    passed   float64 [n], share of its window's text that comes before the middle of each; empty
             where nobody asks
    """

    numbers: IntArray
    texts: pa.StringArray
    lengths: IntArray
    when: TimeArray
    done: TimeArray
    sources: pa.StringArray
    authors: pa.StringArray
    passed: TimeArray = field(default_factory=lambda: np.empty(0, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, part: slice) -> DatedLines:
        return DatedLines(*(column[part] for column in vars(self).values()))

    @property
    def name_sources(self) -> bool:
        """Whether any of them names its source."""
        return bool(pc.any(pc.not_equal(self.sources, "")).as_py())

    def take(self, at: IntArray) -> DatedLines:
        """Those at places int64 [m]."""

        def taken(column: Any) -> Any:
            if isinstance(column, pa.StringArray):
                return column.take(pa.array(at))
            return column[at] if len(column) else column

        return DatedLines(*map(taken, vars(self).values()))

    @classmethod
    def joined(cls, parts: Sequence[DatedLines]) -> DatedLines:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]

        def behind(columns: Sequence[Any]) -> Any:
            if all(isinstance(column, pa.StringArray) for column in columns):
                return pa.concat_arrays(columns)
            return np.concatenate(columns)

        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*map(behind, columns))

    def by_window(self, calendar: Calendar | None) -> Iterator[tuple[int, DatedLines]]:
        """Runs of lines of one window, each with its start (Unix seconds); one without calendar.

        A window whose lines are not together comes more than once.
        """
        if calendar is None or not len(self):
            if len(self):
                yield 0, self
            return
        starts = calendar.starts(self.when)
        edges = np.flatnonzero(np.diff(starts)) + 1
        for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(self)], strict=True):
            yield int(starts[first]), self[first:last]


def dated_columns(
    share: CorpusShare, since: int = 0, fault: Fault = unsaid
) -> Iterator[DatedLines]:
    """The dated lines of one share from line `since`, some at a time; none of them is empty.

    A malformed line is left out, and told to `fault`.
    """
    for _, lines in dated_stretches(share, since, fault):
        yield lines


def columns_before(share: CorpusShare, until: int, since: int = 0) -> Iterator[DatedLines]:
    """The same from line `since` on and before line `until`."""
    for lines in dated_columns(share, since):
        early = lines[: int(np.searchsorted(lines.numbers, until))]
        if len(early):
            yield early
        if len(early) < len(lines):
            return


def dated_stretches(
    share: CorpusShare, since: int = 0, fault: Fault = unsaid
) -> Iterator[tuple[int, DatedLines]]:
    """The same as `dated_columns`, each with the place of its stretch in the share, from 0."""
    zone = zone_of(share.timezone)
    for place, stretch in enumerate(stretches(share, fault)):
        if stretch.end < since:
            continue
        dated = _by_arrow(stretch, since, zone)
        if dated is None:
            dated = _one_by_one(stretch, since, zone, fault)
        if len(dated):
            yield place, dated


def remembered_from(
    share: CorpusShare, calendar: Calendar, until: int, windows: int, characters: float
) -> int:
    """The line from which on a node that has read to line `until` remembers what it read.

    That is the text of its last `windows` windows; of much text the last `characters`, or more.
    """
    parts = list(_runs(share, calendar, until))
    latest = sorted({window for window, _, _ in parts})[-windows:]
    line, read = until, 0
    for window, first, size in reversed(parts):
        if read >= characters:
            break
        if window in latest:
            line, read = first, read + size
    return line


def passing(
    share: CorpusShare, calendar: Calendar, since: int = 0, fault: Fault = unsaid
) -> Iterator[DatedLines]:
    """The dated lines of one share from line `since` on, each with what had passed of its window.

    How long windows are stands in the share.
    """
    whole = dict(share.window_characters)
    window, read = None, 0
    for own, _, size in _runs(share, calendar, since) if since else ():
        window, read = own, (read if own == window else 0) + size
    for lines in dated_columns(share, since, fault):
        for own, part in lines.by_window(calendar):
            if own != window:
                window, read = own, 0
            ends = read + np.cumsum(part.lengths)
            middles = (ends - part.lengths) + part.lengths / 2
            passed = np.minimum(middles / max(whole.get(own, 0), 1), 1.0)
            yield replace(part, passed=passed)
            read = int(ends[-1])


def _runs(share: CorpusShare, calendar: Calendar, until: int) -> Iterator[tuple[int, int, int]]:
    """The lines before line `until` by window: its start, the first line, and their characters."""
    for lines in columns_before(share, until):
        for window, part in lines.by_window(calendar):
            yield window, int(part.numbers[0]), int(part.lengths.sum())


def _by_arrow(stretch: CorpusStretch, since: int, zone: tzinfo) -> DatedLines | None:
    """All of a stretch; None where one of its lines is not what Arrow reads."""
    lines = stretch.text.split("\n")
    try:
        table = pj.read_json(
            pa.BufferReader(stretch.text.encode()),
            pj.ReadOptions(use_threads=False, block_size=1 << 30),
            _PARSING,
        )
    except (pa.ArrowException, UnicodeEncodeError):
        return None
    numbers = np.arange(len(lines) - (not lines[-1]))
    if len(table) != len(numbers):
        numbers = np.fromiter((at for at, line in enumerate(lines) if line.strip()), np.int64)
    if len(table) != len(numbers):
        return None
    column = {name: table.column(name).combine_chunks() for name in _FIELDS}
    body, title = column["text"], column["title"]
    if column["content"].null_count < len(table):
        body = pc.coalesce(_filled(column["content"]), body)
    when = _times(column["date"], zone)
    sources = pc.utf8_trim_whitespace(pc.fill_null(column["source"], ""))
    if body.null_count or when is None or not all(map(fits_source, sources.unique().to_pylist())):
        return None
    texts = body
    if title.null_count < len(title):
        texts = pc.binary_join_element_wise(_filled(title), body, "\n", null_handling="skip")
    sizes = np.fromiter(map(len, lines), np.int64, count=len(lines)) + 1
    dated = DatedLines(
        stretch.first + numbers,
        texts,
        pc.utf8_length(texts).to_numpy().astype(np.int64),
        when,
        _shares(stretch, np.cumsum(sizes)[numbers]),
        sources,
        column["author"],
    )
    return dated[int(np.searchsorted(dated.numbers, since)) :]


def _one_by_one(stretch: CorpusStretch, since: int, zone: tzinfo, fault: Fault) -> DatedLines:
    dated, at = [], 0
    for number, text in enumerate(stretch.text.split("\n"), stretch.first):
        at += len(text) + 1
        if number < since or not text.strip():
            continue
        try:
            dated.append(dated_line(number, text, stretch.share(at), zone))
        except InputError as error:
            fault(number, str(error))
    return DatedLines(
        np.fromiter((line.number for line in dated), np.int64),
        # Half a surrogate pair is no character; `normalise` would leave it out as well.
        pa.array([line.text.encode(errors="ignore").decode() for line in dated], pa.string()),
        np.fromiter((len(line.text) for line in dated), np.int64),
        np.fromiter((line.when for line in dated), np.float64),
        np.fromiter((line.done for line in dated), np.float64),
        pa.array([line.source for line in dated], pa.string()),
        pa.array([line.author.encode(errors="ignore").decode() for line in dated], pa.string()),
    )


def _filled(strings: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.equal(strings, ""), pa.scalar(None, pa.string()), strings)


def _times(dates: pa.StringArray, zone: tzinfo) -> TimeArray | None:
    """Unix seconds, float64 [n]; None where one is no date that Arrow reads, or too far away."""
    if dates.null_count:
        return None
    for written in (None, "UTC"):
        try:
            moments = dates.cast(pa.timestamp("us", written))
        except pa.ArrowInvalid:
            continue
        when: TimeArray = moments.cast(pa.int64()).to_numpy() / 1e6
        if not ((when >= _FIRST) & (when < _LAST)).all():
            return None
        return when if written else of_clock(when, zone)
    return None


def _shares(stretch: CorpusStretch, at: IntArray) -> TimeArray:
    """`CorpusStretch.share` of each place, float64 [n]."""
    whole = len(stretch.text)
    shares = stretch.begun + (stretch.done - stretch.begun) * at / max(whole, 1)
    return np.where(at < whole, shares, stretch.done)
