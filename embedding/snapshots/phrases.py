"""The phrases of a snapshot: how each was read before it was one word.

phrases.arrow   word string, parts list<string>, since and joined float64 (Unix seconds of event
                time), earlier int64, as `records.Phrase` says, sorted by word; only in snapshots
                that hold phrases
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from embedding.kernel.records import PHRASE, Phrase
from embedding.snapshots.files import write_batch

PHRASES = "phrases.arrow"


def write(path: Path, phrases: Iterable[Phrase]) -> None:
    """Write phrases.arrow as one record batch."""
    rows = [asdict(each) for each in sorted(phrases, key=lambda each: each.word)]
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema(PHRASE))
    write_batch(path, batch)


def read(batch: pa.RecordBatch) -> dict[str, Phrase]:
    """The phrases of a file, by word."""
    return {row["word"]: Phrase.of(row) for row in batch.to_pylist()}
