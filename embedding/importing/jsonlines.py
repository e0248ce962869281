"""JSON: an object a line, or one list of objects in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from embedding.importing.encodings import ENCODING_BYTES, MARKED, NO_TEXT, Utf8Text, encoding_of
from embedding.importing.opening import UnpackedFile, opened, whole_of
from embedding.importing.readers import (
    LONGEST_RECORD,
    READERS,
    RawRecords,
    ReaderTraits,
    ReadOptions,
    Record,
    in_columns,
)
from embedding.kernel.errors import InputError
from embedding.sources.answers import object_lists
from embedding.sources.times import parse_time

_BLOCK = 1 << 20
_HOLDS_MORE = re.compile(r'^\{\s*"[^"\\]{0,200}"\s*:\s*[{[]|:\s*\[\s*\{')
"""How a table that is written by columns begins, or a list of objects in an answer."""
_CUT = "the file ends in the middle of it"
_BETWEEN = b" \t\r\n,\x1e\xef\xbb\xbf"
"""What may stand around a line: a comma of a list, marks of RFC 7464 or of an encoding."""
_DECODER = json.JSONDecoder(strict=False)
_FOLLOWING = re.compile(r"[\[},]\s*\{|\n[ \t]*\{")
"""Where, behind a fault, another object may begin."""
_MOST_FAULTS = 1_000


@READERS.register(
    "jsonl",
    ReaderTraits(
        noun="JSON", suffixes=(".jsonl", ".ndjson", ".json"), begins=(b'{"', b"[{", b"{\n", b"[\n")
    ),
)
def read_json(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    """The objects of a file; what is inside another object is called as in `user.name`."""
    with opened(path) as file:
        encoding = encoding_of(file, path, options.encoding)
        text = Utf8Text(file, encoding.name, MARKED)
        sample = file.head(ENCODING_BYTES).decode(encoding.name, "replace")
        first = sample.removeprefix("\ufeff").lstrip()
        line = first.partition("\n")[0].strip()
        alone = "\n" not in first.rstrip()
        whole = (
            first.startswith("[")
            or not _is_object(line, cut=len(line) == len(first))
            or (alone and _HOLDS_MORE.search(first) is not None)
        )
        records = _listed(text, path) if whole else _lines(text, file, path)
        yield from in_columns(
            islice(enumerate(records), since, None), lambda: file.done, note=encoding.note
        )


def _is_object(line: str, *, cut: bool) -> bool:
    """Whether a line is an object of its own; `cut`: the sample may not hold all of it."""
    try:
        return isinstance(json.loads(line), Mapping)
    except (ValueError, RecursionError):
        return cut or not line.rstrip().endswith(("{", ",", "["))


def _lines(text: Utf8Text, file: UnpackedFile, path: Path) -> Iterator[Record]:
    rest = b""
    while data := text.read(_BLOCK):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > LONGEST_RECORD:
            raise InputError(f"{path}: a line has more than {LONGEST_RECORD >> 20} MB; no JSONL.")
        for line in lines:
            yield from _of_line(line)
    yield from _of_line(rest, cut=file.cut)


def _of_line(line: bytes, *, cut: bool | None = None) -> Iterator[Record]:
    """The record of a line, or several; `cut` says of the last line whether the file is."""
    line = line.strip(_BETWEEN)
    if not line:
        return
    try:
        records = [_flat(_DECODER.decode(line.decode()))]
    except (ValueError, RecursionError):
        records = list(_made_out(line.decode(), ends=cut is not None))
    yield from [*records[:-1], _CUT] if cut else records


def _made_out(text: str, *, ends: bool = True) -> Iterator[Record]:
    """The objects of a text with a fault in it, and why others are none; it may end the file."""
    end = faults = 0
    begin = text.find("{")
    while begin >= 0 and faults < _MOST_FAULTS:
        try:
            value, end = _DECODER.raw_decode(text, begin)
            yield _flat(value)
            begin = text.find("{", end)
        except (ValueError, RecursionError):
            faults += 1
            following = _FOLLOWING.search(text, begin)
            begin, end = following.end() - 1 if following else -1, len(text)
            cut = ends and following is None and not text.rstrip(" \t\r\n,]").endswith("}")
            yield _CUT if cut else "no JSON"
    if not end:
        yield "no JSON"


def _flat(value: Any) -> Record:
    if not isinstance(value, Mapping):
        return "no JSON object"
    fields: dict[str, str | None] = {}
    for key, child in value.items():
        if isinstance(child, Mapping):
            fields.update((f"{key}.{name}", _plain(cell)) for name, cell in child.items())
        else:
            fields[key] = _plain(child)
    broken = any(NO_TEXT in cell for cell in fields.values() if cell)
    return "bytes that are no text" if broken else fields


def _plain(value: Any) -> str | None:
    if isinstance(value, str):
        return value or None
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value) or None
    if isinstance(value, Mapping) and len(value) == 1:  # {"$numberLong": "…"} of MongoDB
        return next((_plain(cell) for name, cell in value.items() if name[:1] == "$"), None)
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _listed(text: Utf8Text, path: Path) -> Iterator[Record]:
    """The objects of a file that is one value: of the list in it that holds most text."""
    too_long = (
        f"{path}: one JSON value of more than {LONGEST_RECORD >> 20} MB; an object a line is "
        "accepted."
    )
    data = whole_of(text.read, LONGEST_RECORD, too_long)
    try:
        value = _DECODER.decode(data.decode().strip("\ufeff \t\r\n"))
    except (ValueError, RecursionError) as error:
        if all(isinstance(record, str) for record in _made_out(data.decode())):
            raise InputError(f"{path}: not valid JSON ({error}).") from error
        yield from _made_out(data.decode())
        return
    value = _by_rows(value)
    if isinstance(value, Mapping):
        lists: list[list[Any]] = [list(rows) for _, rows in object_lists(value)]
        fullest = max([*lists, [value]], key=lambda rows: sum(map(_spoken, rows)))
        alike = [row for rows in lists if set(rows[0]) == set(fullest[0]) for row in rows]
        value = _of_columns(value) or alike or fullest
    yield from (_flat(record) for record in value)


def _spoken(value: Mapping[str, Any]) -> int:
    """Characters of an object's own texts, which no addresses and numbers are."""
    texts = (cell for cell in value.values() if isinstance(cell, str))
    return sum(len(text) for text in texts if not text.isascii() or " " in text)


