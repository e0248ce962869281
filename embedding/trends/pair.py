"""Two snapshots side by side: the words they share, their vectors and counts in one order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.nearness import frequent, unit_rows
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.replicas import UsedWords

LEAST_UNITS = 8
"""Units of documents below which a snapshot does not say how surely a use changed: those of before
2026-11-24 have four, of another meaning."""


@dataclass(frozen=True)
class SnapshotPair:
    """The words of both snapshots, most often read in the later one first.

    words            str [n]
    before, after    float32 [n, d_before], [n, d_after]: unit vectors (`in` table)
    seen_before      int64 [n]: running count when the earlier snapshot was cut
    seen_after       int64 [n]: running count when the later snapshot was cut
    used_before   how the words were used before the later window, the latest windows first
    used_after    how they were used in it; None: the snapshot does not say
    """

    words: tuple[str, ...]
    before: FloatArray
    after: FloatArray
    seen_before: IntArray
    seen_after: IntArray
    used_before: tuple[UsedWords, ...] = ()
    used_after: UsedWords | None = None

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def familiarity(self) -> IntArray:
        """int64 [n]: the smaller of both running counts; frequent words have a high one."""
        smaller: IntArray = np.minimum(self.seen_before, self.seen_after)
        return smaller

    @property
    def usage_compares(self) -> bool:
        """Whether the later snapshot says how words were used in its window and before it."""
        return bool(self.used_before) and self.used_after is not None

    def used(self, rows: IntArray) -> tuple[list[UsedWords], UsedWords]:
        """The use of some words before the window, and in it. Only where it `usage_compares`."""
        if self.used_after is None:
            raise ValueError("the later snapshot does not say how words were used")
        return [words.take(rows) for words in self.used_before], self.used_after.take(rows)

    def frequent(self, n: int) -> IntArray:
        """int64 [≤ n]: rows of the n words of highest familiarity, by row."""
        return frequent(self.familiarity, n)


def pair_of(before: Snapshot, after: Snapshot) -> SnapshotPair:
    """Line up two snapshots; a word with a vector of zeros in either is left out."""
    column = after.word_column
    rows_before = before.rows(column)
    here = np.flatnonzero(rows_before >= 0)
    here = here[np.argsort(-np.asarray(after.counts)[here], kind="stable")]
    rows_before = rows_before[here]
    old, new = unit_rows(before.vectors[rows_before]), unit_rows(after.vectors[here])
    alive = np.flatnonzero(old.any(axis=1) & new.any(axis=1))
    here, rows_before = here[alive], rows_before[alive]
    used_before, used_after = _times(before, after, here)
    return SnapshotPair(
        words=tuple(column.take(pa.array(here)).to_pylist()),
        before=old[alive],
        after=new[alive],
        seen_before=np.asarray(before.counts)[rows_before].astype(np.int64),
        seen_after=np.asarray(after.counts)[here].astype(np.int64),
        used_before=used_before,
        used_after=used_after,
    )


def _times(
    before: Snapshot, after: Snapshot, rows: IntArray
) -> tuple[tuple[UsedWords, ...], UsedWords | None]:
    """The use of words before a window and in it, by vectors that count all of it alike.

    Nothing where the earlier snapshot is not the one just before it.
    """
    usage = after.usage
    apart = usage_apart(before, after)
    if usage is None or not usage.reread or apart or usage.pairs.shape[1] < LEAST_UNITS:
        return (), None
    now, *earlier = (UsedWords(part, rows) for part in usage.reread if len(part))
    now = replace(now, usage=replace(now.usage, busiest=usage.busiest))
    return tuple(earlier), now


def usage_apart(before: Snapshot, after: Snapshot) -> bool:
    """Whether the later snapshot says how words were used, but not by vectors of the earlier one.

    Its sums are of its own window, of the one just before it and of all older ones together.
    """
    parent = after.manifest.parent
    # An amended window has another id, and is the same window still.
    window = None if parent is None else parent.rpartition("-")[0]
    return after.usage is not None and window not in (None, before.manifest.window.label)
