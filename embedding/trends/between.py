"""The report of one window against any other, not only the one before it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from embedding.kernel.errors import InputError
from embedding.kernel.records import SnapshotRef
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.config import TrendsConfig
from embedding.trends.material import Snapshots, lineage
from embedding.trends.report import NOT_ADJACENT, build_report
from embedding.trends.rows import TrendReport


@dataclass(frozen=True)
class TwoSnapshots:
    """A store that holds two snapshots alone."""

    before: Snapshot
    after: Snapshot

    def list(self) -> list[SnapshotRef]:
        return [self.before.ref, self.after.ref]

    def open(self, id: str = "latest") -> Snapshot:
        return self.before if id == self.before.id else self.after


def build_between(
    store: Snapshots, before: str, after: str, config: TrendsConfig | None = None
) -> TrendReport:
    """Compare snapshot `after` with the earlier snapshot `before`.

    Words that are born were in neither the vocabulary nor the texts of `before`. Which words
    changed in meaning shows only between neighbours: else the note NOT_ADJACENT says so and names
    the pairs of neighbours. Raises InputError unless `before` has the earlier window; SnapshotError
    when one cannot be read.
    """
    old, new = store.open(before), store.open(after)
    if old.ref.window_start >= new.ref.window_start:
        raise InputError(
            f"{old.manifest.window.label} does not lie before {new.manifest.window.label}; "
            "the earlier window comes first."
        )
    report = build_report(TwoSnapshots(old, new), new.id, config)
    start = old.ref.window_start
    between = [ref for ref in lineage(store.list(), new.ref) if ref.window_start > start]
    labels = [ref.label for ref in (old.ref, *between)]
    steps = "; ".join(f"{ref} {other}" for ref, other in pairwise(labels))
    notes = [
        replace(note, text=f"{note.text[:-1]}: {steps}.") if note.code == NOT_ADJACENT else note
        for note in report.notes
    ]
    return replace(report, notes=tuple(notes))


def refuse_apart(report: TrendReport) -> None:
    """InputError where windows are no neighbours, so that nothing is known of meanings."""
    for note in report.notes:
        if note.code == NOT_ADJACENT:
            raise InputError(note.text)