def _by_rows(value: Any) -> Any:
    """Records of a table that is written by rows, as `DataFrame.to_json` does with orient="index",
    "split" or "values", or whose records have keys; another value as it is."""
    inner = list(value.values()) if isinstance(value, Mapping) else []
    if inner and all(isinstance(record, Mapping) for record in inner):
        dated = any(all(parse_time(record.get(name)) for record in inner) for name in inner[0])
        if dated or all(map(str.isdecimal, value)):
            return inner
    apart = [value.get(name) for name in ("columns", "data")] if isinstance(value, Mapping) else []
    rows = [apart[0], *apart[1]] if apart and isinstance(apart[1], list) else value
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        return value
    headed = not any(isinstance(cell, str) and parse_time(cell) for cell in rows[0])
    names = [str(cell if headed else number) for number, cell in enumerate(rows[0], 1)]
    return [dict(zip(names, row, strict=False)) for row in rows[headed:]]


def _of_columns(value: Mapping[str, Any]) -> list[Any]:
    """Records of a table that is written by columns: {"text": {"0": "…", "1": "…"}, …}, or lists
    of one length, as `DataFrame.to_json` and `to_dict("list")` write it; none of another value."""
    columns = {
        name: column if isinstance(column, Mapping) else dict(enumerate(column))
        for name, column in value.items()
        if isinstance(column, Mapping | list)
    }
    keys = {tuple(column) for column in columns.values()}
    cells = [cell for column in columns.values() for cell in column.values()]
    whole = len(columns) == len(value) > 1 and len(keys) == 1
    whole = whole and not all(isinstance(cell, Mapping) for cell in cells)
    nested = any(isinstance(cell, Mapping | list) for cell in cells)
    if not whole or (nested and not all(str(key).isdecimal() for key in next(iter(keys)))):
        return []
    return [{name: column[key] for name, column in columns.items()} for key in keys.pop()]
