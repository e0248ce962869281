"""The sentence that leads from a window without findings to the last one that had some."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from embedding.kernel.errors import InputError, SnapshotError

if TYPE_CHECKING:
    from embedding.kernel.records import SnapshotRef
    from embedding.snapshots.store import SnapshotStore
    from embedding.trends.config import TrendsConfig
    from embedding.trends.rows import TrendReport

COMPUTED = 3
"""Reports that are computed for it; of windows further back only saved ones are read."""


def last_found(
    report: TrendReport,
    counted: Callable[[TrendReport], int],
    command: str,
    store: SnapshotStore,
    config: TrendsConfig,
    folder: Path,
) -> str:
    """Which window before that of `report` had findings last, and the command that shows it.

    counted  findings of a report; empty text where `report` has some or no window was before it
    command  `moved`, `stories` …, with the options that the call had
    folder   of saved reports
    """
    from embedding.trends.findings import last_with_findings

    start = datetime.fromisoformat(report.snapshot.start)
    before = [ref for ref in store.list() if ref.window_start < start]
    if counted(report) or not before:
        return ""
    known = KnownReports(store, config, folder)
    found = last_with_findings(before, known, counted)
    if found is not None:
        return (
            f"The last window with a finding is {found.snapshot.label} ({counted(found):,}): "
            f"yeoron trends {command} --id {found.snapshot.id}"
        )
    if known.missing:
        return (
            f"No window before {report.snapshot.label} whose report is known has a finding; "
            "yeoron trends report --all writes those of all windows."
        )
    return f"No window before {report.snapshot.label} has a finding."


class KnownReports:
    """Saved reports, and COMPUTED others; `missing` counts the windows that have neither."""

    def __init__(self, store: SnapshotStore, config: TrendsConfig, folder: Path) -> None:
        self._store, self._config, self._folder = store, config, folder
        self._computed = 0
        self.missing = 0

    def __call__(self, ref: SnapshotRef) -> TrendReport | None:
        """The report of a snapshot; None where it is not known."""
        from embedding.trends.report import build_report
        from embedding.trends.storage import load

        try:
            return load(self._folder, ref.id)
        except InputError:
            pass
        if self._computed < COMPUTED:
            self._computed += 1
            try:
                return build_report(self._store, ref.id, self._config, self._folder)
            except SnapshotError:
                return None
        self.missing += 1
        return None


def options(snapshots: Path | None) -> str:
    """The option that names a store of its own, as one types it."""
    return "" if snapshots is None else f" --snapshots {shlex.quote(str(snapshots))}"
