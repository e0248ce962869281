"""Tables in text: CSV, TSV and the like, whose quoted values may hold line ends; and GDELT's."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from embedding.importing.encodings import ENCODING_BYTES, MARKED, NO_TEXT, Utf8Text, encoding_of
from embedding.importing.opening import lines_of, opened
from embedding.importing.readers import (
    READERS,
    RawRecords,
    ReaderTraits,
    ReadOptions,
    Record,
    WrongRecord,
    in_columns,
)
from embedding.kernel.errors import InputError
from embedding.sources.times import parse_time

_DELIMITERS = ",\t;|"
_BLOCK = 1 << 20
"""Bytes that Arrow parses at once; a file with a longer record is read by Python's `csv`."""
_LONGEST = 1 << 24
"""Characters of a record, at most."""
_FIRST_LINES = 20
_LONGEST_DATE = 40
_CUT = "the file ends in the middle of it"
_AGAIN = 1 << 28
"""Characters of all records that are read again because of quotes that are not closed."""
_OPEN = "a quote is opened and not closed"
_BROKEN = "bytes that are no text"
_MOST_LEFT_OUT = 1 << 18
"""Odd records that Arrow may meet before a good one: their reasons are in memory."""
_LONG = 200
"""Characters of a name of a column, at most."""


@READERS.register("csv", ReaderTraits(noun="a table in text", suffixes=(".csv", ".tsv", ".tab")))
def read_table(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    """The records of a table whose first line names its columns, or of one without such a line.

    Columns without a name are called 1, 2, …
    """
    with opened(path) as file:
        encoding = encoding_of(file, path, options.encoding)
        layout = _layout(file.head(ENCODING_BYTES).decode(encoding.name, "replace"), path)
        text = Utf8Text(file, encoding.name, MARKED, layout.above)
        left_out: dict[int, str] = {}  # by number, why; up to where Arrow has read
        following = 0
        try:
            for batch, last in _batches(text, layout, left_out):
                until = following + len(batch) + len(left_out)
                numbers = np.setdiff1d(np.arange(following, until), list(left_out))[: len(batch)]
                following = int(numbers[-1]) + 1
                columns = {name: batch[name].cast(pa.string()) for name in layout.names}
                for column in columns.values():
                    if _holds(column, NO_TEXT.encode()):
                        broken = pc.match_substring(column, NO_TEXT).to_numpy(False)
                        left_out.update(dict.fromkeys(numbers[broken].tolist(), _BROKEN))
                # The last value of a table may lack the quote that ends it.
                value = b'"' + batch[layout.names[-1]][-1].as_py().replace(b'"', b'""')
                lacks = text.tail.endswith(value) and not text.tail.endswith(value + b'"')
                if last and (file.cut or lacks):
                    left_out.setdefault(max([following - 1, *left_out]), _CUT)
                good = (numbers >= since) & ~np.isin(numbers, list(left_out))
                texts = {name: column.filter(good) for name, column in columns.items()}
                yield RawRecords(
                    tuple(numbers[good].tolist()),
                    {n: pc.if_else(pc.equal(it, ""), None, it) for n, it in texts.items()},
                    tuple(_taken(left_out, since, following)),
                    file.done,
                    encoding.note,
                )
        except pa.ArrowInvalid:
            # A record is longer than Arrow's block, or a quote is closed by another line or none:
            # from there on Python reads one record at a time.
            with opened(path) as again:
                text = Utf8Text(again, encoding.name, MARKED, layout.above)
                rows = islice(enumerate(_rows(text, layout)), max(since, following), None)
                records = ((number, _fields(row, layout)) for number, row in rows)
                yield from in_columns(records, lambda: again.done, note=encoding.note)
            return
        yield RawRecords((), {}, tuple(_taken(left_out, since)), 1.0)


def _taken(left_out: dict[int, str], since: int, until: float = math.inf) -> Iterator[WrongRecord]:
    """Those with numbers below `until`, which are not handed over again."""
    for number in sorted(number for number in left_out if number < until):
        reason = left_out.pop(number)
        if number >= since:
            yield WrongRecord(number, reason)


def _rows(text: Utf8Text, layout: _Layout) -> Iterator[list[str] | str]:
    """Values of each record, or why it is left out.

    The line with a quote that is not closed within `_LONGEST` characters, or only behind lines that
    are records, is left out alone: what is behind it is read again, as records of their own.
    """
    csv.field_size_limit(2 * _LONGEST)
    # As Arrow does, they end a line at a lone \r, too.
    ended_lines = lines_of(text.read, lambda data: data.splitlines(keepends=True), _LONGEST)
    lines = (line.decode(errors="replace") for line in ended_lines)
    waiting: deque[str] = deque()
    taken: list[str] = []
    again, ended = _AGAIN, False

    def feed() -> Iterator[str]:
        nonlocal ended
        length = 0
        while line := waiting.popleft() if waiting else next(lines, ""):
            length = length + len(line) if taken else len(line)
            taken.append(line)
            if length > _LONGEST:
                raise csv.Error(f"{_OPEN} within {_LONGEST >> 20} MB")
            yield line
        ended = True

    skip = layout.headed
    while True:
        try:
            for row in csv.reader(feed(), delimiter=layout.delimiter):
                # A record begins inside of another one: a quote before it was not closed.
                several = len(taken) > 1 and not skip and layout.record
                if several and re.search(layout.record, "".join(taken)):
                    raise csv.Error(_OPEN)
                taken.clear()
                if row and not skip:
                    yield _CUT if ended else row
                skip = skip and not row
        except csv.Error as error:
            again -= sum(map(len, taken))
            if again > 0:
                waiting.extendleft(reversed(taken[1:]))
            taken.clear()
            ended = False
            yield str(error)
            continue
        return


def _fields(row: list[str] | str, layout: _Layout) -> Record:
    if isinstance(row, str):
        return row
    if len(row) != len(layout.names):
        return f"{len(row)} values for {len(layout.names)} columns"
    if any(NO_TEXT in cell for cell in row):
        return _BROKEN
    return {name: cell or None for name, cell in zip(layout.names, row, strict=True)}


@dataclass(frozen=True)
class _Layout:
    """How a table is written.

    headed  its first line names the columns
    record  pattern of a line end and the beginning of a record; empty: none that is sure
    above   lines before the table: titles and empty ones
    """

    delimiter: str
    names: tuple[str, ...]
    headed: bool
    record: str
    above: int


def _layout(text: str, path: Path) -> _Layout:
    text = text.removeprefix("\ufeff").replace("\0", "").lstrip("\r\n")
    lines = [line for line in text.splitlines()[:_FIRST_LINES] if line.strip()]
    if not lines:
        raise InputError(f"{path}: no line with text; a table with a line of names is expected.")
    delimiter = max(
        _DELIMITERS, key=lambda mark: (lines[0].count(mark), sum(mark in line for line in lines))
    )
    # Each line alone: a quote that is not closed would swallow the others.
    rows = [next(csv.reader([line], delimiter=delimiter)) for line in lines]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    above = _above(text, width, delimiter)
    text = "\n".join(re.split("\r?\n|\r", text)[above:])
    try:
        cells = next(row for row in csv.reader(io.StringIO(text, None), delimiter=delimiter) if row)
    except (csv.Error, StopIteration) as error:
        raise InputError(f"{path}: its first line cannot be read as a table ({error}).") from error
    headed = not any(_is_date(cell) for cell in cells)
    # A comma may end each line but the first, or the first alone.
    if not any("".join(row[min(width, len(cells)) :]).strip() for row in (cells, *rows)):
        cells = [*cells, *[""] * width][:width]
    names = _distinct(cells if headed else [""] * len(cells))
    return _Layout(delimiter, names, headed, _record_pattern(rows, delimiter, len(names)), above)


def _above(text: str, width: int, delimiter: str) -> int:
    """How many lines stand above a table of `width` columns: its title, a count, `sep=;`; each has
    one value, or fewer than half of the others, and no date of its own."""
    for number, line in enumerate(re.split("\r?\n|\r", text)[:_FIRST_LINES]):
        row = next(csv.reader([line], delimiter=delimiter), [])
        filled = list(dict.fromkeys(cell for cell in row if cell.strip()))
        wide = width < 2 or (len(row) > 1 and 2 * len(filled) >= width)
        if wide or any(cell[0].isdigit() and _is_date(cell) for cell in filled):
            return number
        if line.count('"') % 2:
            return 0
    return 0


def _record_pattern(rows: Sequence[Sequence[str]], delimiter: str, columns: int) -> str:
    """How a record of a table begins, by the dates in its first lines, in the syntax of RE2."""
    rows = [row for row in rows if len(row) == columns]
    for i in range(columns if columns > 1 else 0):
        dates = [row[i] for row in rows if len(row[i]) <= _LONGEST_DATE and _is_date(row[i])]
        if dates and 2 * len(dates) >= len(rows) - 1:
            shapes = {re.sub("[0-9]", "[0-9]", re.escape(date)) for date in dates}
            value = f"[^\n{delimiter}]*[{delimiter}]"
            behind = f"[{delimiter}]" if i < columns - 1 else "(?:[\r\n]|$)"
            return f'\n(?:{value}){{{i}}}"?(?:{"|".join(sorted(shapes))})"?{behind}'
    return ""


def _is_date(cell: str) -> bool:
    return any(map(str.isdigit, cell)) and parse_time(cell.strip()) is not None


def _distinct(cells: Sequence[str]) -> tuple[str, ...]:
    """Names of columns: a number where there is none or where another has it already."""
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = " ".join(cell.split())[:_LONG]
        names.append(name if name and name not in names else f"{name} {number}".strip())
    return tuple(names)


def _batches(
    text: Utf8Text, layout: _Layout, left_out: dict[int, str]
) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Columns of bytes, and whether they are the last; rows of another width are in `left_out`.

    Raises ArrowInvalid where a record is longer than a block or holds the beginning of another one.
    """

    def skip(row: Any) -> str:
        swallows = layout.record and re.search(layout.record, row.text)
        if swallows or len(left_out) >= _MOST_LEFT_OUT:
            return "error"
        number = row.number - 1 - int(layout.headed)
        left_out[number] = f"{row.actual_columns} values for {row.expected_columns} columns"
        return "skip"

    reading = pacsv.ReadOptions(
        use_threads=False,
        block_size=_BLOCK,
        column_names=list(layout.names),
        skip_rows_after_names=int(layout.headed),
    )
    parsing = pacsv.ParseOptions(
        delimiter=layout.delimiter, newlines_in_values=True, invalid_row_handler=skip
    )
    converting = pacsv.ConvertOptions(
        column_types=dict.fromkeys(layout.names, pa.binary()), strings_can_be_null=False
    )
    ready: pa.RecordBatch | None = None
    try:
        with pacsv.open_csv(pa.PythonFile(text, "r"), reading, parsing, converting) as reader:
            for batch in reader:
                if layout.record and any(_swallows(column, layout) for column in batch):
                    raise pa.ArrowInvalid(_OPEN)
                if not len(batch):
                    continue
                if ready is not None:
                    yield ready, False
                ready = batch
    except pa.ArrowInvalid:
        if ready is not None:
            yield ready, False
        raise
    if ready is not None:
        yield ready, True


def _swallows(column: pa.BinaryArray, layout: _Layout) -> bool:
    matches = _holds(column, b"\n") and pc.any(pc.match_substring_regex(column, layout.record))
    return bool(matches and matches.as_py())


def _holds(column: pa.Array, part: bytes) -> bool:
    """Whether the bytes of any value hold `part`: quicker than to look into each value."""
    values = column.buffers()[2]
    return values is not None and part in values.to_pybytes()


_GKG_COLUMNS = 27
_DATE, _SOURCE, _EXTRAS = 1, 3, 26
"""V2.1DATE, V2SOURCECOMMONNAME, V2EXTRASXML of the GKG 2.1 codebook."""
_TITLE = re.compile(r"<PAGE_TITLE>([^<]*+(?:<(?!/?PAGE_TITLE>)[^<]*+)*+)</PAGE_TITLE>")


@READERS.register("gkg", ReaderTraits(noun="GDELT's GKG", suffixes=(".gkg",), named=True))
def read_gkg(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    """Date, headline and site of each article; GDELT hands out no more of its text."""
    with opened(path) as file:
        encoding = options.encoding or "utf-8"
        lines = lines_of(file.read, lambda data: data.split(b"\n"))
        articles = islice(enumerate(line for line in lines if line.strip()), since, None)
        records = (
            (number, _gkg_record(line.decode(encoding, "replace"))) for number, line in articles
        )
        yield from in_columns(records, lambda: file.done)


def _gkg_record(line: str) -> Record:
    cells = line.rstrip("\r").split("\t")
    if len(cells) != _GKG_COLUMNS:
        return f"{len(cells)} values for {_GKG_COLUMNS} columns"
    title = _TITLE.search(cells[_EXTRAS])
    if title is None:
        return "no headline"
    return {
        "date": cells[_DATE],
        "text": html.unescape(title[1]).strip(),
        "source": cells[_SOURCE] or None,
    }
