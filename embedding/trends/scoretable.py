"""The table of the figures of every word that was compared (made by moved.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from embedding.trends.plain import to_plain

_FIELDS = (
    *(("rank", pa.int32()), ("word", pa.string())),
    *((name, pa.float64()) for name in ("z", "p", "q")),
    ("significant", pa.bool_()),
    *((name, pa.float64()) for name in ("shift", "expected")),
    *((name, pa.int64()) for name in ("count_before", "count")),
    *((name, pa.int64()) for name in ("documents_before", "documents")),
)
SCHEMA = pa.schema(_FIELDS)
COLUMNS = tuple(SCHEMA.names)
_KEY = b"yeoron.key"
_BATCH = 1_000


@dataclass(frozen=True)
class WordScores:
    """The figures of n words by rank, as an Arrow table with `SCHEMA`.

    key  says of which snapshots and settings they are (`key_of`)
    """

    table: pa.Table
    key: str

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One plain row a word, some at a time; figures rounded as in a report."""
        for batch in self.table.to_batches(max_chunksize=_BATCH):
            yield from (to_plain(row) for row in batch.to_pylist())

    def of(self, words: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The rows of those of `words` that were compared, by word."""
        import pyarrow.compute as pc  # only here: settings lead here, and every process reads them

        chosen = pc.is_in(self.table.column("word"), value_set=pa.array(words, pa.string()))
        return {row["word"]: to_plain(row) for row in self.table.filter(chosen).to_pylist()}

    def to_arrow(self) -> pa.Table:
        """The table with the key in the metadata of its schema."""
        return self.table.replace_schema_metadata({_KEY: self.key.encode()})

    @classmethod
    def from_arrow(cls, table: pa.Table) -> WordScores:
        """Inverse of `to_arrow`; raises ValueError for another table."""
        key = (table.schema.metadata or {}).get(_KEY)
        if key is None or not table.schema.equals(SCHEMA):
            raise ValueError("not a table of word scores")
        return cls(table.replace_schema_metadata(None), key.decode())
