"""`yeoron import`: files of any kind that is known become one dated corpus."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from embedding.importing.columns import check_columns, find_columns
from embedding.importing.conversion import Conversion, CorpusRecords
from embedding.importing.corpusfile import CorpusFile, writing
from embedding.importing.dates import DateReading
from embedding.importing.encodings import check_encoding
from embedding.importing.opening import check_file, opened
from embedding.importing.readers import (
    READERS,
    RECORD_FIELDS,
    RawRecords,
    ReadOptions,
    WrongRecord,
    check_reader,
    reader_of,
)
from embedding.kernel.errors import ConfigError, InputError
from embedding.sources.base import Pseudonyms

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
            raise ConfigError("no file is named; one or more are imported.")
        if self.reader is not None:
            check_reader(self.reader)
        if self.encoding is not None:
            check_encoding(self.encoding)
        DateReading(self.timezone, self.date_format)


@dataclass(frozen=True)
class FilePlan:
    """How one file is going to be read: by which reader, which column for which field.

    found  columns that nobody named, so that a person should look at them
    """

    path: Path
    reader: str
    mapping: Mapping[str, str]
    found: bool


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

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form."""
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
        name = request.reader or reader_of(path, file.head(_HEAD))
    if READERS.traits(name).named:
        return FilePlan(path, name, {each: each for each in RECORD_FIELDS}, found=False)
    sample = _sample(path, name, request)
    columns = list(sample.columns)
    mapping = dict(request.columns)
    if all(column in columns for column in mapping.values()):
        mapping = find_columns(sample.columns, _dates(request), request.columns)
    check_columns(path, mapping, columns)
    return FilePlan(path, name, mapping, found=mapping != request.columns)


def _sample(path: Path, reader: str, request: ImportRequest) -> RawRecords:
    """The first records; InputError where there are none."""
    wrong: list[WrongRecord] = []
    rows = READERS.get(reader)(path, _options(request), 0)
    try:
        for raw in rows:
            if raw.numbers:
                columns = {name: each.slice(0, _SAMPLE) for name, each in raw.columns.items()}
                return RawRecords(raw.numbers[:_SAMPLE], columns)
            wrong += raw.wrong
    finally:
        _close(rows)
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
    """One import at work."""

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
        self._at, self._since = int(state.get("file", 0)), int(state.get("record", 0))
        self._times: list[float] = list(state.get("times", []))
        self._result = ImportResult(
            records=int(state.get("records", 0)),
            wrong=Counter(state.get("wrong", {})),
            examples=list(state.get("examples", [])),
            notes=list(state.get("notes", [])),
            resumed=int(state.get("records", 0)),
        )

    def run(self, show: ImportProgress) -> ImportResult:
        sizes = [plan.path.stat().st_size for plan in self._plans]
        kept = time.monotonic()
        while self._at < len(self._plans):
            plan, before = self._plans[self._at], sum(sizes[: self._at])
            pseudonyms = Pseudonyms(self._key)
            conversion = Conversion(plan.mapping, _dates(self._request), pseudonyms)
            records = READERS.get(plan.reader)
            try:
                for raw in records(plan.path, _options(self._request), self._since):
                    self._take(plan.path, raw, conversion.convert(raw))
                    show((before + raw.done * sizes[self._at]) / sum(sizes), self._result.records)
                    if time.monotonic() - kept >= _KEEP_S:
                        self._keep()
                        kept = time.monotonic()
            except InputError as error:
                # Its head could be read: what is damaged behind it costs itself alone.
                self._result.wrong[_REST] += 1
                self._result.notes.append(str(error))
            self._at, self._since = self._at + 1, 0
        if self._times:
            self._result.first, self._result.last = map(_shown, self._times)
        return self._result

    def _take(self, path: Path, raw: RawRecords, converted: CorpusRecords) -> None:
        self._file.add(converted.lines, converted.when)
        result = self._result
        result.records += len(converted.lines)
        note = f"{path}: {raw.note}."
        if raw.note and note not in result.notes:
            result.notes.append(note)
        for each in sorted(converted.wrong, key=lambda one: one.number):
            result.wrong[_counted(each.reason)] += 1
            if len(result.examples) < NAMED:
                result.examples.append(f"{path}: record {each.number + 1}: {each.reason}.")
        if len(converted.when):
            first, last = float(converted.when.min()), float(converted.when.max())
            times = self._times or [first, last]
            self._times = [min(times[0], first), max(times[1], last)]
        self._since = max(self._since, raw.next)

    def _keep(self) -> None:
        result = self._result
        self._file.keep(
            {
                "of": self._marks,
                "file": self._at,
                "record": self._since,
                "records": result.records,
                "wrong": result.wrong,
                "examples": result.examples,
                "notes": result.notes,
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
    found: dict[str, Any] = json.loads(json.dumps({"files": files, "options": options}))
    return found


def _options(request: ImportRequest) -> ReadOptions:
    return ReadOptions(encoding=request.encoding, timezone=request.timezone)


def _dates(request: ImportRequest) -> DateReading:
    return DateReading(request.timezone, request.date_format)


def _counted(reason: str) -> str:
    """The reason without what differs from record to record."""
    return "no date that can be read" if reason.endswith("is no date") else reason


def _shown(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).date().isoformat()


def _close(rows: Iterator[RawRecords]) -> None:
    close = getattr(rows, "close", None)
    if close is not None:
        close()
