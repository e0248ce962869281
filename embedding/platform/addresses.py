"""Where a person looks at a running platform, and with which login."""

from __future__ import annotations

import httpx

from embedding.settings import Settings, platform_login
from embedding_airflow.tracking import views
from embedding_airflow.tracking.recording import EXPERIMENT_KIND, KIND_OF_OURS


def addresses(settings: Settings) -> dict[str, str]:
    """Where a person looks; Airflow with its login."""
    user, password = platform_login(settings.paths.airflow)
    return {
        "Airflow": f"{settings.airflow_url}  (login {user} / {password})",
        "Trends": settings.trends_url,
        "MLflow": f"{experiment_url(settings)}  (the same login)",
        "Dask": settings.dask_dashboard_url,
    }


def experiment_url(settings: Settings) -> str:
    """MLflow's list of the snapshots' runs; its experiment is made when it is new.

    The bare address opens on pages for language models. It is given where MLflow does not answer,
    or where runs go to another MLflow.
    """
    if not settings.own_mlflow:
        return settings.mlflow_url
    name = settings.evaluation.experiment
    base = f"{settings.tracking_address}/api/2.0/mlflow/experiments"
    kind = {"key": EXPERIMENT_KIND, "value": KIND_OF_OURS}
    try:
        with httpx.Client(timeout=20, trust_env=False) as client:
            answer = client.get(f"{base}/get-by-name", params={"experiment_name": name})
            if answer.status_code == httpx.codes.NOT_FOUND:
                answer = client.post(f"{base}/create", json={"name": name, "tags": [kind]})
            reply = answer.raise_for_status().json()
            experiment = reply["experiment"]["experiment_id"] if "experiment" in reply else None
            experiment = experiment or reply["experiment_id"]
            key, value = views.snapshots_view()
            tag = {"experiment_id": experiment, "key": key, "value": value}
            client.post(f"{base}/set-experiment-tag", json=tag).raise_for_status()
    except (httpx.HTTPError, ValueError, KeyError):
        return settings.mlflow_url
    return settings.mlflow_url + views.address(experiment, views.SNAPSHOTS_VIEW)
