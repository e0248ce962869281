"""The sentence that leads from a window without findings to the last one that had some."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from embedding.kernel.errors import SnapshotError

if TYPE_CHECKING:
    from embedding.kernel.records import SnapshotRef
    from embedding.snapshots.store import SnapshotStore
    from embedding.trends.config import TrendsConfig
    from embedding.trends.rows import TrendReport

COMPUTED = 3
"""Reports that are computed for it; of windows further back only finished ones are read."""
_WORDS = {
    "moved": "a word changed in meaning",
    "born": "a new word",
    "risen": "a word used more often",
    "fallen": "a word used less often",
}
"""Findings of a ranking."""


def last_found(report: TrendReport, name: str, options: str, known: KnownReports) -> str:
    """Which window before that of `report` had findings last, and the command that shows it.

    name     `stories` for findings of any kind, or a ranking for those in it
    options  of the call, as one types them
    known    the reports of the store

    Empty where `report` has some or no window was before it.
    """
    from embedding.trends.findings import findings_of, last_with_findings

    def own(one: TrendReport) -> int:
        return findings_of(one) if name == "stories" else findings_of(one, (name,))

    label = report.snapshot.label
    before = known.before(datetime.fromisoformat(report.snapshot.start))
    if own(report) or not before:
        return ""
    what = "a finding" if name == "stories" else _WORDS[name]
    found = last_with_findings(before, known, own)
    if found is not None:
        return (
            f"The last window with {what} is {found.snapshot.label} ({own(found):,}): "
            f"yeoron trends {name}{options} --id {found.snapshot.id}"
        )
    whose = " whose report is known" if known.missing else ""
    sentences = [f"No window before {label}{whose} has {what}."]
    other = None if name == "stories" else last_with_findings(before, known)
    if other is not None:
        sentences.append(
            f"The last one with another finding is {other.snapshot.label} "
            f"({findings_of(other):,}): yeoron trends stories{options} --id {other.snapshot.id}"
        )
    if known.missing:
        sentences.append("yeoron trends report --all writes those of all windows.")
    return " ".join(sentences)


class KnownReports:
    """Finished reports, and COMPUTED others; `missing` counts the windows that have neither."""

    def __init__(self, store: SnapshotStore, config: TrendsConfig, folder: Path) -> None:
        from embedding.trends.finished import FinishedReports

        self._store, self._config, self._folder = store, config, folder
        self._refs = store.list()
        self._finished = FinishedReports(self._refs, config, folder)
        self._known: dict[str, TrendReport | None] = {}
        self._computed = 0
        self.missing = 0

    def before(self, start: datetime) -> list[SnapshotRef]:
        """The snapshots of earlier windows, oldest first."""
        return [ref for ref in self._refs if ref.window_start < start]

    def __call__(self, ref: SnapshotRef) -> TrendReport | None:
        """The report of a snapshot; None where it is not known."""
        if ref.id not in self._known:
            self._known[ref.id] = self._finished.report(ref.id) or self._compute(ref)
        return self._known[ref.id]

    def _compute(self, ref: SnapshotRef) -> TrendReport | None:
        from embedding.trends.report import build_report

        if self._computed == COMPUTED:
            self.missing += 1
            return None
        self._computed += 1
        try:
            return build_report(self._store, ref.id, self._config, self._folder)
        except SnapshotError:
            return None


def options(snapshots: Path | None) -> str:
    """The option that names a store of its own, as one types it."""
    return "" if snapshots is None else f" --snapshots {shlex.quote(str(snapshots))}"
