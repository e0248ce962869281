"""Compare training settings: a parent run in MLflow, one child run for each setting."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from embedding_airflow.links import DaskLink, MlflowLink
from embedding_airflow.operators.base import YeoronOperator
from embedding_airflow.training import CHOICES, label_of, settings_grid, train_setting, workable

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.settings import Settings


class OpenComparison(YeoronOperator):
    """Opens the parent run in MLflow, or finds it again, and lists the settings.

    Result: one `{"variant", "setting", "parent"}` for each combination that can work: the mapped
    tasks. Those that cannot are named in the log and in the run's param `left_out`.
    """

    operator_extra_links: Any = (MlflowLink(), DaskLink())

    def work(self, settings: Settings, context: Context) -> list[dict[str, Any]]:
        """Open the run; the Airflow run's id makes it the same on every try."""
        from embedding_airflow.tracking.comparison import start_parent

        params = dict(context["params"])
        grid, left_out = workable(settings, settings_grid(params))
        for label, reason in left_out.items():
            self.log.warning("%s is left out: %s", label, reason)
        chosen = {key: value for key, value in params.items() if value is not None}
        if left_out:
            chosen["left_out"] = ", ".join(left_out)
        parent = start_parent(
            str(params["name"]),
            chosen,
            tracking_uri=settings.tracking_address,
            experiment=settings.evaluation.experiment,
            key=f"{self.dag_id} {context['run_id']}",
            varied=[name for name in CHOICES if len({setting[name] for setting in grid}) > 1],
        )
        self.mlflow_run = place_of(settings, parent)
        self.log.info("%d settings, MLflow run %s.", len(grid), parent)
        return [
            {"variant": label_of(setting), "setting": setting, "parent": parent} for setting in grid
        ]


class TrainSetting(YeoronOperator):
    """Trains one setting and logs it as a child run of `parent`.

    Result: `variant`, `run_id` (of MLflow) and `metrics`.
    """

    operator_extra_links: Any = (MlflowLink(), DaskLink())

    def __init__(
        self, *, variant: str, setting: dict[str, Any], parent: str, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.variant = variant
        self.setting = setting
        self.parent = parent
        self.mlflow_run: tuple[str, str] | None = None

    def work(self, settings: Settings, context: Context) -> dict[str, Any]:  # noqa: ARG002
        """Train, then log; a retry continues the same child run."""
        from embedding_airflow.tracking.comparison import track_training

        store = settings.paths.home.resolve() / "comparisons" / self.parent / self.variant
        began = time.monotonic()
        trained = train_setting(settings, self.setting, store)
        chosen = {key: value for key, value in self.setting.items() if value is not None}
        run_id = track_training(
            self.parent,
            {**chosen, **trained.made_from},
            trained.metrics,
            trained.snapshot,
            tracking_uri=settings.tracking_address,
            seconds=time.monotonic() - began,
            name=self.variant,
            curve=trained.curve,
        )
        self.mlflow_run = place_of(settings, run_id)
        self.log.info("%s: %d figures, MLflow run %s.", self.variant, len(trained.metrics), run_id)
        return {"variant": self.variant, "run_id": run_id, "metrics": trained.metrics}


class CloseComparison(YeoronOperator):
    """Ends the parent run: as finished when every setting was trained, else as failed.

    Result: `parent` and `trained`, the variants.
    """

    operator_extra_links: Any = (MlflowLink(), DaskLink())

    def __init__(self, *, opened: str, trained: str, **kwargs: Any) -> None:
        super().__init__(trigger_rule="all_done", **kwargs)
        self.opened = opened
        self.trained = trained
        self.mlflow_run: tuple[str, str] | None = None

    def work(self, settings: Settings, context: Context) -> dict[str, Any]:
        """End it; AirflowFailException names the settings that failed."""
        from embedding_airflow.tracking.comparison import finish

        ti: Any = context["ti"]
        wanted = ti.xcom_pull(task_ids=self.opened) or []
        if not wanted:
            raise AirflowFailException("The comparison was not opened; see its first task.")
        done = [result["variant"] for result in ti.xcom_pull(task_ids=self.trained) or []]
        failed = [opened["variant"] for opened in wanted if opened["variant"] not in done]
        parent = str(wanted[0]["parent"])
        finish(parent, tracking_uri=settings.tracking_address, failed=bool(failed))
        self.mlflow_run = place_of(settings, parent)
        if failed:
            raise AirflowFailException(
                f"{len(failed)} of {len(wanted)} settings failed: {', '.join(failed)}."
            )
        return {"parent": parent, "trained": done}


def place_of(settings: Settings, run_id: str) -> tuple[str, str]:
    """(experiment id, run id), for the link."""
    from embedding.evaluation.runs import connect, reported

    uri = settings.tracking_address
    client = connect(uri)
    with reported(uri):
        return str(client.get_run(run_id).info.experiment_id), run_id
