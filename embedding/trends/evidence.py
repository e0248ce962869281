"""The evidence of a ranked word: counts before and now, sources, neighbours, series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedding.kernel.records import IntArray
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.config import TrendsConfig
from embedding.trends.expressions import unlisted
from embedding.trends.frequency import Frequency
from embedding.trends.likeness import UsedAlike
from embedding.trends.material import ReportInput
from embedding.trends.rows import NeighbourRow, SourceRate, TrendRow
from embedding.trends.significance import TestArray

LEAST_ALIKE = 20
"""Documents of a window below which their words do not say how a word is used in it."""


def counts_of(words: Sequence[str], now: Frequency, before: Frequency) -> list[dict[str, Any]]:
    """Fields of a TrendRow that say how often each word was counted in two windows."""
    sources = tuple(sorted({*now.sources, *before.sources}))
    count1, held1 = now.take(words, sources)
    count0, held0 = before.take(words, sources)
    read1, read0 = now.totals(sources)[1], before.totals(sources)[1]
    rate1, rate0 = now.rate(words), before.rate(words)
    wrote1, wrote0 = (window.authors_of(words) for window in (now, before))
    return [
        {
            "count_before": int(count0[place].sum()),
            "count": int(count1[place].sum()),
            "documents_before": int(held0[place].sum()),
            "documents": int(held1[place].sum()),
            "authors_before": wrote0[place],
            "authors": wrote1[place],
            "rate_before": float(rate0[place]),
            "rate": float(rate1[place]),
            "sources": _by_source(sources, held0[place], held1[place], read0, read1),
        }
        for place in range(len(words))
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


@dataclass(frozen=True)
class NearWords:
    """Words near to another one, with how near, nearest first.

    by_use  by its use in the window alone; else they are the model's, which keeps what was learnt
            of windows before. Lists of the two kinds do not compare
    """

    words: tuple[tuple[str, float], ...]
    by_use: bool


def neighbours_then_now(
    old: NearWords, new: NearWords, *, significant: bool
) -> tuple[tuple[NeighbourRow, ...], tuple[NeighbourRow, ...]]:
    """The near words of both times; of a word that changed, `changed` marks those of one time."""
    then, today = {w for w, _ in old.words}, {w for w, _ in new.words}
    marked = significant and old.by_use == new.by_use and bool(then and today)
    return (
        tuple(NeighbourRow(w, s, marked and w not in today) for w, s in old.words),
        tuple(NeighbourRow(w, s, marked and w not in then) for w, s in new.words),
    )


def window_neighbours(snapshot: Snapshot, word: str, n: int, alike: UsedAlike) -> NearWords:
    """The n words that were used in a snapshot's window as `word` was, with the cosine.

    The model's nearest words where fewer than `LEAST_ALIKE` documents of the window use the word,
    or the snapshot does not say how words were used. None of a word that the window does not use,
    and while vectors cannot be read.
    """
    likeness, row = alike.of(snapshot), snapshot.index(word)
    if snapshot.unreadable is not None or row is None:
        return NearWords((), by_use=likeness is not None)
    documents = np.inf if likeness is None else likeness.documents(row)
    if likeness is None or 0 < documents < LEAST_ALIKE:
        return NearWords(tuple(nearest_words(snapshot, word, n)), by_use=False)
    return NearWords(tuple(likeness.near(row, n)), by_use=True)


def nearest_words(snapshot: Snapshot, word: str, n: int) -> list[tuple[str, float]]:
    """The n nearest words; none without a vector for the word or while vectors cannot be read."""
    row = snapshot.index(word)
    if snapshot.unreadable is not None or row is None or not np.any(snapshot.vectors[row]):
        return []
    return snapshot.neighbours(word, n)


SERIES_WINDOWS = 12
"""Windows in a row's series of frequencies."""


class RowWriter:
    """Adds counts, sources, neighbours and series to ranked words."""

    def __init__(self, material: ReportInput, once: ReportInput, config: TrendsConfig) -> None:
        """once: `material` with the documents that are tested (`copies.py`)."""
        self._material = material
        self._once = once
        self._config = config
        self._alike = UsedAlike(config)
        # Read when they are asked for, as `material.past` keeps the last ones asked.
        past = len(material.past)
        self._shown = range(max(0, past + 1 - SERIES_WINDOWS), past)
        labels = (*material.earlier, material.snapshot)[-SERIES_WINDOWS:]
        self.windows = tuple(snapshot.manifest.window.label for snapshot in labels)

    def rows(self, words: Sequence[str], values: Sequence[dict[str, object]]) -> list[TrendRow]:
        """One row for each word; `values` are the figures of its ranking."""
        past, now = self._material.past, self._material.now
        rates = [*(past[at].rate(words) for at in self._shown), now.rate(words)]
        series = np.stack(rates, axis=1)
        counts = self._counts(words)
        phrases = self._material.snapshot.phrases
        before = unlisted(words, self._material).before
        times = self._material.earlier[-1], self._material.snapshot
        n = self._config.shown_neighbours
        out = []
        for at, word in enumerate(words):
            old, new = (window_neighbours(s, word, n, self._alike) for s in times)
            if old.words and new.words and old.by_use != new.by_use:
                old, new = (
                    NearWords(tuple(nearest_words(s, word, n)), by_use=False) for s in times
                )
            significant = bool(values[at]["significant"])
            then, today = neighbours_then_now(old, new, significant=significant)
            fields: dict[str, object] = {**counts[at], **values[at]}
            out.append(
                TrendRow(
                    word=word,
                    neighbours_before=then,
                    neighbours=today,
                    by_use=new.by_use,
                    series=tuple(float(v) for v in series[at]),
                    parts=phrases[word].parts if word in phrases else (),
                    written_before=bool(before[at]),
                    **fields,  # type: ignore[arg-type]
                )
            )
        return out

    def _counts(self, words: Sequence[str]) -> list[dict[str, object]]:
        whole, once = (
            counts_of(words, part.now, part.past[-1]) for part in (self._material, self._once)
        )
        return [
            {
                **all_of,
                "documents_deduplicated_before": distinct["documents_before"],
                "documents_deduplicated": distinct["documents"],
            }
            for all_of, distinct in zip(whole, once, strict=True)
        ]


def top(chosen: IntArray, score: TestArray, words: Sequence[str], n: int) -> list[int]:
    """The n of `chosen` with the highest score, equal ones by word."""
    order = sorted(chosen.tolist(), key=lambda i: (-round(float(score[i]), 9), words[i]))
    return order[:n]
