"""The sentence that leads from a window without findings to the last one that had some."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from embedding.kernel.errors import SnapshotError

if TYPE_CHECKING:
    from embedding.kernel.records import SnapshotRef
    from embedding.settings import Settings
    from embedding.snapshots.store import SnapshotStore
    from embedding.trends.rows import TrendReport

COMPUTED = 3
"""Windows whose reports are computed for it; of those further back finished ones are read."""
_WORDS = {
    "moved": "a word changed in meaning",
    "born": "a new word",
    "risen": "a word used more often",
    "fallen": "a word used less often",
}
"""Findings of a ranking."""


def last_found(
    report: TrendReport, name: str, snapshots: Path | None, store: SnapshotStore, chosen: Settings
) -> str:
    """Which window before that of `report` had findings last, and the command that shows it.

    name       `stories` for findings of any kind, or a ranking for those in it
    snapshots  as the call named the store

    Empty where `report` has some or no window was before it.
    """
    from embedding.trends.findings import LOOKED_BACK, findings_of, last_with_findings
    from embedding.trends.finished import FinishedReports
    from embedding.trends.rows import RANKINGS

    rankings = RANKINGS if name == "stories" else (name,)
    start, refs = datetime.fromisoformat(report.snapshot.start), store.list()
    before = [ref for ref in refs if ref.window_start < start]
    if findings_of(report, rankings) or not before:
        return ""
    finished = FinishedReports(refs, chosen.trends, chosen.paths.trends)

    @cache
    def known(ref: SnapshotRef) -> TrendReport | None:
        found = finished.report(ref.id)
        if found is not None or ref not in before[-COMPUTED:]:
            return found
        from embedding.trends.report import build_report

        with suppress(SnapshotError):
            found = build_report(store, ref.id, chosen.trends, chosen.paths.trends)
        return found

    def shown(found: TrendReport, command: str, counted: Sequence[str]) -> str:
        own = "" if snapshots is None else f" --snapshots {shlex.quote(str(snapshots))}"
        return (
            f"{found.snapshot.label} ({findings_of(found, counted):,}): yeoron trends {command}"
            f"{own} --id {found.snapshot.id}"
        )

    what = _WORDS.get(name, "a finding")
    found = last_with_findings(before, known, lambda one: findings_of(one, rankings))
    if found is not None:
        return f"The last window with {what} is {shown(found, name, rankings)}"
    missing = any(known(ref) is None for ref in before[-LOOKED_BACK:])
    whose = " whose report is known" if missing else ""
    sentences = [f"No window before {report.snapshot.label}{whose} has {what}."]
    if other := last_with_findings(before, known):
        sentence = f"The last one with another finding is {shown(other, 'stories', RANKINGS)}"
        sentences.append(sentence)
    if missing:
        sentences.append("yeoron trends report --all writes those of all windows.")
    return " ".join(sentences)
