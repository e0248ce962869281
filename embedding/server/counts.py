"""Counting: exponential forgetting by tokens read, and exact counts by window.

Forgetting keeps every count in units that grow: one occurrence at time t weighs 2^(t/H), so that
nothing has to be touched as time passes; a count now is its sum divided by today's weight.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from embedding.exchange.wire import text_array
from embedding.records import IntArray, WordCounts

_RESCALE = 2.0**40
_MERGE_ROWS = 200_000
_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("word", pa.string()),
        ("counts", pa.int64()),
        ("documents", pa.int64()),
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


class WindowCounts:
    """Occurrences and documents by (window, source, word), for words with and without a row.

    A push is appended as it came and merged with the others only now and then, in Arrow, so that
    counting costs a push next to nothing.
    """

    def __init__(self) -> None:
        self._tables: dict[int, list[pa.Table]] = {}
        self._pending: dict[int, int] = {}
        self.tokens: dict[int, dict[str, int]] = {}
        self.documents: dict[int, dict[str, int]] = {}

    def windows(self) -> list[int]:
        """Starts (Unix seconds) of the windows that hold anything, in order."""
        return sorted({*self._tables, *self.tokens})

    def add(self, counts: WordCounts) -> None:
        """Count one push's words."""
        if not len(counts.windows):
            return
        table = pa.table(
            [
                text_array(counts.sources),
                text_array(counts.words),
                pa.array(counts.counts),
                pa.array(counts.documents),
            ],
            schema=_SCHEMA,
        )
        windows = counts.windows
        first = int(windows[0])
        if bool((windows == first).all()):
            self._append(first, table)
            return
        for window in sorted({int(w) for w in windows}):
            self._append(window, table.filter(pa.array(windows == window)))

    def note(self, window: int, source: str, documents: int, tokens: int) -> None:
        """Count one source's documents and tokens."""
        for held, n in ((self.documents, documents), (self.tokens, tokens)):
            by_source = held.setdefault(window, {})
            by_source[source] = by_source.get(source, 0) + n

    def table(self, window: int) -> pa.Table:
        """source, word, counts, documents of one window; each (source, word) once."""
        self._merge(window)
        held = self._tables.get(window)
        return held[0] if held else _SCHEMA.empty_table()

    def replace(self, window: int, table: pa.Table) -> None:
        """Set a window's counts, as a checkpoint has them."""
        self._tables[window] = [table.cast(_SCHEMA)]
        self._pending[window] = 0

    def free(self, window: int) -> None:
        """Forget a window: its snapshot was cut."""
        for held in (self._tables, self._pending, self.tokens, self.documents):
            held.pop(window, None)

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
        grouped = (
            # Columns off the wire may lie unaligned; combined ones do not.
            pa.concat_tables(held)
            .combine_chunks()
            .group_by(["source", "word"])
            .aggregate([("counts", "sum"), ("documents", "sum")])
        )
        columns = [grouped[n] for n in ("source", "word", "counts_sum", "documents_sum")]
        self._tables[window] = [pa.table(columns, schema=_SCHEMA).combine_chunks()]
        self._pending[window] = 0


def as_word_counts(table: pa.Table, window: int, keep: set[str] | None = None) -> WordCounts:
    """A window's counts as a record; `keep` leaves only these words."""
    if keep is not None:
        chosen = pa.array([word in keep for word in table["word"].to_pylist()], pa.bool_())
        table = table.filter(chosen)
    counts: IntArray = table["counts"].to_numpy()
    return WordCounts(
        words=table["word"].to_pylist(),
        sources=table["source"].to_pylist(),
        windows=np.full(table.num_rows, window, dtype=np.int64),
        counts=counts,
        documents=table["documents"].to_numpy(),
    )
