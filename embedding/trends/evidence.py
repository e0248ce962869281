"""The evidence of a ranked word: counts before and now, sources, neighbours, series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.kernel.records import IntArray
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.frequency import Frequency
from embedding.trends.likeness import UsedAlike
from embedding.trends.rows import NeighbourRow, SourceRate


@dataclass(frozen=True)
class Counts:
    """What two windows hold of one word."""

    count_before: int
    count: int
    documents_before: int
    documents: int
    authors_before: int | None
    authors: int | None
    rate_before: float
    rate: float
    sources: tuple[SourceRate, ...]


def counts_of(words: Sequence[str], now: Frequency, before: Frequency) -> list[Counts]:
    """The counts of each word in two windows."""
    sources = tuple(sorted({*now.sources, *before.sources}))
    count1, held1 = now.take(words, sources)
    count0, held0 = before.take(words, sources)
    read1, read0 = now.totals(sources)[1], before.totals(sources)[1]
    rate1, rate0 = now.rate(words), before.rate(words)
    wrote1, wrote0 = (each.authors_of(words) for each in (now, before))
    return [
        Counts(
            count_before=int(count0[at].sum()),
            count=int(count1[at].sum()),
            documents_before=int(held0[at].sum()),
            documents=int(held1[at].sum()),
            authors_before=wrote0[at],
            authors=wrote1[at],
            rate_before=float(rate0[at]),
            rate=float(rate1[at]),
            sources=_by_source(sources, held0[at], held1[at], read0, read1),
        )
        for at in range(len(words))
    ]


def _by_source(
    names: Sequence[str], held0: IntArray, held1: IntArray, read0: IntArray, read1: IntArray
) -> tuple[SourceRate, ...]:
    rows = [
        SourceRate(name, int(held0[i]), int(held1[i]), int(read0[i]), int(read1[i]))
        for i, name in enumerate(names)
        if held0[i] or held1[i]
    ]
    return tuple(sorted(rows, key=lambda row: (-row.documents, row.source)))


def neighbours_then_now(
    old: Sequence[tuple[str, float]], new: Sequence[tuple[str, float]]
) -> tuple[tuple[NeighbourRow, ...], tuple[NeighbourRow, ...]]:
    """The nearest words of both times; `changed` marks those of one time only."""
    then, today = {w for w, _ in old}, {w for w, _ in new}
    return (
        tuple(NeighbourRow(w, s, bool(new) and w not in today) for w, s in old),
        tuple(NeighbourRow(w, s, bool(old) and w not in then) for w, s in new),
    )


def window_neighbours(
    snapshot: Snapshot, word: str, n: int, alike: UsedAlike
) -> list[tuple[str, float]]:
    """The n words that were used in a snapshot's window as `word` was, with the cosine.

    None of a word that was not used in it, and while vectors cannot be read. Of a snapshot that
    does not say how words were used, those with the nearest vectors, which keep what was learnt of
    windows before.
    """
    likeness = alike.of(snapshot)
    if likeness is None:
        return nearest_words(snapshot, word, n)
    row = snapshot.index(word)
    return [] if row is None or snapshot.unreadable is not None else likeness.near(row, n)


def nearest_words(snapshot: Snapshot, word: str, n: int) -> list[tuple[str, float]]:
    """The n nearest words; none without a vector for the word or while vectors cannot be read."""
    row = snapshot.index(word)
    if snapshot.unreadable is not None or row is None or not np.any(snapshot.vectors[row]):
        return []
    return snapshot.neighbours(word, n)
