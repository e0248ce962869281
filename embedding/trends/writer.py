"""From ranked words to rows with evidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedding.kernel.records import IntArray
from embedding.trends.config import TrendsConfig
from embedding.trends.evidence import counts_of, neighbours_then_now, window_neighbours
from embedding.trends.expressions import parts_of
from embedding.trends.frequency import Frequency
from embedding.trends.likeness import UsedAlike
from embedding.trends.material import ReportInput
from embedding.trends.rows import TrendRow
from embedding.trends.significance import TestArray


class RowWriter:
    """Adds counts, sources, neighbours and series to ranked words."""

    def __init__(self, material: ReportInput, before: Frequency, config: TrendsConfig) -> None:
        self._material = material
        self._before = before
        self._config = config
        self._alike = UsedAlike(config)
        # Read when they are asked for, as `material.past` keeps the last ones asked.
        self._shown = range(
            max(0, len(material.past) + 1 - config.series_windows), len(material.past)
        )
        labels = (*material.earlier, material.snapshot)[-config.series_windows :]
        self.windows = tuple(one.manifest.window.label for one in labels)

    def rows(self, words: Sequence[str], values: Sequence[dict[str, object]]) -> list[TrendRow]:
        """One row for each word; `values` are the figures of its ranking."""
        past, now = self._material.past, self._material.now
        rates = [*(past[at].rate(words) for at in self._shown), now.rate(words)]
        series = np.stack(rates, axis=1)
        counts = counts_of(words, now, self._before)
        times = self._material.earlier[-1], self._material.snapshot
        n = self._config.shown_neighbours
        out = []
        for at, word in enumerate(words):
            then, today = neighbours_then_now(
                *(window_neighbours(one, word, n, self._alike) for one in times)
            )
            parts = parts_of(word, self._material.snapshot.phrases)
            fields: dict[str, object] = {**vars(counts[at]), **values[at], "parts": parts}
            out.append(
                TrendRow(
                    word=word,
                    neighbours_before=then,
                    neighbours=today,
                    series=tuple(float(v) for v in series[at]),
                    **fields,  # type: ignore[arg-type]
                )
            )
        return out


def top(chosen: IntArray, score: TestArray, words: Sequence[str], n: int) -> list[int]:
    """The n of `chosen` with the highest score, equal ones by word."""
    order = sorted(chosen.tolist(), key=lambda at: (-round(float(score[at]), 9), words[at]))
    return order[:n]
