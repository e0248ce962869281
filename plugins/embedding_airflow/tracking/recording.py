"""Writing into MLflow's tracking store: experiments, runs that are found again, figures."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedding.evaluation.runs import KEY, KIND, metric_name
from embedding.kernel.errors import ConfigError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_BATCH = 100


_PARAM_LENGTH = 6_000


EXPERIMENT_KIND = "mlflow.experimentKind"


KIND_OF_OURS = "custom_model_development"
"""Of an experiment without it MLflow opens the pages for language models, which are empty here."""


def experiment_id(client: MlflowClient, name: str) -> str:
    """The experiment of this name, made when it is new; also when another process makes it."""
    from mlflow.exceptions import MlflowException

    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        try:
            return str(
                client.create_experiment(
                    name, artifact_location=_artifacts(client), tags={EXPERIMENT_KIND: KIND_OF_OURS}
                )
            )
        except MlflowException:
            experiment = client.get_experiment_by_name(name)
            if experiment is None:
                raise
    if experiment.lifecycle_stage != "active":
        raise ConfigError(
            f"evaluation.experiment: MLflow's experiment {name!r} was deleted; restore it or "
            "choose another name."
        )
    if experiment.tags.get(EXPERIMENT_KIND) != KIND_OF_OURS:
        client.set_experiment_tag(experiment.experiment_id, EXPERIMENT_KIND, KIND_OF_OURS)
    return str(experiment.experiment_id)


def _artifacts(client: MlflowClient) -> str | None:
    """Beside the database when it is a SQLite file: MLflow's own choice is the current folder."""
    path = str(client.tracking_uri).removeprefix("sqlite:///")
    if path == client.tracking_uri:
        return None
    return (Path(path).resolve().parent / "artifacts").as_uri()


def find_run(client: MlflowClient, experiment: str, kind: str, key: str) -> Run | None:
    """The run of this kind and key in the experiment (an id), None when there is none."""
    quoted = key.replace("\\", "").replace("'", "")
    runs = client.search_runs(
        [experiment],
        filter_string=f"tags.`{KIND}` = '{kind}' and tags.`{KEY}` = '{quoted}'",
        order_by=["attributes.start_time ASC"],
        max_results=1,
    )
    return runs[0] if runs else None


def open_run(
    client: MlflowClient,
    experiment: str,
    kind: str,
    key: str,
    name: str,
    tags: Mapping[str, str] | None = None,
    *,
    seconds: float = 0.0,
) -> Run:
    """The run of this kind and key, continued when it exists and started when it does not.

    seconds  how long what it is about has taken already: it began so long ago
    """
    run = find_run(client, experiment, kind, key)
    quoted = key.replace("\\", "").replace("'", "")
    if run is None:
        every = {KIND: kind, KEY: quoted, **(tags or {})}
        began = int((time.time() - seconds) * 1000)
        return client.create_run(experiment, start_time=began, run_name=name, tags=every)
    for tag, value in (tags or {}).items():
        if run.data.tags.get(tag) != value:
            client.set_tag(run.info.run_id, tag, value)
    return run


def end_run(client: MlflowClient, run: Run, status: str, seconds: float) -> None:
    """End a run so that its duration is what was measured, also when it is continued later.

    seconds  how long that took; MLflow keeps when a run began the first time
    """
    end = int(run.info.start_time + seconds * 1000)
    client.set_terminated(run.info.run_id, status, end)


def log_params(client: MlflowClient, run: Run, params: Mapping[str, object]) -> None:
    """Log the parameters that the run does not have yet (MLflow's are write-once)."""
    from mlflow.entities import Param

    new = [
        Param(metric_name(name), str(value)[:_PARAM_LENGTH])
        for name, value in params.items()
        if metric_name(name) not in run.data.params
    ]
    for at in range(0, len(new), _BATCH):
        client.log_batch(run.info.run_id, params=new[at : at + _BATCH])


def log_metrics(
    client: MlflowClient, run_id: str, metrics: Mapping[str, float], *, step: int, timestamp: int
) -> None:
    """Log the finite figures at one step; `timestamp` in ms. Repeating it changes nothing."""
    log_series(client, run_id, [(step, timestamp, metrics)])


def log_series(
    client: MlflowClient, run_id: str, series: Iterable[tuple[int, int, Mapping[str, float]]]
) -> None:
    """Log the finite figures of several moments, each with its step and its time in ms."""
    from mlflow.entities import Metric

    entries = [
        Metric(metric_name(name), float(value), timestamp, step)
        for step, timestamp, metrics in series
        for name, value in metrics.items()
        if math.isfinite(value)
    ]
    for at in range(0, len(entries), _BATCH):
        client.log_batch(run_id, metrics=entries[at : at + _BATCH])


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Nested settings as `section.field` names."""
    out: dict[str, object] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            out.update(flatten(value, f"{prefix}{name}."))
        else:
            out[f"{prefix}{name}"] = value
    return out
