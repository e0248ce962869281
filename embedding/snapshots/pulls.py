"""Which contexts pulled the words of a snapshot: what stands beside them more or less than before.

contexts.arrow  word and context int32 (rows of vectors.arrow), before and after float32 (shares of
                the word's pairs), share float32 (of its shift; `worker/usage`), sorted by
                word; only in snapshots whose server was told of them
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from embedding.kernel.errors import SnapshotError
from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.files import write_batch

CONTEXTS_FILE = "contexts.arrow"


@dataclass(frozen=True)
class ContextPulls:
    """A row a word and context, m of them.

    words, contexts  int64 [m], rows of the snapshot; words increase
    before, after    float32 [m], shares of the word's pairs; share: float32 [m], of its shift
    """

    words: IntArray
    contexts: IntArray
    before: FloatArray
    after: FloatArray
    share: FloatArray

    def of(self, row: int) -> range:
        """Places of a word's contexts."""
        first, last = np.searchsorted(self.words, [row, row + 1])
        return range(int(first), int(last))


def check(pulls: ContextPulls, words: int, where: str) -> None:
    """Refuse what does not belong to a snapshot of so many words; raises SnapshotError."""
    rows = np.concatenate([pulls.words, pulls.contexts])
    figures = np.stack([pulls.before, pulls.after, pulls.share])
    fits = len(pulls.words) == len(pulls.contexts) == figures.shape[1]
    fits = fits and bool(np.isfinite(figures).all()) and bool((np.diff(pulls.words) >= 0).all())
    if not fits or (len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < words):
        raise SnapshotError(f"{where}: the contexts of words do not fit {words} words.")


def write(path: Path, pulls: ContextPulls) -> None:
    """Write contexts.arrow as one record batch."""
    batch = pa.record_batch(
        {
            "word": pa.array(pulls.words.astype(np.int32)),
            "context": pa.array(pulls.contexts.astype(np.int32)),
            "before": pa.array(pulls.before.astype(np.float32)),
            "after": pa.array(pulls.after.astype(np.float32)),
            "share": pa.array(pulls.share.astype(np.float32)),
        }
    )
    write_batch(path, batch)


def read(batch: pa.RecordBatch) -> ContextPulls:
    """Inverse of `write`."""
    return ContextPulls(
        batch.column("word").to_numpy().astype(np.int64),
        batch.column("context").to_numpy().astype(np.int64),
        *(batch.column(name).to_numpy() for name in ("before", "after", "share")),
    )
