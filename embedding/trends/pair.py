"""Two snapshots side by side: the words they share, their vectors and counts in one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from embedding.nearness import unit_rows
from embedding.records import FloatArray, IntArray
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.replicas import UsedWords
from embedding.trends.significance import Figures
from embedding.trends.usage import drift
from embedding.trends.wiener import wiener

ANCHORS = 1000
ONE_SPACE = 0.5
"""Median cosine of frequent words above which two snapshots are of one model that went on."""
SETTLED = 1.0
"""A window is compared with along with the one before if the drift between both is at most this:
then chance parts them more than what the model learnt."""


REREAD_TABLES = 3
"""Texts that were read again are compared by all vectors of their contexts; other windows by output
rows alone, as input rows move with what a window learnt and what stands around words grows."""


@dataclass(frozen=True)
class Pair:
    """The words of both snapshots, most often read in the later one first.

    words            str [n]
    before, after    float32 [n, d_before], [n, d_after]: unit vectors (`in` table)
    seen_before      int64 [n]: running count when the earlier snapshot was cut
    seen_after       int64 [n]: running count when the later snapshot was cut
    used_before, used_after   how the words were used in both windows; None: it was not added up
    used_past        the same for windows before both, the latest first
    reread           used_before and used_past are texts before the later window, read again with it
    """

    words: tuple[str, ...]
    before: FloatArray
    after: FloatArray
    seen_before: IntArray
    seen_after: IntArray
    used_before: UsedWords | None = None
    used_after: UsedWords | None = None
    used_past: tuple[UsedWords, ...] = ()
    reread: bool = False

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def index(self) -> dict[str, int]:
        """Row of each word."""
        return {word: at for at, word in enumerate(self.words)}

    def rows(self, words: list[str]) -> IntArray:
        """int64: rows of those of `words` that both snapshots hold."""
        found = [self.index[word] for word in words if word in self.index]
        return np.asarray(found, dtype=np.int64)

    @cached_property
    def familiarity(self) -> IntArray:
        """int64 [n]: the smaller of both running counts; frequent words have a high one."""
        smaller: IntArray = np.minimum(self.seen_before, self.seen_after)
        return smaller

    @cached_property
    def usage_compares(self) -> bool:
        """Whether sums of usage were kept at both times, by a model that went on in one space.

        A model that was trained anew has other axes: its rows have nothing in common with those
        before, while those of one that went on have hardly turned. What was read again lies in one
        space anyway.
        """
        if self.used_before is None or self.used_after is None:
            return False
        if self.reread:
            return True
        if self.before.shape[1] != self.after.shape[1]:
            return False
        rows = self.frequent(ANCHORS)
        cosines = np.einsum("nd,nd->n", self.before[rows], self.after[rows])
        return bool(np.median(cosines) > ONE_SPACE) if len(rows) else False

    def used(self, rows: IntArray) -> list[UsedWords]:
        """The use of some words: `used_before`, `used_after`, then `used_past`; filtered.

        Only where both were added up.
        """
        return [replace(window, axes=self._axes).take(rows) for window in self._windows]

    @cached_property
    def _windows(self) -> list[UsedWords]:
        """All windows that are compared; none where one time was not added up."""
        if self.used_before is None or self.used_after is None:
            return []
        return [self.used_before, self.used_after, *self.used_past]

    @cached_property
    def _axes(self) -> tuple[Figures | None, ...]:
        top = np.arange(min(len(self), ANCHORS))
        tables = REREAD_TABLES if self.reread else 1
        return wiener([window.take(top) for window in self._windows], tables) or (None,)

    def frequent(self, n: int) -> IntArray:
        """int64 [≤ n]: rows of the n words of highest familiarity, by row."""
        if n >= len(self):
            return np.arange(len(self), dtype=np.int64)
        order = np.argsort(-self.familiarity, kind="stable")[:n]
        chosen: IntArray = np.sort(order).astype(np.int64)
        return chosen


def pair_of(before: Snapshot, after: Snapshot, past: Sequence[Snapshot] = ()) -> Pair:
    """Line up two snapshots; a word with a vector of zeros in either is left out.

    past  snapshots before both, oldest first, with whose use of words the later one is compared too
    """
    column = after.word_column
    there = before.rows(column)
    here = np.flatnonzero(there >= 0)
    here = here[np.argsort(-np.asarray(after.counts)[here], kind="stable")]
    there = there[here]
    old, new = unit_rows(before.vectors[there]), unit_rows(after.vectors[here])
    alive = np.flatnonzero(old.any(axis=1) & new.any(axis=1))
    here, there = here[alive], there[alive]
    again = _reread(after, here)
    return Pair(
        words=tuple(column.take(pa.array(here)).to_pylist()),
        before=old[alive],
        after=new[alive],
        seen_before=np.asarray(before.counts)[there].astype(np.int64),
        seen_after=np.asarray(after.counts)[here].astype(np.int64),
        used_before=again[0] if again else _used(before, there),
        used_after=_used(after, here),
        used_past=again[1:] if again else _past(past, before, column.take(pa.array(here))),
        reread=bool(again),
    )


def _reread(snapshot: Snapshot, rows: IntArray) -> tuple[UsedWords, ...]:
    """The use of words in texts before a window, read again by its tables."""
    parts = () if snapshot.usage is None else snapshot.usage.reread
    return tuple(UsedWords(part, rows) for part in parts if len(part))


def settled(windows: Sequence[Snapshot], last: Snapshot) -> list[Snapshot]:
    """Those of `windows` whose space has hardly moved up to `last`, by its most frequent words."""
    top = np.sort(np.argsort(-np.asarray(last.counts), kind="stable")[:ANCHORS])
    own = _used(last, top.astype(np.int64))
    words = last.word_column.take(pa.array(top))
    kept = []
    for one in windows:
        used = None if own is None else _used(one, one.rows(words))
        if own is None or used is None or used.usage.means.shape[2] != own.usage.means.shape[2]:
            continue
        if one.id == last.id or drift(used, own) <= SETTLED:
            kept.append(one)
    return kept


def _past(past: Sequence[Snapshot], before: Snapshot, words: pa.Array) -> tuple[UsedWords, ...]:
    """The use of words in windows that compare with the one before.

    A word that a snapshot does not hold has row -1, which no sum has.
    """
    kept = reversed(settled(past, before))
    found = (_used(snapshot, snapshot.rows(words)) for snapshot in kept)
    return tuple(one for one in found if one is not None)


def _used(snapshot: Snapshot, rows: IntArray) -> UsedWords | None:
    usage = snapshot.usage
    return None if usage is None or not len(usage) else UsedWords(usage, rows)
