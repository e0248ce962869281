"""Build and save the trend report of one snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedding_airflow.assets import TRENDS
from embedding_airflow.operators.base import YeoronOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.settings import Settings
    from embedding.trends.rows import TrendReport

_SHOWN = 10


class BuildTrendReport(YeoronOperator):
    """Compares `snapshot_id` with the snapshots before it and saves the report.

    Result: `id`, `window`, `notes` and the ten first rows of `moved`, `born` and `risen`, each a
    word with its figures. Event on the asset `trends`: `id`.
    """

    def __init__(self, *, snapshot_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.snapshot_id = snapshot_id

    def work(self, settings: Settings, context: Context) -> dict[str, Any]:
        """Build, save, summarise."""
        from embedding.snapshots.store import SnapshotStore
        from embedding.trends.report import build_report
        from embedding.trends.storage import save

        store = SnapshotStore(str(settings.paths.snapshots))
        report = build_report(store, self.snapshot_id, settings.trends)
        save(report, settings.paths.trends)
        for note in report.notes:
            self.log.warning("%s", note.text)
        self.log.info(
            "Window %s: %d moved, %d new, %d risen words.",
            report.snapshot.label,
            len(report.moved),
            len(report.born),
            len(report.risen),
        )
        context["outlet_events"][TRENDS].extra = {"id": self.snapshot_id}
        return summary_of(report)


def summary_of(report: TrendReport) -> dict[str, Any]:
    """What is small enough for an XCom and a person wants to see there."""
    rankings = {"moved": report.moved, "born": report.born, "risen": report.risen}
    return {
        "id": report.snapshot.id,
        "window": report.snapshot.label,
        "notes": [note.code for note in report.notes],
        **{
            name: [
                {
                    "word": row.word,
                    "score": round(row.score, 3),
                    "documents": row.documents,
                    "documents_before": row.documents_before,
                    "significant": row.significant,
                }
                for row in rows[:_SHOWN]
            ]
            for name, rows in rankings.items()
        },
    }
