"""What a demo's windows show, and nothing that may be chance: words that are surely findings."""

from __future__ import annotations

from typing import Any

from embedding.kernel.errors import InputError
from embedding.trends.config import TrendsConfig
from embedding.trends.contrast import disagreement
from embedding.trends.findings import sureness
from embedding.trends.material import Snapshots
from embedding.trends.plain import to_plain
from embedding.trends.rows import RANKINGS, TrendReport


def of_report(report: TrendReport) -> dict[str, Any]:
    """Stories and surely changed words of a window with their q, surest first; how many words were
    looked at.
    """
    return {
        "stories": to_plain(report.significant_stories()),
        "window": report.snapshot.label,
        "snapshot": report.snapshot.id,
        "compared": {kind: report.compared(kind) for kind in RANKINGS},
        **{
            kind: [{"word": row.word, "q": row.q} for row in report.significant(kind)]
            for kind in RANKINGS
        },
    }


def of_sources(store: Snapshots, config: TrendsConfig) -> list[dict[str, Any]]:
    """Words that a source of the last window surely uses otherwise than all others together."""
    try:
        found = disagreement(store, config)
    except InputError:
        return []
    return [{"word": one.use.word, "q": one.use.q, "source": one.source} for one in found.uses]


def listed(rows: list[dict[str, Any]], most: int) -> str:
    """Words with how sure they are; of more than `most` the number of the others."""
    if not rows:
        return "–"
    shown = [f"{row['word']} ({sureness(row['q'])})" for row in rows[:most]]
    rest = len(rows) - len(shown)
    return ", ".join(shown) + (f", {rest:,} more" if rest else "")
