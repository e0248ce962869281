"""Evaluate one snapshot and log it as one MLflow run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedding_airflow.assets import EVALUATIONS
from embedding_airflow.links import DaskLink, MlflowLink, TrendsLink
from embedding_airflow.operators.base import YeoronOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.settings import Settings


class EvaluateSnapshot(YeoronOperator):
    """Computes what can be computed of `snapshot_id` and logs it to MLflow.

    Figures that cannot be had, for instance without their gold file, are skipped with a sentence
    in the log. A retry continues the MLflow run of the first try. A snapshot that does not pass
    the quality gate fails the task at once, with what is wrong; all is logged then, but no alias
    names the snapshot and the asset has no event.
    Result: `id`, `run_id`, `model_version` (of MLflow), `aliases`, `metrics`, `skipped` (their
    number). XCom `gate`: what the gate says, loss and collapse, also where it did not pass.
    Event on the asset `evaluations`: `id`, `run_id`.
    """

    operator_extra_links: Any = (MlflowLink(), DaskLink(), TrendsLink())

    def __init__(self, *, snapshot_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.snapshot_id = snapshot_id
        self.mlflow_run: tuple[str, str] | None = None

    def work(self, settings: Settings, context: Context) -> dict[str, Any]:
        """Evaluate and log."""
        from embedding.kernel.errors import RefusedError
        from embedding.snapshots.store import SnapshotStore
        from embedding_airflow.tracking.snapshots import headline, track_snapshot

        tracked = track_snapshot(
            SnapshotStore(settings.snapshot_store),
            self.snapshot_id,
            settings.evaluation,
            tracking_uri=settings.tracking_address,
        )
        for sentence in tracked.skipped:
            self.log.warning("Skipped: %s", sentence)
        self.log.info("Snapshot %s: %d figures.", self.snapshot_id, len(tracked.metrics))
        gate = headline(tracked.verdict, tracked.metrics)
        self.log.info("%s", gate)
        context["ti"].xcom_push(key="gate", value=gate)
        self.mlflow_run = (tracked.experiment_id, tracked.run_id)
        for sentence in tracked.verdict.aside:
            self.log.info("Left aside: %s.", sentence)
        for sentence in filter(None, (tracked.verdict.unread, *tracked.verdict.lacks)):
            self.log.warning(
                "Snapshot %s: %s The aliases stay where they were.", self.snapshot_id, sentence
            )
        if tracked.verdict.failed:
            raise RefusedError(
                f"snapshot {self.snapshot_id} did not pass the quality gate: "
                f"{'; '.join(tracked.verdict.failed)}. The aliases stay where they were."
            )
        event = {"id": self.snapshot_id, "run_id": tracked.run_id}
        context["outlet_events"][EVALUATIONS].extra = dict(event)
        return {
            **event,
            "model_version": tracked.model_version,
            "aliases": list(tracked.aliases),
            "metrics": dict(tracked.metrics),
            "skipped": len(tracked.skipped),
        }
