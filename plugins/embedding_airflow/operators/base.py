"""What the operators share: settings, the run's window, links that are there from the start."""

from __future__ import annotations

from abc import abstractmethod
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from embedding.kernel.errors import ConfigError
from embedding_airflow.failures import plain_failures
from embedding_airflow.links import DaskLink, MlflowLink, TrendsLink
from embedding_airflow.windows import run_window

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.kernel.records import Window
    from embedding.settings import Settings


class YeoronOperator(BaseOperator):
    """Loads the settings when it runs, never when its DAG is parsed, and calls `work`.

    Yeoron's errors fail the task with their one sentence, and at once where a retry cannot help.
    """

    operator_extra_links: Any = (DaskLink(), TrendsLink())
    ui_color = "#eef3e2"

    def execute(self, context: Context) -> Any:
        """Run `work` with the platform's settings."""
        from embedding.settings import load_settings

        publish_links(self, context)
        try:
            with plain_failures():
                check_params(context)
                return self.work(load_settings(), context)
        finally:
            log_own_links(self)

    def get_openlineage_facets_on_complete(self, _task_instance: Any) -> Any:
        """What the task read and wrote; Airflow's OpenLineage provider asks by this name."""
        from embedding_airflow.lineage import of_task

        return of_task(self)

    @abstractmethod
    def work(self, settings: Settings, context: Context) -> Any:
        """Do it; the result becomes an XCom, so it holds references and counts only."""


def log_own_links(operator: Any) -> None:
    """Write where the task's own snapshot and run are shown into its log, which opens them."""
    ti_key: Any = None
    own = (
        (TrendsLink(), getattr(operator, "snapshot_id", None)),
        (MlflowLink(), getattr(operator, "mlflow_run", None)),
    )
    for link, known in own:
        if known and (address := link.get_link(operator, ti_key=ti_key)):
            operator.log.info("%s: %s", link.name, address)


def publish_links(operator: Any, context: Context) -> None:
    """Write the addresses of the task's buttons now: Airflow itself does so only at the end."""
    ti: Any = context["ti"]
    for link in operator.operator_extra_links:
        ti.xcom_push(key=link.xcom_key, value=link.get_link(operator, ti_key=ti))


def check_params(context: Context) -> None:
    """ConfigError for a param that the DAG does not have: Airflow itself takes any, and a run that
    was asked for something else would go on with the defaults.
    """
    run, dag = context["dag_run"], context["dag"]
    unknown = sorted(set(run.conf or {}) - set(dag.params))
    if dag.params and unknown:
        verb = "is" if len(dag.params) == 1 else "are"
        raise ConfigError(
            f"param {unknown[0]!r} of the DAG {dag.dag_id}: "
            f"{', '.join(dag.params)} {verb} accepted."
        )


def window_of(context: Context, settings: Settings) -> Window:
    """The run's window: the same for each of its tasks and each of their tries."""
    run: Any = context["dag_run"]
    when = run.logical_date or run.run_after or datetime.now(UTC)
    return run_window(context["params"], when, str(settings.server.calendar))
