"""What a reader of files is: it yields records in columns of text, and names those it left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from embedding.kernel.errors import InputError
from embedding.kernel.registry import Registry

RECORD_FIELDS = ("date", "text", "title", "source", "author")
"""What a record has; all but date and text may be missing."""
BATCH_RECORDS = 4096
"""Records that a reader hands over at once, about."""
BATCH_CHARACTERS = 1 << 24
"""Characters of them, about; a record may be longer alone."""
LONGEST_RECORD = 1 << 26
"""Characters of one record, at most."""
TOO_LONG = f"more than {LONGEST_RECORD >> 20} MB of text"
"""Why a longer one is left out."""
_FOREIGN = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"\x7fELF", b"RIFF")
"""How pictures, PDF, programs and sound begin."""
_OFFICE = b"\xd0\xcf\x11\xe0"
"""How files of Office before 2007 begin, and of Hangul."""


@dataclass(frozen=True)
class WrongRecord:
    """A record that is left out. `reason` says why without its text; `number` counts from 0."""

    number: int
    reason: str


@dataclass(frozen=True)
class RawRecords:
    """Some records of a file, in its order, as they are written there.

    numbers  of the records, from 0
    columns  name → Arrow strings [n], null where there is nothing
    wrong    those that could not be read, each with a number below `next`
    done     share of the file that is read
    note     what a person should look at in how the file is read; empty: nothing
    """

    numbers: tuple[int, ...] | range
    columns: Mapping[str, pa.StringArray]
    wrong: tuple[WrongRecord, ...] = ()
    done: float = 0.0
    note: str = ""

    @property
    def next(self) -> int:
        """Number of the record behind the last one."""
        last = [self.numbers[-1]] if self.numbers else []
        return max([*last, *(record.number for record in self.wrong)], default=-1) + 1


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How a file is read.

    encoding  of a text file; None finds it
    timezone  of times that are written without one, where a reader looks for times in pages
    """

    encoding: str | None = None
    timezone: str = "UTC"


Record = Mapping[str, str | None] | str
"""The fields of a record, or why it is left out."""
RecordReader = Callable[[Path, ReadOptions, int], Iterator[RawRecords]]
"""Reads a file from a record number on, in bounded memory; raises InputError for one that it
cannot read at all."""


@dataclass(frozen=True, kw_only=True)
class ReaderTraits:
    """What a reader reads."""

    noun: str = ""
    """What its file is called in a sentence, as in `a table`."""

    suffixes: tuple[str, ...] = ()
    """Ends of file names that are its own; of a packed file without .gz, .xz, .bz2 or .zip."""

    begins: tuple[bytes, ...] = field(default=(), repr=False)
    """First bytes of its files, where the name says nothing."""

    named: bool = False
    """Its columns are date, text, title, source and author: no mapping is looked for."""

    def contradiction(self) -> str:
        return "" if self.noun else "a reader needs a noun"


READERS: Registry[RecordReader, ReaderTraits] = Registry(
    "reader",
    "yeoron.readers",
    {
        "csv": "embedding.importing.delimited",
        "feed": "embedding.importing.feeds",
        "gkg": "embedding.importing.delimited",
        "jsonl": "embedding.importing.jsonlines",
        "mbox": "embedding.importing.mailbox",
        "parquet": "embedding.importing.columnar",
        "warc": "embedding.importing.webarchive",
        "xlsx": "embedding.importing.spreadsheet",
    },
)
"""All readers: those built in, and those of other packages."""


def reader_of(path: Path, head: bytes, inner: str = "") -> str:
    """The name of the reader for a file: its name says it, or else its beginning.

    head   its first bytes, unpacked
    inner  name of the file that is packed in it

    Raises InputError for what is no file of records.
    """
    accepted = ", ".join(READERS)
    if head.startswith(_OFFICE):
        raise InputError(
            f"{path}: written by an old Excel, Word or Hangul; save it as .xlsx or CSV."
        )
    if head.startswith(_FOREIGN):
        raise InputError(f"{path}: a picture, a document or a program; {accepted} are accepted.")
    traits = {name: READERS.traits(name) for name in READERS}
    for suffix in map(str.lower, (*path.suffixes, *Path(inner).suffixes)):
        for name, reader in traits.items():
            if suffix in reader.suffixes:
                return name
    for name, reader in traits.items():
        if head.startswith(reader.begins):
            return name
    if path.suffix == ".txt":
        return "csv"
    raise InputError(
        f"{path}: neither its name nor its beginning says what it is; --reader takes {accepted}."
    )


def in_columns(
    records: Iterable[tuple[int, Record]],
    done: Callable[[], float],
    size: int = BATCH_RECORDS,
    note: str = "",
) -> Iterator[RawRecords]:
    """Numbered records, each its fields or why it is left out, in columns of about `size`."""
    rows: list[tuple[int, Mapping[str, str | None]]] = []
    wrong: list[WrongRecord] = []
    characters = 0
    for number, record in records:
        if isinstance(record, str):
            wrong.append(WrongRecord(number, record))
        else:
            rows.append((number, record))
            characters += sum(map(len, filter(None, record.values())))
        if len(rows) + len(wrong) >= size or characters >= BATCH_CHARACTERS:
            yield _columns(rows, wrong, done(), note)
            rows, wrong, characters = [], [], 0
    if rows or wrong:
        yield _columns(rows, wrong, done(), note)


def _columns(
    rows: list[tuple[int, Mapping[str, str | None]]],
    wrong: list[WrongRecord],
    done: float,
    note: str,
) -> RawRecords:
    names = dict.fromkeys(name for _, row in rows for name in row)
    columns = {}
    for name in names:
        cells = (row.get(name) for _, row in rows)
        # Without halves of surrogate pairs, which no file can hold.
        whole = [
            it and (it if it.isascii() else it.encode(errors="ignore").decode()) for it in cells
        ]
        columns[name] = pa.array(whole, pa.string())
    return RawRecords(tuple(number for number, _ in rows), columns, tuple(wrong), done, note)
