"""Counting: exponential forgetting by tokens read, and exact counts by window.

Forgetting keeps every count in units that grow: one occurrence at time t weighs 2^(t/H), so that
nothing has to be touched as time passes; a count now is its sum divided by today's weight.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embedding.exchange.payload import BlockCounts
from embedding.exchange.wire import text_array
from embedding.kernel.records import COUNT_COLUMNS, IntArray, WordCounts
from embedding.server.parts import Content, Erasure, Part, PushArrival, Saved
from embedding.server.words.digests import WordsCopy

Columns = tuple[IntArray, ...]
"""Ids and what was counted of them (`COUNT_COLUMNS`), int64 [n] each."""

_RESCALE = 2.0**40
_MERGE_ROWS = 200_000
_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("word", pa.string()),
        *((name, pa.int64()) for name in COUNT_COLUMNS),
    ]
)


class Decay:
    """Weight of an occurrence that is counted now; `half_life` in tokens, None never forgets."""

    def __init__(self, half_life: float | None, weight: float = 1.0) -> None:
        self.half_life = half_life
        self.weight = weight

    def advance(self, tokens: int) -> float | None:
        """`tokens` were read. When the weight got large: what stored counts must be divided by."""
        if self.half_life is None:
            return None
        self.weight *= 2.0 ** min(tokens / self.half_life, 64.0)
        if self.weight < _RESCALE:
            return None
        divisor, self.weight = self.weight, 1.0
        return divisor


class IdCounts:
    """Sums by row id of what was counted of one source in one window."""

    def __init__(self) -> None:
        self._parts: list[Columns] = []
        self._rows = 0
        self._summed = 0

    def add(self, columns: Columns) -> None:
        """Count words; kept as they are until there are many."""
        # Off the wire the arrays are parts of a whole message, which they would keep alive.
        self._parts.append(tuple(column.copy() for column in columns))
        self._rows += len(columns[0])
        if self._rows - self._summed > max(_MERGE_ROWS, self._summed):
            self.sums()

    def sums(self) -> Columns:
        """Each id once, increasing."""
        sums = _summed(self._parts)
        self._parts, self._rows, self._summed = [sums], len(sums[0]), len(sums[0])
        return sums

    def parts(self) -> list[Columns]:
        """What is held, not summed up; the arrays never change."""
        return list(self._parts)


def _summed(parts: Sequence[Columns]) -> Columns:
    none = np.empty(0, dtype=np.int64)
    ids, *counted = (
        np.concatenate([none, *(part[i] for part in parts)]) for i in range(1 + len(COUNT_COLUMNS))
    )
    if len(parts) < 2:
        return (ids, *counted)
    ids, place = np.unique(ids, return_inverse=True)
    sums = [np.bincount(place, weights=each, minlength=len(ids)) for each in counted]
    return (ids, *(each.astype(np.int64) for each in sums))


@dataclass(frozen=True)
class CountsCopy:
    """One window's counts as they were at a moment, taken in no time and put together later.

    known   by source, parts of counts by id; tables  parts of counts by word (`_SCHEMA`)
    """

    known: list[tuple[str, list[Columns]]]
    tables: list[pa.Table]

    def table(self, words: WordsCopy) -> pa.Table:
        """The columns of `_SCHEMA`, as a checkpoint may hold them; a (source, word) may come
        several times.

        words  those that had a row when this was taken
        """
        tables = [
            counts.set_column(1, "word", words.written(counts["word"])) for counts in self.tables
        ]
        for source, parts in self.known:
            ids, *counted = _summed(parts)
            if len(ids):
                tables.append(_columns(source, words.named(ids), counted))
        if not tables:
            return _SCHEMA.empty_table()
        # Columns off the wire may lie unaligned; combined ones do not.
        return pa.concat_tables(tables).combine_chunks()


def _columns(source: str, words: pa.Array, counted: Sequence[IntArray]) -> pa.Table:
    sources = pa.repeat(pa.scalar(source, pa.string()), len(words))
    return pa.table([sources, words, *map(pa.array, counted)], schema=_SCHEMA)


class WindowCounts(Part):
    """What was counted by (window, source, word), for words with and without a row.

    A push is appended as it came, known words by id, and summed up with the others only now and
    then, so that counting costs a push next to nothing. `names` gives the words of ids; `resolve`
    must be called before ids lose their names.
    """

    def __init__(self, names: Callable[[IntArray], Sequence[str]]) -> None:
        self._names = names
        self._known: dict[tuple[int, str], IdCounts] = {}
        self._tables: dict[int, list[pa.Table]] = {}
        self._pending: dict[int, int] = {}
        self.tokens: dict[int, dict[str, int]] = {}
        self.documents: dict[int, dict[str, int]] = {}

    def windows(self) -> list[int]:
        """Starts (Unix seconds) of the windows that hold anything, in order."""
        return sorted({*self._tables, *self.tokens, *(window for window, _ in self._known)})

    def add(self, counts: BlockCounts, closed: Container[int] = ()) -> None:
        """Count one push's words, but for windows that are closed."""
        words = text_array(counts.words)
        named = np.concatenate(([0], np.cumsum(counts.ids < 0)))
        start = 0
        for group in counts.groups:
            rows, start = slice(start, group.stop), group.stop
            if group.window in closed or rows.start == rows.stop:
                continue
            columns = [counts.ids[rows], *(column[rows] for column in counts.columns)]
            known = columns[0] >= 0
            held = self._known.setdefault((group.window, group.source), IdCounts())
            held.add(tuple(column[known] for column in columns))
            part = words.slice(named[rows.start], named[rows.stop] - named[rows.start])
            if len(part):
                part = pa.concat_arrays([part])  # a slice would keep the whole message
                counted = [column[~known] for column in columns[1:]]
                self._append(group.window, _columns(group.source, part, counted))

    def note(self, window: int, source: str, documents: int, tokens: int) -> None:
        for held, n in ((self.documents, documents), (self.tokens, tokens)):
            by_source = held.setdefault(window, {})
            by_source[source] = by_source.get(source, 0) + n

    def resolve(self) -> None:
        """Give every counted id its name: ids are about to be evicted."""
        for window in {window for window, _ in self._known}:
            self._resolve(window)

    def learnt(self, arrival: PushArrival, now: float, closed: Container[int]) -> None:
        self.add(arrival.push.counts, closed)

    def save(self) -> Saved:
        copies = {f"window.{start}": self.copied(start) for start in self.windows()}
        facts = {
            f"window_{name}": {str(start): dict(held) for start, held in each.items()}
            for name, each in (("tokens", self.tokens), ("documents", self.documents))
        }
        return Saved(
            facts, lambda words: {name: copy.table(words) for name, copy in copies.items()}
        )

    def load(self, content: Content) -> None:
        for name, held in (("tokens", self.tokens), ("documents", self.documents)):
            for start, by_source in content.facts[f"window_{name}"].items():
                held[int(start)] = dict(by_source)
        for name, table in content.tables.items():
            if name.startswith("window."):
                self.replace(int(name.removeprefix("window.")), table)

    def copied(self, window: int) -> CountsCopy:
        """The window's counts as they are now: quick, however many they are."""
        known = [
            (key[1], counts.parts()) for key, counts in self._known.items() if key[0] == window
        ]
        return CountsCopy(known, list(self._tables.get(window, ())))

    def table(self, window: int) -> pa.Table:
        """The columns of `_SCHEMA` of one window; each (source, word) once."""
        self._resolve(window)
        self._merge(window)
        held = self._tables.get(window)
        return held[0] if held else _SCHEMA.empty_table()

    def replace(self, window: int, table: pa.Table) -> None:
        """Set a window's counts, as a checkpoint has them: a (source, word) may be repeated."""
        self._tables[window] = [table.cast(_SCHEMA)]
        self._pending[window] = table.num_rows

    def forget(self, erasure: Erasure) -> None:
        self.resolve()
        source = erasure.source
        words = pa.array([erasure.word, erasure.hidden], pa.string())
        for window, tables in self._tables.items():
            kept = []
            for table in tables:
                gone = pc.is_in(table["word"], value_set=words)
                if source is not None:
                    gone = pc.or_(gone, pc.equal(table["source"], source))
                kept.append(table.filter(pc.invert(gone)))
            self._tables[window] = kept
        for held in (self.tokens, self.documents):
            for by_source in held.values():
                by_source.pop(source or "", None)

    def free(self, window: int) -> None:
        """Forget a window: its snapshot was cut."""
        for held in (self._tables, self._pending, self.tokens, self.documents):
            held.pop(window, None)
        for key in [key for key in self._known if key[0] == window]:
            del self._known[key]

    def _resolve(self, window: int) -> None:
        """Move a window's counts by id to its counts by word."""
        for key in [key for key in self._known if key[0] == window]:
            ids, *counted = self._known.pop(key).sums()
            if len(ids):
                words = pa.array(self._names(ids), pa.string())
                self._append(window, _columns(key[1], words, counted))

    def _append(self, window: int, table: pa.Table) -> None:
        self._tables.setdefault(window, []).append(table)
        self._pending[window] = self._pending.get(window, 0) + table.num_rows
        merged = self._tables[window][0].num_rows
        if self._pending[window] > max(_MERGE_ROWS, merged):
            self._merge(window)

    def _merge(self, window: int) -> None:
        held = self._tables.get(window)
        if not held or (len(held) == 1 and self._pending[window] == 0):
            return
        self._tables[window] = [summed(pa.concat_tables(held))]
        self._pending[window] = 0


def summed(table: pa.Table) -> pa.Table:
    """Each (source, word) once."""
    # Columns off the wire may lie unaligned; combined ones do not.
    grouped = table.combine_chunks().group_by(["source", "word"])
    sums = grouped.aggregate([(name, "sum") for name in COUNT_COLUMNS])
    columns = [sums[n] for n in ("source", "word", *(f"{name}_sum" for name in COUNT_COLUMNS))]
    return pa.table(columns, schema=_SCHEMA).combine_chunks()


def as_word_counts(tables: Mapping[int, pa.Table]) -> WordCounts:
    """Windows' counts by their starts as a record."""
    parts = [
        table.append_column("window", pa.array(np.full(table.num_rows, start)))
        for start, table in {0: _SCHEMA.empty_table(), **tables}.items()
    ]
    whole = pa.concat_tables(parts)
    return WordCounts(
        whole["word"].to_pylist(),
        whole["source"].to_pylist(),
        *(whole[name].to_numpy() for name in ("window", *COUNT_COLUMNS)),
    )
