"""Buttons on a task's page: the MLflow run, the Dask dashboard, the trends page.

A link's address is written to the run's XComs where the task runs, because only there are the
settings; the web server reads it back.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

from embedding.kernel.errors import YeoronError

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

    from embedding.settings import Settings


class SettingsLink(BaseOperatorLink):
    """A link to an address that the settings know; empty when they cannot be read."""

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        from embedding.settings import load_settings

        try:
            return self.address(load_settings(), operator)
        except YeoronError:
            # The task itself fails with the sentence; a button needs no second one.
            return ""

    @abstractmethod
    def address(self, settings: Settings, operator: Any) -> str:
        """The address by these settings."""


class MlflowLink(SettingsLink):
    """The MLflow run that the task wrote, or MLflow's list of experiments before there is one."""

    @property
    def name(self) -> str:
        return "MLflow run"

    def address(self, settings: Settings, operator: Any) -> str:
        """`operator.mlflow_run` is (experiment id, run id), set by the operator."""
        run = getattr(operator, "mlflow_run", None)
        if not run:
            return f"{settings.mlflow_url}/#/experiments"
        return f"{settings.mlflow_url}/#/experiments/{run[0]}/runs/{run[1]}"


class DaskLink(SettingsLink):
    """The Dask dashboard."""

    @property
    def name(self) -> str:
        return "Dask dashboard"

    def address(self, settings: Settings, operator: Any) -> str:  # noqa: ARG002
        return settings.dask_dashboard_url


class TrendsLink(SettingsLink):
    """The trends page: the window of the task's own snapshot where it has one."""

    @property
    def name(self) -> str:
        return "Trends page"

    def address(self, settings: Settings, operator: Any) -> str:
        """`operator.snapshot_id` says which window; behind Airflow's login."""
        snapshot = getattr(operator, "snapshot_id", None)
        if not snapshot:
            return settings.trends_url
        return f"{settings.trends_url}window/{quote(str(snapshot), safe='')}"


LINKS = (MlflowLink(), DaskLink(), TrendsLink())
