"""Where words were read: addresses of a few documents by word, source and day. Never any text.

Beside the addresses of PER_DAY documents stand the hashes of SKETCH of them: from these follows how
many documents of a day hold the word, exactly while they are fewer, else by the smallest of them
(Bar-Yossef et al. 2002; the standard error is 1/√(SKETCH − 2), an eighth). No address can be read
off a hash.

A word's documents are sampled by the smallest values of a hash of address and word (bottom-k,
Cohen and Kaplan 2007), so that nodes sample alike without asking each other, a document read twice
counts once, and no document is listed with all its words. An address is that of a page: what names
one comment on it is cut off, because a comment is one person's. Parquet files sorted by word, one
folder for each month:

    <folder>/2020-02/<node>-<number>.parquet    word, source, day int32, hash int64, url,
                                                published float64 (Unix seconds); where only
                                                the hash is kept, url is empty and published is
                                                the day's begin
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embedding.kernel.durable import replaced
from embedding.kernel.errors import SnapshotError
from embedding.kernel.formats import unreadable

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
PER_DAY = 3
"""Addresses kept of a word by source and day."""
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
    kept = [
        pair
        for pair in parts.query.split("&")
        if not _COMMENT.search(name := pair.partition("=")[0]) or _PARENT.search(name)
    ]
    return parts._replace(query="&".join(kept), fragment=fragment).geturl()


@dataclass(frozen=True)
class Evidence:
    """A document that holds the word."""

    url: str
    source: str
    published: datetime


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
        month = _months(table.column("day").to_numpy())
        for label in sorted(set(month.tolist())):
            part = sampled(table.filter(pa.array(month == label)))
            _publish(self.folder / label, part, writer)
            self._join(self.folder / label, writer)

    def take(self, month: str, name: str, data: bytes) -> None:
        """Keep the file `name`.parquet of a month, which another host's store published; once more
        changes nothing. SnapshotError for bytes that are no such file.
        """
        path = self.folder / month / f"{name}.parquet"
        try:
            found = pq.read_table(pa.BufferReader(data), partitioning=None)
        except (pa.ArrowException, OSError) as error:
            raise SnapshotError(f"evidence {name}: cannot be read: {error}.") from error
        table = _opened(found, path)
        if table.schema != EVIDENCE_SCHEMA:
            raise SnapshotError(
                f"evidence {name}: it has the columns {', '.join(table.schema.names)[:200]}; "
                f"{', '.join(EVIDENCE_SCHEMA.names)} are accepted."
            )
        _write(path, _of_pages(table), _sketch_of(found.schema))
        self._join(path.parent, name.rpartition("-")[0])

    def find(self, word: str, start: datetime, end: datetime, n: int = 20) -> list[Evidence]:
        """At most n documents published in [start, end) that hold `word`: newest first, sources in
        turn. Raises SnapshotError when a file cannot be read.
        """
        # Files of before comments were cut off hold their addresses still.
        tables = [_of_pages(self._read(path, word, start, end)) for path in self._files(start, end)]
        found = [_addressed(table) for table in tables if table.num_rows]
        if not found:
            return []
        rows = sampled(pa.concat_tables(found)).sort_by([("published", "descending")]).to_pylist()
        once = {row["url"]: row for row in reversed(rows)}
        by_source: dict[str, list[Evidence]] = {}
        for row in sorted(once.values(), key=lambda row: (-row["published"], row["url"])):
            published = datetime.fromtimestamp(row["published"], UTC)
            one = Evidence(row["url"], row["source"], published)
            by_source.setdefault(row["source"], []).append(one)
        return _in_turn(list(by_source.values()), n)

    def days(self, words: Sequence[str], start: datetime, end: datetime) -> list[DayCount]:
        """How many documents of each day of [start, end) hold each word, by source; days without
        any are left out. Raises SnapshotError when a file cannot be read.
        """
        hashes: dict[tuple[str, str, int], set[int]] = {}
        limits: dict[tuple[str, str, int], int] = {}
        first, last = int(start.timestamp() // DAY), int((end.timestamp() - 1) // DAY)
        for path in self._files(start, end):
            chosen = pc.field("word").isin([word for word in words if _writable(word)])
            table, limit = self._rows(path, chosen, first, last)
            for row in table.select(["word", "source", "day", "hash"]).to_pylist():
                key = row["word"], row["source"], row["day"]
                hashes.setdefault(key, set()).add(row["hash"])
                limits[key] = min(limit, limits.get(key, limit))
        return [_counted(key, hashes[key], limits[key]) for key in sorted(hashes)]

    @staticmethod
    def _rows(path: Path, chosen: pc.Expression, first: int, last: int) -> tuple[pa.Table, int]:
        """Rows of some words between two days, and how many hashes the file keeps of a day."""
        day = pc.field("day")
        filters = chosen & (day >= first) & (day <= last)
        try:
            found = pq.read_table(path, partitioning=None, filters=filters)
        except FileNotFoundError:
            return EVIDENCE_SCHEMA.empty_table(), SKETCH
        except (pa.ArrowException, OSError) as error:
            raise SnapshotError(f"evidence {path}: cannot be read: {error}.") from error
        return _opened(found, path), _sketch_of(found)

    def erase(
        self,
        *,
        word: str | None = None,
        source: str | None = None,
        page: str | None = None,
        before: float | None = None,
        dry: bool = False,
    ) -> int:
        """Remove rows of a word, a source, a page, or published before a time (Unix seconds); how
        many there are. Each file changes at once or not at all. No node may be writing.

        dry  only count
        """
        found = 0
        for path in sorted(self.folder.glob("*/*.parquet")):
            try:
                sketch = _sketch_of(pq.read_schema(path))
                table = _of_pages(_whole(path))
            except FileNotFoundError:
                continue  # joined with others by its writer in the meantime
            except (pa.ArrowException, OSError) as error:
                raise SnapshotError(f"evidence {path}: cannot be read: {error}.") from error
            gone = np.zeros(table.num_rows, dtype=bool)
            for name, wanted in (("word", word), ("source", source), ("url", page)):
                if wanted is not None:
                    gone |= pc.equal(table[name], wanted).to_numpy(zero_copy_only=False)
            if before is not None:
                gone |= table["published"].to_numpy() < before
            n = int(gone.sum())
            found += n
            if dry or not n:
                continue
            if n == table.num_rows:
                path.unlink()
                continue
            _write(path, table.filter(pa.array(~gone)), sketch)
        return found

    def _files(self, start: datetime, end: datetime) -> list[Path]:
        first, last = f"{start:%Y-%m}", f"{end:%Y-%m}"
        if not self.folder.is_dir():
            return []
        months = sorted(p for p in self.folder.iterdir() if first <= p.name <= last)
        return [path for month in months for path in sorted(month.glob("*.parquet"))]

    @staticmethod
    def _read(path: Path, word: str, start: datetime, end: datetime) -> pa.Table:
        low, high = start.timestamp(), end.timestamp()
        try:
            found = pq.read_table(
                path,
                partitioning=None,
                filters=(pc.field("word") == word)
                & (pc.field("published") >= low)
                & (pc.field("published") < high),
            )
        except FileNotFoundError:
            return EVIDENCE_SCHEMA.empty_table()  # joined with others by its writer in the meantime
        except UnicodeEncodeError:
            return EVIDENCE_SCHEMA.empty_table()
        except (pa.ArrowException, OSError) as error:
            raise SnapshotError(f"evidence {path}: cannot be read: {error}.") from error
        return _opened(found, path)

    def _join(self, folder: Path, writer: str) -> None:
        parts = sorted(folder.glob(f"{_safe(writer)}-*.parquet"))
        if len(parts) <= MOST_PARTS:
            return
        tables, kept = [], []
        for path in parts:
            with suppress(FileNotFoundError):  # delivered to the control host in the meantime
                kept.append(_sketch_of(pq.read_schema(path)))
                tables.append(_whole(path))
        if tables:
            # What an older file left out cannot be counted any more.
            _publish(folder, sampled(pa.concat_tables(tables)), writer, min(kept))
        for path in parts:
            path.unlink(missing_ok=True)


def sampled(table: pa.Table) -> pa.Table:
    """Sorted by word; of each word, source and day the `SKETCH` rows of smallest hash, once, the
    first `PER_DAY` of them with their addresses.
    """
    keys = ("word", "source", "day", "hash")
    table = table.sort_by([(name, "ascending") for name in keys]).combine_chunks()
    if not table.num_rows:
        return table
    codes = [_codes(table.column(name)) for name in keys]
    group = np.any([np.diff(code) != 0 for code in codes[:3]], axis=0)
    first = np.flatnonzero(np.concatenate([[True], group]))
    again = np.concatenate([[False], ~group & (np.diff(codes[3]) == 0)])
    kept = np.flatnonzero(~again)
    # The place within its group, counted among those that are there once.
    start = np.searchsorted(kept, first)
    own = np.searchsorted(first, kept, side="right") - 1
    rank = np.arange(len(kept)) - start[own]
    chosen = table.take(pa.array(kept[rank < SKETCH]))
    return _nameless(chosen, rank[rank < SKETCH] >= PER_DAY)


def _nameless(table: pa.Table, rows: npt.NDArray[np.bool_]) -> pa.Table:
    """The same table without address and time in these rows."""
    mask = pa.array(rows)
    begin = pc.cast(pc.multiply(pc.cast(table["day"], pa.int64()), DAY), pa.float64())
    for name, blank in (("url", pa.scalar("")), ("published", begin)):
        at = table.schema.get_field_index(name)
        column = pc.if_else(mask, blank, table[name])
        table = table.set_column(at, EVIDENCE_SCHEMA.field(name), column)
    return table


def _addressed(table: pa.Table) -> pa.Table:
    """The rows that have an address."""
    return table.filter(pc.not_equal(table["url"], ""))


def _counted(key: tuple[str, str, int], hashes: set[int], limit: int) -> DayCount:
    word, source, day = key
    if len(hashes) < limit:
        return DayCount(word, source, day, float(len(hashes)), exact=True)
    if limit < SKETCH:
        return DayCount(word, source, day, None, exact=False)
    largest = sorted(hashes)[limit - 1] / _HASHES
    return DayCount(word, source, day, (limit - 1) / largest, exact=False)


def _sketch_of(table: pa.Table | pa.Schema) -> int:
    """How many hashes of a day a file keeps; older ones kept as many as addresses."""
    schema = table if isinstance(table, pa.Schema) else table.schema
    size = (schema.metadata or {}).get(_SKETCH_KEY, b"")
    return int(size) if size.isdigit() else PER_DAY


def _writable(word: str) -> bool:
    """Whether it can be written in UTF-8, as all words of a file are."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole(path: Path) -> pa.Table:
    try:
        return _opened(pq.read_table(path, partitioning=None), path)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise SnapshotError(f"evidence {path}: cannot be read: {error}.") from error


