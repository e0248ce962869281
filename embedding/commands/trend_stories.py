"""`yeoron trends stories`: what happened in a window, as text for the terminal or as JSON."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from embedding.commands.common import console
from embedding.trends.plain import to_plain
from embedding.trends.rows import ROLES, Story, TrendReport
from embedding.trends.table import as_json as to_json
from embedding.trends.table import shortened

if TYPE_CHECKING:
    from embedding.snapshots.evidence import EvidenceStore
    from embedding.trends.stories import StoryDocuments

_SHOWN = 8
"""Words of one role in the terminal."""


def print_stories(
    report: TrendReport, evidence: EvidenceStore | None, limit: int, *, as_json: bool
) -> None:
    """All stories as JSON, or the significant ones as text.

    evidence  addresses of documents; None where the snapshots are of another place
    """
    every = report.stories if as_json else report.significant_stories()
    chosen = every[:limit]
    seen = [_sightings(report, one, evidence) for one in chosen]
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
    for at, (one, where) in enumerate(zip(chosen, seen, strict=True), start=1):
        _print(at, one, where)
    rest = len(every) - len(chosen)
    if rest > 0:
        console.print(f"{rest:,} more: --limit {limit + rest}")


def _print(at: int, story: Story, where: StoryDocuments | None) -> None:
    title = " · ".join(shortened(word) for word in story.title)
    console.print(f"\n[bold]{at}. {escape(title)}[/bold]   q {story.q:.2g}")
    for role, words in story.by_role().items():
        more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
        named = ", ".join(map(shortened, words[:_SHOWN])) + more
        console.print(escape(f"   {ROLES[role]}: {named}"), soft_wrap=True)
    days = ""
    if where is not None and where.first is not None and where.last is not None:
        days = f"; written {where.first:%Y-%m-%d} to {where.last:%Y-%m-%d}"
    authors = " by few authors" if story.few_authors else ""
    console.print(
        escape(
            f"   since {story.first}{days}; {story.documents:,} documents{authors}; "
            f"{', '.join(map(shortened, story.sources))}"
        ),
        soft_wrap=True,
        highlight=False,
    )
    for one in () if where is None else where.documents:
        console.print(f"   {one.published:%Y-%m-%d}  {one.url}", markup=False, soft_wrap=True)


def _sightings(
    report: TrendReport, story: Story, evidence: EvidenceStore | None
) -> StoryDocuments | None:
    from embedding.trends.stories import sightings

    window = report.window_of(story)
    if evidence is None or window is None:
        return None
    start, end = datetime.fromisoformat(window.start), datetime.fromisoformat(window.end)
    return sightings(story, evidence, start, end)


def _plain(where: StoryDocuments | None) -> dict[str, Any]:
    """The days and addresses of a story in JSON; null and none where they are not kept."""
    if where is None:
        return {"first_day": None, "last_day": None, "addresses": []}
    return {
        "first_day": where.first and f"{where.first:%Y-%m-%d}",
        "last_day": where.last and f"{where.last:%Y-%m-%d}",
        "addresses": [one.url for one in where.documents],
    }
