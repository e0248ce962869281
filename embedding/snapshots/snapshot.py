"""A published snapshot, opened for reading; its tables are memory-mapped."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embedding.kernel.errors import InputError, SnapshotError
from embedding.kernel.records import (
    FloatArray,
    IntArray,
    Phrase,
    SnapshotRef,
    TimeArray,
    Window,
    WordCounts,
)
from embedding.snapshots.files import entry, manifest_text, validate
from embedding.snapshots.format import (
    COUNTS,
    EARLIER_FILE,
    MANIFEST,
    PHRASES,
    VALUE_COLUMNS,
    VECTORS,
    Manifest,
    parse_manifest,
)
from embedding.snapshots.nearness import RowScales, centre_of, frequent, sureness
from embedding.snapshots.pulls import CONTEXTS_FILE, ContextPulls
from embedding.snapshots.pulls import read as read_pulls
from embedding.snapshots.readability import unreadable
from embedding.snapshots.usage import BUSIEST_FILE, USAGE, Usage
from embedding.snapshots.usage import read as read_usage
from embedding.text.normalise import normalise


class Snapshot:
    """One immutable snapshot.

    Opening reads the manifest and maps vectors.arrow; nothing else is loaded until it is asked
    for. Raises SnapshotError when a file is missing, has another size than the manifest says, or
    is not an Arrow file; contents are compared by `verify`.
    """

    def __init__(self, path: Path, uri: str | None = None) -> None:
        self.path = path
        self.manifest: Manifest = read_manifest(path)
        self.ref: SnapshotRef = self.manifest.ref(uri or str(path))
        check_sizes(path, self.manifest)
        self._maps: list[mmap.mmap] = []
        self._batch = self._mapped(VECTORS)

    def __repr__(self) -> str:
        return f"Snapshot({self.ref.id!r}, words={len(self)}, dim={self.dim})"

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.index(word) is not None

    @property
    def id(self) -> str:
        return self.ref.id

    @property
    def dim(self) -> int:
        return self.manifest.dim

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(self._batch.column("word").to_pylist())

    @property
    def word_column(self) -> pa.StringArray:
        """The words as an Arrow column on the mapped file."""
        return self._batch.column("word")

    @property
    def ids(self) -> IntArray:
        return self._flat("id")

    @property
    def counts(self) -> IntArray:
        return self._flat("count")

    @property
    def last_seen(self) -> TimeArray:
        """float64 [n], Unix seconds of event time."""
        values: TimeArray = self._batch.column("last_seen").to_numpy()
        return values

    @cached_property
    def vectors(self) -> FloatArray:
        """float32 [n, dim] `in` table, mapped, read-only."""
        return self._table("in")

    @cached_property
    def contexts(self) -> FloatArray:
        """float32 [n, dim] `out` table, mapped, read-only."""
        return self._table("out")

    @property
    def unreadable(self) -> str | None:
        """Why the vectors cannot be read yet, in a sentence; None: they can."""
        return unreadable(self.manifest.quality)

    @cached_property
    def centre(self) -> FloatArray:
        """float32 [dim]: what all words have in common (snapshots/nearness.py)."""
        return centre_of(self.read_vectors(frequent(self.counts)))

    @cached_property
    def counts_table(self) -> pa.RecordBatch:
        """counts.arrow, mapped (`format.py`)."""
        return self._mapped(COUNTS)

    @property
    def encoded_counts(self) -> WordCounts:
        """What this window counted by word and source, both dictionary-encoded in Arrow."""
        return _encoded(self.counts_table)

    @cached_property
    def _earlier_table(self) -> pa.RecordBatch | None:
        return self._mapped(EARLIER_FILE) if EARLIER_FILE in self.manifest.files else None

    @property
    def earlier(self) -> WordCounts | None:
        """What windows before counted of words that had no row when they were published."""
        return None if self._earlier_table is None else _encoded(self._earlier_table)

    def earlier_of(self, window: Window) -> WordCounts | None:
        """The same of one window."""
        table = self._earlier_in(window)
        return None if table is None else _encoded(table)

    def _earlier_in(self, window: Window) -> pa.RecordBatch | None:
        if self._earlier_table is None:
            return None
        starts = self._earlier_table.column("window").to_numpy()
        own = (starts >= window.start.timestamp()) & (starts < window.end.timestamp())
        return self._earlier_table.filter(pa.array(own))

    @cached_property
    def by_source(self) -> WordCounts:
        """The same with words and sources as text."""
        table = self.counts_table
        words, sources = (table.column(name).to_pylist() for name in ("word", "source"))
        return replace(self.encoded_counts, words=words, sources=sources)

    @cached_property
    def usage(self) -> Usage | None:
        """How words were used in this window; None when it was not added up."""
        if USAGE not in self.manifest.files:
            return None
        usage = read_usage(self._mapped(USAGE), self.dim, self.release)
        if BUSIEST_FILE not in self.manifest.files:
            return usage
        return replace(
            usage, busiest=read_usage(self._mapped(BUSIEST_FILE), self.dim, self.release)
        )

    @cached_property
    def pulls(self) -> ContextPulls | None:
        """Which contexts pulled words in this window; None when nobody said."""
        if CONTEXTS_FILE not in self.manifest.files:
            return None
        return read_pulls(self._mapped(CONTEXTS_FILE))

    @cached_property
    def phrases(self) -> dict[str, Phrase]:
        """The words that are several read as one, by word."""
        if PHRASES not in self.manifest.files:
            return {}
        return {row["word"]: Phrase.of(row) for row in self._mapped(PHRASES).to_pylist()}

    def read_vectors(self, rows: IntArray) -> FloatArray:
        """float32 [len(rows), dim]: a copy of some rows of the `in` table.

        Read and not mapped: pages of a file that were looked at once do not stay in memory.
        """
        column = self._batch.schema.get_field_index("in")
        options = pa.ipc.IpcReadOptions(included_fields=[column])
        with (
            pa.OSFile(str(self.path / VECTORS)) as source,
            pa.ipc.open_file(source, options=options) as reader,
        ):
            flat = reader.get_batch(0).column(0).flatten().to_numpy()
        chosen: FloatArray = flat.reshape(len(self), self.dim)[rows]
        return chosen

    def source_counts(
        self, word: str, before: Window | None = None
    ) -> dict[str, tuple[int, int, int]]:
        """(occurrences, documents, known authors) of one word by source in this window.

        before  a window before it, of which a snapshot counts words that had no row yet
        """
        table = self.counts_table if before is None else self._earlier_in(before)
        if table is None:
            return {}
        code = _bisect(table.column("word").dictionary, word)
        codes = table.column("word").indices.to_numpy()
        # In their own type: else all codes are converted.
        ends = np.array([code, code + 1], dtype=codes.dtype)
        first, last = np.searchsorted(codes, ends) if code >= 0 else (0, 0)
        out: dict[str, tuple[int, int, int]] = {}
        for row in table.slice(int(first), int(last - first)).to_pylist():
            count, documents, authors = out.get(row["source"], (0, 0, 0))
            out[row["source"]] = (
                count + row["count"],
                documents + row["documents"],
                authors + row.get("authors", 0),
            )
        return out

    def index(self, word: str, guess: int = -1) -> int | None:
        """Row of `word`, None when the snapshot does not hold it.

        guess  a row to look at first: a word keeps its row as long as no other leaves
        """
        if 0 <= guess < len(self) and self._batch.column("word")[guess].as_py() == word:
            return guess
        row = _position(self._batch.column("word"), word)
        return None if row < 0 else row

    def rows(self, words: Sequence[str] | pa.StringArray) -> IntArray:
        """int64 [n]: rows of several words (or a `word_column`) at once, -1 for an unknown one."""
        asked = words if isinstance(words, pa.Array) else pa.array(words, pa.string())
        indices = pc.index_in(asked, value_set=self._batch.column("word"))
        return np.asarray(indices.fill_null(-1).to_numpy(), np.int64)

    def neighbours(self, word: str, n: int = 10) -> list[tuple[str, float]]:
        """The n words nearest to a word, as texts have it, with their nearness
        (snapshots/nearness.py), exact, highest first.

        Raises InputError for an unknown word, and n < 1.
        """
        if n < 1:
            raise InputError(f"snapshot {self.id}: n is at least 1, got {n}.")
        row = self.index(word)
        row = self.index(normalise(word)) if row is None else row
        if row is None:
            raise InputError(f"snapshot {self.id}: no word {word[:80]!r} among {len(self)}.")
        rows, figures = self._scales.nearest(self.vectors, self.vectors[row], n, row)
        names = self._batch.column("word").take(pa.array(rows)).to_pylist()
        return list(zip(names, figures.tolist(), strict=True))

    @cached_property
    def _scales(self) -> RowScales:
        return RowScales.of(self.vectors, self.centre, sureness(self.counts))

    def verify(self) -> None:
        """Compare the SHA-256 of every file, and look whether Arrow can read it; raises
        SnapshotError, for a file that was changed with both digests.
        """
        for name, expected in self.manifest.files.items():
            actual = entry(self.path / name)
            if actual.sha256 != expected.sha256:
                raise SnapshotError(
                    f"snapshot {self.id}: {name} is damaged: its SHA-256 is {actual.sha256}, the "
                    f"manifest says {expected.sha256}."
                )
        if not self.manifest.erased and self.manifest.expected_id() != self.id:
            raise SnapshotError(
                f"snapshot {self.id}: {MANIFEST} was changed: its content has the id "
                f"{self.manifest.expected_id()}."
            )
        for name in self.manifest.files:
            _map(self.path / name)

    def release(self) -> None:
        """Let go of the pages of files that were looked at; they are mapped again when needed."""
        for mapped in self._maps:
            if hasattr(mmap, "MADV_DONTNEED"):
                mapped.madvise(mmap.MADV_DONTNEED)

    def _mapped(self, name: str) -> pa.RecordBatch:
        batch, mapped = _map(self.path / name)
        self._maps.append(mapped)
        return batch

    def _flat(self, name: str) -> IntArray:
        values: IntArray = self._batch.column(name).to_numpy()
        return values

    def _table(self, name: str) -> FloatArray:
        flat = self._batch.column(name).flatten().to_numpy()
        table: FloatArray = flat.reshape(len(self), self.dim)
        return table


def read_manifest(path: Path) -> Manifest:
    """The manifest in the directory `path`; raises SnapshotError."""
    return parse_manifest(manifest_text(path), f"snapshot {path.name}: {MANIFEST}")


def check_sizes(path: Path, manifest: Manifest) -> None:
    """Refuse a snapshot with a missing or truncated file; raises SnapshotError."""
    for name in (VECTORS, COUNTS, *(name for name in (USAGE,) if name in manifest.files)):
        expected = manifest.files.get(name)
        if expected is None:
            raise SnapshotError(f"snapshot {path.name}: {MANIFEST} does not list {name}.")
        try:
            size = (path / name).stat().st_size
        except FileNotFoundError as error:
            raise SnapshotError(f"snapshot {path.name}: {name} is missing in {path}.") from error
        if size != expected.size:
            raise SnapshotError(
                f"snapshot {path.name}: {name} has {size} bytes, the manifest says {expected.size}."
            )


def _encoded(table: pa.RecordBatch) -> WordCounts:
    known = [name for name in VALUE_COLUMNS if name in table.schema.names]
    return WordCounts(
        table.column("word"),
        table.column("source"),
        *(table.column(name).to_numpy() for name in ("window", *known)),
    )


def _position(column: pa.StringArray, word: str) -> int:
    """Row of `word`, -1 when it is not there; text that is no Unicode is never there."""
    try:
        position: int = pc.index(column, word).as_py()
    except UnicodeEncodeError:
        return -1
    return position


def _bisect(column: pa.StringArray, word: str) -> int:
    """Place of `word` in a sorted column (by code points, as Arrow sorts), -1: not there."""
    low, high = 0, len(column)
    while low < high:
        middle = (low + high) // 2
        if column[middle].as_py() < word:
            low = middle + 1
        else:
            high = middle
    return low if low < len(column) and column[low].as_py() == word else -1


def _map(path: Path) -> tuple[pa.RecordBatch, mmap.mmap]:
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            with pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped))) as reader:
                batch = reader.get_batch(0)
            validate(batch, file.fileno())
        return batch, mapped
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SnapshotError(f"{path}: not a readable Arrow file: {error}.") from error
