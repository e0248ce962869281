"""Where words were read: addresses of a few documents by word, source and day. Never any text.

Of each word, source and day SKETCH hashes of documents are kept. From them follows how many
documents of the day hold the word, exactly while they are fewer, else by the smallest of them
(Bar-Yossef et al. 2002; the standard error is 1/√(SKETCH − 2), an eighth). The samples of nodes
join to the sample of all (bottom-k, Cohen and Kaplan 2007). A hash is made under a key that lies
only in the memory of its node: from the rows of a store nobody reads which belong to one document.

PER_DAY of these rows name the address of their document. No document is listed with more than
NAMING_WORDS of its words, and a text that its listing held, as a comment or a post, with none. An
address is that of a page: what names one comment on it is cut off. Parquet files sorted by word,
one folder for each month:

    <folder>/2020-02/<node>-<number>.parquet    word, source, day int32, hash int64, url ("" where
                                                only the hash is kept), published float64 (day
                                                × 86,400)

A day is one of the time zone of the windows.

Files of versions before 28 November 2026 hold more: seconds, up to all words of a document, and
hashes that can be turned back. They are erased from, and not read.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import chain, zip_longest
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embedding.kernel.calendar import day_number, day_of
from embedding.kernel.durable import replaced, unreadable
from embedding.kernel.errors import SnapshotError
from embedding.kernel.records import IntArray

EVIDENCE_SCHEMA = pa.schema(
    [
        ("word", pa.string()),
        ("source", pa.string()),
        ("day", pa.int32()),
        ("hash", pa.int64()),
        ("url", pa.string()),
        ("published", pa.float64()),
    ]
)
EVIDENCE_FORMAT = 1
"""Version of these files, in the metadata of each; one without it is of before it was kept."""
_FORMAT_KEY = b"yeoron.format"
_SKETCH_KEY = b"yeoron.hashes"
_NAMED_KEY = b"yeoron.named"
_OLD = (
    "of a version before 28 November 2026; run `yeoron retain` once with Yeoron of 30 November "
    "2026, which trims it."
)
PER_DAY = 3
"""Addresses kept of a word by source and day."""
NAMING_WORDS = 8
"""Words of a document that name its address."""
SKETCH = 64
"""Hashes kept of a word by source and day."""
_HASHES = 2.0**63
MOST_PARTS = 8
"""Files of one writer and month; beyond it, they are joined."""
DAY = 86_400
_COMMENT = re.compile(r"(?:^|[_-])(?:comment|cmt|cmmt|reply|rpl|answer)", re.IGNORECASE)
_PARENT = re.compile(r"(?:page|sort|order|view|list|count|size)$", re.IGNORECASE)


def page_of(url: str) -> str:
    """The address of the page: without its fragment and without parameters that name a comment.

    A fragment that begins with `!` or `/` is kept: sites of one script name their pages so.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("#")[0]
    fragment = parts.fragment if parts.fragment.startswith(("!", "/")) else ""
    pairs = [
        pair
        for pair in parts.query.split("&")
        if not _COMMENT.search(name := pair.partition("=")[0]) or _PARENT.search(name)
    ]
    return parts._replace(query="&".join(pairs), fragment=fragment).geturl()


@dataclass(frozen=True)
class Evidence:
    """A document that holds the word, and its day in the time zone of the windows."""

    url: str
    source: str
    published: date


@dataclass(frozen=True)
class DayCount:
    """Documents of one source and day (days since 1970) that hold a word.

    documents  None where older files kept too few hashes to say it
    exact      whether it was counted; else it is an estimate
    """

    word: str
    source: str
    day: int
    documents: float | None
    exact: bool


