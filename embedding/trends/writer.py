"""From ranked words to rows with evidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedding.kernel.records import IntArray
from embedding.trends.config import TrendsConfig
from embedding.trends.evidence import (
    NearWords,
    counts_of,
    nearest_words,
    neighbours_then_now,
    window_neighbours,
)
from embedding.trends.expressions import parts_of
from embedding.trends.likeness import UsedAlike
from embedding.trends.material import ReportInput
from embedding.trends.rows import TrendRow
from embedding.trends.significance import TestArray

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
        self.windows = tuple(one.manifest.window.label for one in labels)

    def rows(self, words: Sequence[str], values: Sequence[dict[str, object]]) -> list[TrendRow]:
        """One row for each word; `values` are the figures of its ranking."""
        past, now = self._material.past, self._material.now
        rates = [*(past[at].rate(words) for at in self._shown), now.rate(words)]
        series = np.stack(rates, axis=1)
        counts = self._counts(words)
        times = self._material.earlier[-1], self._material.snapshot
        n = self._config.shown_neighbours
        out = []
        for at, word in enumerate(words):
            old, new = (window_neighbours(one, word, n, self._alike) for one in times)
            if old.words and new.words and old.by_use != new.by_use:
                old, new = (
                    NearWords(tuple(nearest_words(one, word, n)), by_use=False) for one in times
                )
            significant = bool(values[at]["significant"])
            then, today = neighbours_then_now(old, new, significant=significant)
            parts = parts_of(word, self._material.snapshot.phrases)
            fields: dict[str, object] = {**counts[at], **values[at], "parts": parts}
            out.append(
                TrendRow(
                    word=word,
                    neighbours_before=then,
                    neighbours=today,
                    by_use=new.by_use,
                    series=tuple(float(v) for v in series[at]),
                    **fields,  # type: ignore[arg-type]
                )
            )
        return out

    def _counts(self, words: Sequence[str]) -> list[dict[str, object]]:
        """Fields of a row that say how often each word was counted."""
        whole, once = (
            counts_of(words, each.now, each.past[-1]) for each in (self._material, self._once)
        )
        return [
            {
                **vars(all_of),
                "documents_deduplicated_before": distinct.documents_before,
                "documents_deduplicated": distinct.documents,
            }
            for all_of, distinct in zip(whole, once, strict=True)
        ]


def top(chosen: IntArray, score: TestArray, words: Sequence[str], n: int) -> list[int]:
    """The n of `chosen` with the highest score, equal ones by word."""
    order = sorted(chosen.tolist(), key=lambda at: (-round(float(score[at]), 9), words[at]))
    return order[:n]
