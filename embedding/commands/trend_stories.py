"""`yeoron trends stories`: what happened in a window, as text for the terminal or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from embedding.commands.common import console, print_line
from embedding.trends.plain import to_plain
from embedding.trends.rows import TrendReport
from embedding.trends.stories import StoryDocuments, story_documents
from embedding.trends.storytext import story_lines
from embedding.trends.table import as_json as to_json

if TYPE_CHECKING:
    from embedding.snapshots.evidence import EvidenceStore


def print_stories(
    report: TrendReport,
    evidence: EvidenceStore | None,
    limit: int,
    *,
    as_json: bool,
    last: Callable[[], str] = str,
) -> None:
    """All stories as JSON, or the significant ones as text.

    evidence  addresses of documents; None where the snapshots are of another place
    last      which window had a story last: a sentence for where there is none
    """
    every = report.stories if as_json else report.significant_stories()
    chosen = every[:limit]
    seen = [story_documents(one, report, evidence) for one in chosen]
    if as_json:
        rows = [{**to_plain(one), **_plain(where)} for one, where in zip(chosen, seen, strict=True)]
        head = {"snapshot": report.snapshot, "compared_with": report.compared_with}
        sys.stdout.write(to_json({**head, "notes": report.notes, "stories": rows}))
        return
    before = report.compared_with.label if report.compared_with else "nothing"
    console.print(f"stories · {report.snapshot.label} against {before}", style="bold")
    for note in report.notes:
        console.print(escape(note.text), soft_wrap=True)
    if not chosen:
        console.print("Nothing stands out: no change is larger than chance alone could give.")
        if sentence := last():
            print_line(sentence)
    for at, (one, where) in enumerate(zip(chosen, seen, strict=True), start=1):
        title, *lines = story_lines(one, where)
        console.print()
        print_line(f"{at}. {title}", "bold")
        for line in lines:
            print_line(line)
    rest = len(every) - len(chosen)
    if rest > 0:
        console.print(f"{rest:,} more: --limit {limit + rest}")


def _plain(where: StoryDocuments | None) -> dict[str, Any]:
    """The days and addresses of a story in JSON; null and none where they are not kept."""
    if where is None:
        return {"first_day": None, "last_day": None, "addresses": []}
    return {
        "first_day": where.first and f"{where.first:%Y-%m-%d}",
        "last_day": where.last and f"{where.last:%Y-%m-%d}",
        "addresses": [one.url for one in where.documents],
    }
