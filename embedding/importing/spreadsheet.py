"""Spreadsheets, as BigKinds and others hand them out: XLSX, XML, or a table in HTML or text."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

from lxml import etree

from embedding.importing.encodings import Utf8Text, encoding_of
from embedding.importing.opening import DAMAGED, check_file, opened, why_not
from embedding.importing.readers import (
    LONGEST_RECORD,
    READERS,
    TOO_LONG,
    RawRecords,
    ReaderTraits,
    ReadOptions,
    Record,
    in_columns,
)
from embedding.kernel.errors import InputError

_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
"""How a spreadsheet writes a control character (ECMA-376, 22.9.2.19)."""
_MERGED = re.compile(rb'mergeCell\b[^<>]{0,40}ref="([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})"')
_SHORT, _LEFT = 60, 100
"""Characters of a cell that is no text, and columns in which such cells are looked for."""
_DEFECTS = (KeyError, IndexError, AttributeError, TypeError, SyntaxError, RecursionError)
"""What openpyxl raises for some damaged files; errors of XML are SyntaxErrors."""
_UNPACKED = 1 << 23
_RATIO = 100
"""A part of more bytes unpacked, and so many times its size, is none of a table: cells of the most
uniform ones take a tenth. openpyxl needs some hundred bytes of memory for each."""
_BEGIN = 1 << 16
"""Bytes in which a table in HTML begins, behind its styles."""
_SHEET_OF_XML = "urn:schemas-microsoft-com:office:spreadsheet"
"""The namespace of spreadsheets of 2003 in XML."""
_ROWS, _COLUMNS = 1 << 20, 1 << 14
"""Of a sheet (ECMA-376); a file can name others, and all before them would be filled up."""


@READERS.register(
    "xlsx",
    ReaderTraits(
        noun="a spreadsheet", suffixes=(".xlsx", ".xlsm", ".xls"), begins=(b"PK\x03\x04",)
    ),
)
def read_sheet(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    """The rows of the first sheet that has some below its first line of names; of those that are
    shown, if any is.

    A formula counts as the value that was computed last; none is computed here. Many boards hand
    out a table in HTML or text under the name of a spreadsheet, which programs open.
    """
    from openpyxl.utils.exceptions import InvalidFileException

    check_file(path)
    with path.open("rb") as file:
        begin = file.read(4)
    try:
        if not begin.startswith(b"PK"):
            yield from _of_text(path, options, since)
            return
        with zipfile.ZipFile(path) as archive:
            for part in archive.infolist():
                # No more than `file_size` is unpacked of any.
                if part.file_size > max(_UNPACKED, _RATIO * part.compress_size):
                    raise InputError(
                        f"{path}: {part.filename!r} in it unpacks to {part.file_size >> 20} MB, "
                        f"more than {_RATIO} times its size; no table does. Save it as CSV if it "
                        "is one."
                    )
        try:
            book = _book(path)
        except _DEFECTS:
            book = _book(path, styled=False)
        try:
            shown = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
            progress = [0, 0]
            for sheet in shown or book.worksheets:
                progress[:] = 0, sheet.max_row or 0
                # Other programs write A1 for the whole sheet.
                sheet.reset_dimensions()
                rows = _rows(_filled(sheet), path, progress)
                first = next(rows, None)
                if first is not None:
                    yield from in_columns(
                        islice(chain([first], rows), since, None),
                        lambda: min(progress[0] / progress[1], 1.0) if progress[1] > 1 else 0.0,
                    )
                    break
        finally:
            book.close()
    except (InvalidFileException, *DAMAGED, *_DEFECTS) as error:
        why = why_not(error, begin)
        raise InputError(f"{path}: not a complete .xlsx file ({why}).") from error


def _of_text(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    """The rows of what is called a spreadsheet and is a table in HTML or in text."""
    with opened(path) as file:
        encoding = encoding_of(file, path, options.encoding)
        begin = file.head(_BEGIN).decode(encoding.name, "replace").lstrip("\ufeff \t\r\n").lower()
        if "\0" in begin:
            raise InputError(f"{path}: neither a spreadsheet nor a table in HTML or text.")
        if begin.startswith("<"):
            xml = _SHEET_OF_XML in begin
            if not xml and not re.search("<t[rdh][ >]", begin):
                raise InputError(f"{path}: no table in it; save it as .xlsx or CSV.")
            # The text is UTF-8 by now, whatever it says.
            rows = etree.iterparse(
                Utf8Text(file, encoding.name, "replace"),
                tag="{*}Row" if xml else "tr",
                html=not xml,
                recover=True,
                resolve_entities=False,
                encoding="utf-8",
                huge_tree=not xml,
            )
            cells = islice(_rows(map(_cells, rows), path, [0]), since, None)
            yield from in_columns(cells, lambda: file.done, note=encoding.note)
            return
    yield from READERS.get("csv")(path, options, since)


def _cells(event: tuple[str, Any]) -> tuple[str, ...]:
    row = event[1]
    for end in row.iter("br", "p", "div"):
        end.tail = f" {end.tail or ''}"
    cells: list[str] = []
    for cell in row.iterchildren("td", "th", "{*}Cell"):
        # Of XML, empty cells before one may be left out: it says its place.
        position = int(cell.get(f"{{{_SHEET_OF_XML}}}Index") or 0)
        cells += [""] * (min(position, _COLUMNS) - 1 - len(cells))
        cells.append(" ".join("".join(cell.itertext()).split()))
    row.clear()
    return tuple(cells)


def _book(path: Path, styled: bool = True) -> Any:
    """A workbook; not `styled`: without its formats, so that its dates are numbers."""
    from openpyxl.reader.excel import ExcelReader

    reader = ExcelReader(path, read_only=True, data_only=True, keep_links=False)
    # What else is in it may be broken: who wrote it when, and its colours.
    for part in ("read_properties", "read_custom", "read_theme"):
        setattr(reader, part, lambda: None)
    if not styled:
        reader.archive.NameToInfo.pop("xl/styles.xml", None)
    reader.read()
    return reader.wb


def _filled(sheet: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of a sheet, in which a short cell that was merged downwards counts for each row.

    A long one is a text: one record, and not several.
    """
    from openpyxl.utils import range_boundaries

    begins: dict[int, list[tuple[int, int]]] = {}
    tail = b""
    with suppress(*DAMAGED), sheet._get_source() as part:  # noqa: SLF001
        while data := part.read(_UNPACKED):
            tail = (tail + data)[-_UNPACKED:]
    for merged in _MERGED.findall(tail):
        column, first, _, last = range_boundaries(merged.decode())
        begins.setdefault(first, []).append((column - 1, last))
    above: dict[int, tuple[Any, int]] = {}
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        above = {column: cell for column, cell in above.items() if cell[1] >= number}
        cells = [above.get(i, (None,))[0] if cell is None else cell for i, cell in enumerate(row)]
        for column, last in begins.get(number, ()):
            if column < min(len(cells), _LEFT) and len(str(cells[column])) <= _SHORT:
                above[column] = (cells[column], last)
        yield tuple(cells)


