"""The report of one window against any other, not only the one before it."""

from __future__ import annotations

from dataclasses import dataclass

from embedding.kernel.errors import InputError
from embedding.kernel.records import SnapshotRef
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.config import TrendsConfig
from embedding.trends.material import Snapshots
from embedding.trends.report import build_report
from embedding.trends.rows import TrendReport


@dataclass(frozen=True)
class TwoSnapshots:
    """A store that holds two snapshots alone."""

    before: Snapshot
    after: Snapshot

    def list(self) -> list[SnapshotRef]:
        """Both, the earlier first."""
        return [self.before.ref, self.after.ref]

    def open(self, id: str = "latest") -> Snapshot:  # noqa: A002 - as the store names it
        """One of them; the later one is the latest."""
        return self.before if id == self.before.id else self.after


def build_between(
    store: Snapshots, before: str, after: str, config: TrendsConfig | None = None
) -> TrendReport:
    """Compare snapshot `after` with the earlier snapshot `before`.

    Words that are born were in neither the vocabulary nor the texts of `before`. Raises InputError
    unless `before` has the earlier window; SnapshotError when one cannot be read.
    """
    old, new = store.open(before), store.open(after)
    if old.ref.window_start >= new.ref.window_start:
        raise InputError(
            f"{old.manifest.window.label} does not lie before {new.manifest.window.label}; "
            "the earlier window comes first."
        )
    return build_report(TwoSnapshots(old, new), new.id, config)
