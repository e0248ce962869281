"""The reports that commands show: the finished one, else computed; that is said where it lasts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from embedding.commands.common import console, errors, print_line

if TYPE_CHECKING:
    from embedding.settings import Settings
    from embedding.snapshots.store import SnapshotStore
    from embedding.trends.rows import TrendReport

QUIET_S = 2.0
"""Seconds after which it is said why windows are being compared."""
_COMPUTED = (
    "There is no finished report of these windows with these settings, so they are compared now. "
    "`yeoron trends report --all` keeps those of all windows."
)
_BETWEEN = "Two windows of one's choice are compared each time they are asked for."


def report_of(
    store: SnapshotStore,
    id: str,  # noqa: A002
    chosen: Settings,
    *,
    scores: bool = False,
) -> TrendReport:
    """The finished report of a window, else computed; with `scores` the figures of all words too.

    id  of a window or a snapshot, or `latest`
    """
    from embedding.snapshots.lookup import of_window
    from embedding.snapshots.store import LATEST
    from embedding.trends.finished import FinishedReports

    refs, name = store.list(), of_window(store, id)
    if name == LATEST and refs:
        name = refs[-1].id
    finished = FinishedReports(refs, chosen.trends, chosen.paths.trends)
    found = finished.with_scores(name) if scores else finished.report(name)
    if found is not None:
        return found
    with _explained_if_slow(_COMPUTED):
        return computed(store, name, chosen, chosen.paths.trends)


def computed(
    store: SnapshotStore,
    id: str,  # noqa: A002
    chosen: Settings,
    folder: Path,
) -> TrendReport:
    """The report of a window as its snapshots say now.

    folder  of reports whose stories go on
    """
    from embedding.snapshots.lookup import of_window
    from embedding.trends.report import build_report

    with console.status("Comparing windows …"):
        snapshot = store.open(of_window(store, id))
        snapshot.verify()
        report = build_report(store, snapshot.id, chosen.trends, folder)
        if report.compared_with is not None:
            store.open(report.compared_with.id).verify()
    return report


def report_between(store: SnapshotStore, windows: tuple[str, str], chosen: Settings) -> TrendReport:
    """The report of what changed in meaning between two windows, or snapshots; InputError unless
    they are neighbours.
    """
    from embedding.snapshots.lookup import snapshot_named
    from embedding.trends.between import build_between, refuse_apart

    before, after = (snapshot_named(store, one) for one in windows)
    with _explained_if_slow(_BETWEEN), console.status("Comparing windows …"):
        for one in (before, after):
            store.open(one).verify()
        report = build_between(store, before, after, chosen.trends)
    refuse_apart(report)
    return report


@contextmanager
def _explained_if_slow(why: str) -> Iterator[None]:
    """Say on standard error why the answer is not there yet."""
    late = threading.Timer(QUIET_S, print_line, (why, "dim"), {"to": errors})
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()