def _of_pages(table: pa.Table) -> pa.Table:
    """The same rows with addresses of pages."""
    found = pc.dictionary_encode(table.column("url").combine_chunks())
    pages = pa.array([page_of(url) for url in found.dictionary.to_pylist()], pa.string())
    at = table.schema.get_field_index("url")
    return table.set_column(at, EVIDENCE_SCHEMA.field("url"), pages.take(found.indices))


def _codes(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if pa.types.is_string(column.type):
        column = pc.dictionary_encode(column.combine_chunks()).indices
    return np.asarray(column.to_numpy()).astype(np.int64)


def _months(days: np.ndarray[tuple[int], np.dtype[np.int32]]) -> np.ndarray:
    return np.asarray(days).astype("datetime64[D]").astype("datetime64[M]").astype(str)


def _in_turn(groups: Sequence[list[Evidence]], n: int) -> list[Evidence]:
    chosen = []
    for at in range(max(len(group) for group in groups)):
        chosen += [group[at] for group in groups if at < len(group)]
    return sorted(chosen[:n], key=lambda one: (-one.published.timestamp(), one.url))


def _safe(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z_.]", "_", name)[:80]


def _publish(folder: Path, table: pa.Table, writer: str, sketch: int = SKETCH) -> None:
    name = f"{_safe(writer)}-{uuid.uuid4().hex[:12]}"
    _write(folder / f"{name}.parquet", table, sketch)


def _write(path: Path, table: pa.Table, sketch: int) -> None:
    marked = table.replace_schema_metadata(
        {_FORMAT_KEY: str(EVIDENCE_FORMAT).encode(), _SKETCH_KEY: str(sketch).encode()}
    )
    with replaced(path) as file:
        pq.write_table(marked, file, compression="zstd", row_group_size=20_000)


def _opened(table: pa.Table, path: Path) -> pa.Table:
    """The table of a file, without what the file says of itself; SnapshotError for a newer one."""
    version = (table.schema.metadata or {}).get(_FORMAT_KEY, b"1")
    if why := unreadable(int(version) if version.isdigit() else version, (EVIDENCE_FORMAT,)):
        raise SnapshotError(f"evidence {path}: {why}.")
    return table.replace_schema_metadata(None)
