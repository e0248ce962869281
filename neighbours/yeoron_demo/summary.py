"""What a demo run did, part by part, whether each part really ran, and what its windows show: only
what can hardly be chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from embedding.kernel.errors import InputError
from embedding.settings import Settings
from embedding.show.terminal import story_lines
from embedding.trends.config import TrendsConfig
from embedding.trends.contrast import disagreement
from embedding.trends.material import Snapshots
from embedding.trends.plain import to_plain
from embedding.trends.rows import RANKINGS, TrendReport, sureness
from embedding.trends.storage import load, saved

WORDS_LISTED = 10
PLANTED_PART = "planted"
"""The part of a demo that was right only where it found what was planted."""
STORIES = 3
"""Stories shown of each window."""


@dataclass(frozen=True)
class Check:
    """One part of the platform: did it really run, and by what that is known."""

    part: str
    ran: bool
    evidence: str


def evaluations(settings: Settings) -> dict[str, dict[str, float]]:
    """The metrics of each snapshot that MLflow has a run of, by its id."""
    base = f"{settings.tracking_address}/api/2.0/mlflow"
    with httpx.Client(timeout=20, trust_env=False) as client:
        experiments = client.get(f"{base}/experiments/search", params={"max_results": 100})
        ids = [e["experiment_id"] for e in experiments.json().get("experiments", [])]
        answer = client.post(
            f"{base}/runs/search", json={"experiment_ids": ids, "max_results": 1000}
        )
    by_snapshot = {}
    for run in answer.json().get("runs", []):
        data = run["data"]
        tags = {tag["key"]: tag["value"] for tag in data.get("tags", [])}
        snapshot = tags.get("yeoron.key")
        if snapshot and tags.get("yeoron.kind") == "snapshot":
            metrics = {m["key"]: m["value"] for m in data.get("metrics", [])}
            by_snapshot[snapshot] = metrics
    return by_snapshot


def reports(settings: Settings) -> dict[str, TrendReport]:
    """The trend report of each snapshot, by snapshot id."""
    folder = settings.paths.trends
    return {name: load(folder, name) for name in saved(folder)}


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
        contrast = disagreement(store, config)
    except InputError:
        return []
    return [{"word": row.use.word, "q": row.use.q, "source": row.source} for row in contrast.uses]


def listed(rows: list[dict[str, Any]], most: int) -> str:
    """Words with how sure they are; of more than `most` the number of the others."""
    if not rows:
        return "–"
    shown = [f"{row['word']} ({sureness(row['q'])})" for row in rows[:most]]
    rest = len(rows) - len(shown)
    return ", ".join(shown) + (f", {rest:,} more" if rest else "")


def _headline(metric: str) -> bool:
    """The figures that fit a line: likelihood, PIP loss, gold sets."""
    whole_set = metric.startswith(("similarity/", "analogy/")) and metric.count("/") == 1
    return whole_set or metric in {"nll", "pip"}


def what_happened(windows: Iterable[TrendReport]) -> list[str]:
    """The surest stories of each window, under its name; nothing of a window without any."""
    lines = []
    for report in windows:
        stories = report.significant_stories()
        if stories:
            lines.append(report.snapshot.label)
        for story in stories[:STORIES]:
            lines += [f"   {line}" for line in story_lines(story)]
        rest = len(stories) - STORIES
        if rest > 0:
            lines.append(f"   {rest:,} more: yeoron trends stories --id {report.snapshot.id}")
    return lines


def nothing_else(summary: dict[str, Any]) -> list[str]:
    """How sources differ, and of how many words nothing else can be said."""
    compared = sum(row["compared"]["moved"] for row in summary["trends"])
    by_source: dict[str, list[dict[str, Any]]] = {}
    for row in summary["contrasts"]:
        by_source.setdefault(row["source"], []).append(row)
    lines = [
        f"{source} uses differently from all others: {listed(rows, WORDS_LISTED)}"
        for source, rows in by_source.items()
    ]
    if not lines:
        lines.append("No word is surely used differently by one of the sources.")
    lines.append(f"No other change stands out among {compared:,} comparisons.")
    return lines


def print_checks(checks: Iterable[dict[str, Any]], console: Console) -> None:
    """What did not run or was not right; what was found, where that was right."""
    for check in checks:
        if not check["ran"]:
            console.print(f"✗ {check['part']}: {check['evidence']}", style="red", markup=False)
        elif check["part"] == PLANTED_PART:
            console.print(f"✓ {check['evidence']}", style="green", markup=False)


def print_summary(
    summary: dict[str, Any], windows: Sequence[TrendReport], console: Console
) -> None:
    """The summary as a person reads it.

    windows  reports of the windows, oldest first
    """
    sources = Table("source", "documents", "tokens", "lag p50", "lag p95", title="Sources")
    for name, row in summary["sources"].items():
        sources.add_row(
            name,
            f"{row['documents']:,}",
            f"{row['tokens']:,}",
            f"{row['lag_p50_s'] or 0:.1f} s",
            f"{row['lag_p95_s'] or 0:.1f} s",
        )
    console.print(sources)
    snapshots = Table("window", "snapshot", "words", "documents", "evaluation", title="Snapshots")
    for row in summary["snapshots"]:
        chosen = {k: v for k, v in row["evaluation"].items() if _headline(k)}
        figures = ", ".join(f"{k} {v:.3f}" for k, v in sorted(chosen.items()))
        snapshots.add_row(
            row["window"], row["id"], f"{row['words']:,}", f"{row['documents']:,}", figures
        )
    console.print(snapshots)
    stories = what_happened(windows)
    if stories:
        console.print("What happened", style="bold")
    for line in stories:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for line in nothing_else(summary):
        console.print(line, markup=False)
    lag = summary["lag"]
    console.print(
        f"{summary['documents']:,} documents and {summary['tokens']:,} words were read, "
        f"{summary['tokens_trained']:,} of these learnt, in {summary['seconds']:.0f} s, the first "
        f"month after {summary['first_month_seconds']:.0f} s. "
        f"Fastest: {summary['words_per_second']:,.0f} words/s. "
        f"From publication to the model: {lag['p50_s'] or 0:.1f} s (median), "
        f"{lag['p95_s'] or 0:.1f} s (95 %). Peak memory: {summary['peak_memory_gb']:.1f} GB."
    )
    print_checks(summary["checks"], console)
    for note in summary["notes"]:
        console.print(f"· {note}", markup=False)
    console.print()
    for name, address in summary["addresses"].items():
        console.print(f"[bold]{name:<8}[/bold] {address}", highlight=False, soft_wrap=True)