def _rows(
    rows: Iterator[tuple[Any, ...]], path: Path, progress: list[int]
) -> Iterator[tuple[int, Record]]:
    """Numbered records; `progress[0]` says how many lines were read."""
    names: list[str] | None = None
    number = 0
    while True:
        try:
            row = next(rows, None)
        except (*DAMAGED, *_DEFECTS) as error:
            if not number:
                raise
            yield number, f"the sheet cannot be read from here on ({error})"
            return
        if row is None:
            return
        progress[0] += 1
        if progress[0] > _ROWS or len(row) > _COLUMNS:
            raise InputError(f"{path}: more than {_ROWS:,} rows or {_COLUMNS:,} columns; no sheet.")
        cells = [_text(cell) for cell in row]
        if names is None:
            # A title above the table stands in a cell of its own, or in each where it was merged.
            if len({cell for cell in cells if cell is not None}) > 1:
                names = [cell or str(n) for n, cell in enumerate(cells, 1)]
        elif any(cell is not None for cell in cells):
            long = sum(len(cell) for cell in cells if cell) > LONGEST_RECORD
            yield number, TOO_LONG if long else dict(zip(names, cells, strict=False))
            number += 1


def _text(cell: Any) -> str | None:
    if cell is None or cell == "":
        return None
    if isinstance(cell, datetime | date):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), str(cell))
    return "\n".join(text.splitlines()).strip() or None
