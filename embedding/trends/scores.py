"""The figures of every word that was compared, not only of those a report shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from embedding.kernel.records import IntArray
from embedding.trends.config import TrendsConfig
from embedding.trends.material import ReportInput, signs
from embedding.trends.scoretable import COLUMNS, SCHEMA, WordScores
from embedding.trends.significance import TestArray
from embedding.trends.storage import key_of


def word_scores(
    words: Sequence[str],
    figures: dict[str, TestArray],
    order: IntArray,
    material: ReportInput,
    config: TrendsConfig,
    limit: float,
) -> WordScores:
    """All words that were compared, n of them.

    figures  z, p, q, shift and expected, float [n] each
    order    int64 [n], the words by rank
    limit    q up to which a word is called
    """
    ordered = [words[at] for at in order]
    columns: dict[str, Any] = {"rank": np.arange(1, len(words) + 1), "word": ordered}
    columns |= {name: values[order].astype(np.float64) for name, values in figures.items()}
    columns["significant"] = columns["q"] <= limit
    for suffix, window in (("_before", material.past[-1]), ("", material.now)):
        columns[f"count{suffix}"] = window.counts_of(ordered)
        columns[f"documents{suffix}"] = window.documents_of(ordered)
    table = pa.table({name: columns[name] for name in COLUMNS}, schema=SCHEMA)
    return WordScores(table, _key(material, config))


def no_scores(material: ReportInput, config: TrendsConfig) -> WordScores:
    """Where no word was compared."""
    return WordScores(SCHEMA.empty_table(), _key(material, config))


def _key(material: ReportInput, config: TrendsConfig) -> str:
    return key_of([snapshot.ref for snapshot in (*material.earlier, material.snapshot)], config)


def why_not(words: Sequence[str], material: ReportInput, config: TrendsConfig) -> dict[str, str]:
    """Why each of `words`, none of which was compared, was not: a sentence without a full stop."""
    if not words:
        return {}
    now = material.now.counts_of(words)
    skipped = signs(words, config)
    return {
        word: _reason(word, int(now[at]), bool(skipped[at]), material, config)
        for at, word in enumerate(words)
    }


def _reason(word: str, now: int, sign: bool, material: ReportInput, config: TrendsConfig) -> str:
    if not material.earlier:
        return "there is no window before to compare with"
    before, after = material.earlier[-1], material.snapshot
    labels = before.manifest.window.label, after.manifest.window.label
    indices = [snapshot.index(word) for snapshot in (before, after)]
    if indices == [None, None]:
        return f"neither {labels[0]} nor {labels[1]} knows it"
    for row, label in zip(indices, labels, strict=True):
        if row is None:
            return f"{label} does not know it"
    if sign:
        return "a number, a sign or a mark, which is never ranked (trends.skip)"
    seen = int(np.asarray(before.counts)[indices[0]])
    if now < config.min_count or seen < config.min_count:
        return (
            f"too rare: {now:,} mentions in {labels[1]} and {seen:,} up to {labels[0]}, "
            f"{config.min_count} of each are needed (trends.min_count)"
        )
    return "it was not compared; the notes of the report say more"