class EvidenceStore:
    """Addresses of documents by word, in a folder; several nodes write, anybody reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, table: pa.Table, writer: str) -> None:
        """Publish rows of `EVIDENCE_SCHEMA` as new files, each by one rename.

        writer  name of the node, of which no two are the same
        """
        table = _of_pages(table)
        days = table.column("day").to_numpy().astype("datetime64[D]")
        months = days.astype("datetime64[M]").astype(str)
        for label in sorted(set(months.tolist())):
            part = sampled(table.filter(pa.array(months == label)))
            _publish(self.folder / label, part, writer, _TODAY)
            self._join(self.folder / label, writer)

    def take(self, month: str, name: str, data: bytes) -> None:
        """Keep the file `name`.parquet of a month, which another host's store published; once more
        changes nothing. SnapshotError for bytes that are no such file.
        """
        path = self.folder / month / f"{name}.parquet"
        table, schema = _today(pa.BufferReader(data), name)
        if table.schema != EVIDENCE_SCHEMA:
            raise SnapshotError(
                f"evidence {name}: it has the columns {', '.join(table.schema.names)[:200]}; "
                f"{', '.join(EVIDENCE_SCHEMA.names)} are accepted."
            )
        _write(path, _of_pages(table), _marks([schema]))
        self._join(path.parent, name.rpartition("-")[0])

    def find(self, word: str, start: datetime, end: datetime, n: int = 20) -> list[Evidence]:
        """At most n documents of the days of [start, end) that hold `word`: newest first, sources
        in turn. Raises SnapshotError when a file cannot be read.
        """
        tables = self._tables([word], start, end)
        addressed = [table.filter(pc.not_equal(table["url"], "")) for table, _ in tables]
        if not any(table.num_rows for table in addressed):
            return []
        once: dict[str, Evidence] = {}
        for row in sampled(pa.concat_tables(addressed)).sort_by("day").to_pylist():
            if row["url"]:
                once[row["url"]] = Evidence(row["url"], row["source"], day_of(row["day"]))
        by_source: dict[str, list[Evidence]] = {}
        for document in sorted(once.values(), key=_newest):
            by_source.setdefault(document.source, []).append(document)
        in_turn = chain.from_iterable(zip_longest(*by_source.values()))
        chosen = [document for document in in_turn if document is not None]
        return sorted(chosen[:n], key=_newest)

    def days(self, words: Sequence[str], start: datetime, end: datetime) -> list[DayCount]:
        """How many documents of each day of [start, end) hold each word, by source; days without
        any are left out. Raises SnapshotError when a file cannot be read.
        """
        hashes: dict[tuple[str, str, int], set[int]] = {}
        limits: dict[tuple[str, str, int], int] = {}
        for table, limit in self._tables(words, start, end):
            for row in table.select(["word", "source", "day", "hash"]).to_pylist():
                key = row["word"], row["source"], row["day"]
                hashes.setdefault(key, set()).add(row["hash"])
                limits[key] = min(limit, limits.get(key, limit))
        return [_counted(key, hashes[key], limits[key]) for key in sorted(hashes)]

    def _tables(
        self, words: Sequence[str], start: datetime, end: datetime
    ) -> Iterable[tuple[pa.Table, int]]:
        """Of each file the rows of some words in the days of [start, end), and how many hashes it
        keeps of a day.
        """
        first, last = day_number(start), day_number(end - timedelta(microseconds=1))
        day = pc.field("day")
        # The words of a file are UTF-8: one with half a surrogate pair is in none.
        known = [word for word in words if word == word.encode(errors="ignore").decode()]
        chosen = pc.field("word").isin(pa.array(known, pa.string()))
        for path in self._files(start, end):
            with suppress(FileNotFoundError):  # joined with others by its writer in the meantime
                table, schema = _today(path, path, chosen & (day >= first) & (day <= last))
                yield table, _sketch_of(schema)

    def erase(
        self,
        *,
        word: str | None = None,
        source: str | None = None,
        page: str | None = None,
        until: int | None = None,
        dry: bool = False,
    ) -> int:
        """Remove rows of a word, a source, a page, or of days up to and with one (days since 1970);
        how many there are. Each file changes at once or not at all. No node may be
        writing.

        dry  only count
        """
        rows = 0
        for path in sorted(self.folder.glob("*/*.parquet")):
            try:
                table, schema = _whole(path, path)
            except FileNotFoundError:
                continue  # joined with others by its writer in the meantime
            table = _of_pages(table)
            gone = np.zeros(table.num_rows, dtype=bool)
            for name, wanted in (("word", word), ("source", source), ("url", page)):
                if wanted is not None:
                    gone |= pc.equal(table[name], wanted).to_numpy(zero_copy_only=False)
            if until is not None:
                gone |= table["day"].to_numpy() <= until
            n = int(gone.sum())
            rows += n
            if dry or not n:
                continue
            if n == table.num_rows:
                path.unlink()
                continue
            _write(path, table.filter(pa.array(~gone)), _marks([schema]))
        return rows

    def refused(self) -> list[str]:
        """A sentence where there are files that are not read."""
        n = 0
        for path in self.folder.glob("*/*.parquet"):
            with suppress(OSError, pa.ArrowException):
                n += _NAMED_KEY not in (pq.read_schema(path).metadata or {})
        return [f"Evidence: {n:,} files are not read: each is {_OLD}"] if n else []

    def _files(self, start: datetime, end: datetime) -> list[Path]:
        first, last = f"{start:%Y-%m}", f"{end:%Y-%m}"
        if not self.folder.is_dir():
            return []
        months = sorted(p for p in self.folder.iterdir() if first <= p.name <= last)
        return [path for month in months for path in sorted(month.glob("*.parquet"))]

    def _join(self, folder: Path, writer: str) -> None:
        parts = sorted(folder.glob(f"{_safe(writer)}-*.parquet"))
        if len(parts) <= MOST_PARTS:
            return
        opened = {}
        for path in parts:
            # Delivered to the control host in the meantime, or of an earlier version.
            with suppress(FileNotFoundError, SnapshotError):
                opened[path] = _today(path, path)
        if opened:
            whole = sampled(pa.concat_tables([table for table, _ in opened.values()]))
            _publish(folder, whole, writer, _marks([schema for _, schema in opened.values()]))
        for path in opened:
            path.unlink(missing_ok=True)


def named(pages: IntArray, choice: IntArray) -> npt.NDArray[np.bool_]:
    """bool [n]: which pairs of a page and a word that it holds may name the page: `NAMING_WORDS` of
    each page, those whose choice is smallest, which is a hash of both. So they are the same
    whichever words have a vector by then.
    """
    once, own = np.unique(np.stack([pages, choice]), axis=1, return_inverse=True)
    rank = np.arange(once.shape[1]) - np.searchsorted(once[0], once[0])
    chosen: npt.NDArray[np.bool_] = (rank < NAMING_WORDS)[own.ravel()]
    return chosen


def unlinked_hashes(pages: Sequence[str], words: Sequence[str], key: bytes) -> IntArray:
    """int64 [n]: one for each pair of a page and a word. Without the key (16 bytes) nobody can say
    which pairs belong to one page, nor find those of a page that he knows.
    """
    pairs = zip(pages, words, strict=True)
    texts = [f"{page}\0{word}".encode(errors="replace") for page, word in pairs]
    digests = [hashlib.blake2b(text, digest_size=8, key=key).digest() for text in texts]
    hashes: IntArray = (np.frombuffer(b"".join(digests), ">u8") >> np.uint64(1)).astype(np.int64)
    return hashes


def sampled(table: pa.Table) -> pa.Table:
    """Sorted by word; of each word, source and day the `SKETCH` rows of smallest hash, once. The
    first `PER_DAY` of them that have addresses keep them. No row keeps its time of the day.
    """
    keys = ("word", "source", "day", "hash")
    table = table.sort_by([(name, "ascending") for name in keys]).combine_chunks()
    if not table.num_rows:
        return table
    codes = [_codes(table.column(name)) for name in keys]
    group = np.any([np.diff(code) != 0 for code in codes[:3]], axis=0)
    first = np.flatnonzero(np.concatenate([[True], group]))
    again = np.concatenate([[False], ~group & (np.diff(codes[3]) == 0)])
    rows = np.flatnonzero(~again)
    own = np.searchsorted(first, rows, side="right") - 1
    # The place within its group, counted among those that are there once.
    rank = np.arange(len(rows)) - np.searchsorted(rows, first)[own]
    rows, own = rows[rank < SKETCH], own[rank < SKETCH]
    chosen = table.take(pa.array(rows))
    addressed = pc.not_equal(chosen["url"], "").to_numpy(zero_copy_only=False)
    before = np.cumsum(addressed) - addressed
    begin = np.searchsorted(own, own)
    nameless = pa.array(before - before[begin] >= PER_DAY)
    url = pc.if_else(nameless, pa.scalar(""), chosen["url"])
    midnight = pc.cast(pc.multiply(pc.cast(chosen["day"], pa.int64()), DAY), pa.float64())
    return _with(_with(chosen, "url", url), "published", midnight)


def _counted(key: tuple[str, str, int], hashes: set[int], limit: int) -> DayCount:
    word, source, day = key
    if len(hashes) < limit:
        return DayCount(word, source, day, float(len(hashes)), exact=True)
    if limit < SKETCH:
        return DayCount(word, source, day, None, exact=False)
    largest = sorted(hashes)[limit - 1] / _HASHES
    return DayCount(word, source, day, (limit - 1) / largest, exact=False)


def _sketch_of(schema: pa.Schema) -> int:
    """How many hashes of a day a file keeps; older ones kept as many as addresses."""
    size = (schema.metadata or {}).get(_SKETCH_KEY, b"")
    return int(size) if size.isdigit() else PER_DAY


_Marks = dict[bytes, bytes]
_TODAY: _Marks = {
    _FORMAT_KEY: str(EVIDENCE_FORMAT).encode(),
    _SKETCH_KEY: str(SKETCH).encode(),
    _NAMED_KEY: str(NAMING_WORDS).encode(),
}


def _marks(schemas: Sequence[pa.Schema]) -> _Marks:
    """What a file says of itself that holds the rows of such files: what an older one left out
    cannot be counted any more, and what it holds too much stays until it is trimmed.
    """
    sketch = min(map(_sketch_of, schemas))
    marks = _TODAY | {_SKETCH_KEY: str(sketch).encode()}
    if not all(_NAMED_KEY in (schema.metadata or {}) for schema in schemas):
        del marks[_NAMED_KEY]
    return marks


def _whole(
    file: Path | pa.BufferReader, name: Path | str, rows: pc.Expression | None = None
) -> tuple[pa.Table, pa.Schema]:
    """The rows of a file (some of them), and its schema with what it says of itself.

    SnapshotError for one that cannot be read, or of a newer version; FileNotFoundError when a
    writer has joined it with others meanwhile.
    """
    try:
        table = pq.read_table(file, partitioning=None, filters=rows)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise SnapshotError(f"evidence {name}: cannot be read: {error}.") from error
    version = (table.schema.metadata or {}).get(_FORMAT_KEY, b"1")
    if why := unreadable(int(version) if version.isdigit() else version, (EVIDENCE_FORMAT,)):
        raise SnapshotError(f"evidence {name}: {why}.")
    return table.replace_schema_metadata(None), table.schema


def _today(
    file: Path | pa.BufferReader, name: Path | str, rows: pc.Expression | None = None
) -> tuple[pa.Table, pa.Schema]:
    """The same of a file that holds no more than is kept today; SnapshotError for another."""
    table, schema = _whole(file, name, rows)
    if _NAMED_KEY not in (schema.metadata or {}):
        raise SnapshotError(f"evidence {name}: it is {_OLD}")
    return table, schema


def _with(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The same table with other values in one column."""
    at = table.schema.get_field_index(name)
    return table.set_column(at, EVIDENCE_SCHEMA.field(name), values)


def _of_pages(table: pa.Table) -> pa.Table:
    """The same rows with addresses of pages."""
    urls = pc.dictionary_encode(table.column("url").combine_chunks())
    pages = pa.array([page_of(url) for url in urls.dictionary.to_pylist()], pa.string())
    return _with(table, "url", pages.take(urls.indices))


def _codes(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if pa.types.is_string(column.type):
        column = pc.dictionary_encode(column.combine_chunks()).indices
    return np.asarray(column.to_numpy()).astype(np.int64)


def _newest(document: Evidence) -> tuple[int, str]:
    """Newest first, by address where equal."""
    return -document.published.toordinal(), document.url


def _safe(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z_.]", "_", name)[:80]


def _publish(folder: Path, table: pa.Table, writer: str, marks: _Marks) -> None:
    name = f"{_safe(writer)}-{uuid.uuid4().hex[:12]}"
    _write(folder / f"{name}.parquet", table, marks)


def _write(path: Path, table: pa.Table, marks: _Marks) -> None:
    with replaced(path) as file:
        pq.write_table(
            table.replace_schema_metadata(marks), file, compression="zstd", row_group_size=20_000
        )
