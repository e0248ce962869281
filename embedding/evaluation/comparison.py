"""Comparing trainings in MLflow: one parent run, one child run a setting."""

from __future__ import annotations

import time
from collections.abc import Mapping

from embedding.evaluation import provenance, runs
from embedding.kernel.records import SnapshotRef

SUFFIX = "-comparisons"
"""Comparisons are in an experiment of their own: that of snapshots is a series in time."""
_PARENT = "comparison"
_CHILD = "training"


def start_parent(
    name: str,
    params: Mapping[str, object],
    *,
    tracking_uri: str,
    experiment: str = "yeoron",
    key: str | None = None,
) -> str:
    """Start the run that holds a comparison, or find it again; returns its run id.

    It is in the experiment `EXPERIMENT-comparisons`.
    `key` says which comparison it is (an Airflow run id; default: `name`): a retried task that
    gives the same key gets the same run. Raises PlatformError when MLflow does not answer.
    """
    client = runs.connect(tracking_uri)
    with runs.reported(tracking_uri):
        place = runs.experiment_id(client, f"{experiment}{SUFFIX}")
        run = runs.open_run(client, place, _PARENT, key or name, name)
        runs.log_params(client, run, params)
    return str(run.info.run_id)


def track_training(
    parent_run: str,
    params: Mapping[str, object],
    metrics: Mapping[str, float],
    snapshot: SnapshotRef | None,
    *,
    tracking_uri: str,
    seconds: float,
    name: str | None = None,
) -> str:
    """Log one training, which took so many seconds until now, as a child of `parent_run`.

    Returns the child's run id.

    The same `name` (default: the parameters, written out) under the same parent is one run,
    continued. Its metrics that are no finite numbers are left out.
    """
    client = runs.connect(tracking_uri)
    title = name or " ".join(f"{key}={value}" for key, value in params.items()) or "training"
    tags = {runs.PARENT: parent_run, **provenance.tags(params)}
    if snapshot is not None:
        tags["yeoron.snapshot"] = snapshot.id
    with runs.reported(tracking_uri):
        place = client.get_run(parent_run).info.experiment_id
        key = f"{parent_run} {title}"[:4_000]
        run = runs.open_run(client, place, _CHILD, key, title, tags, seconds=seconds)
        runs.log_params(client, run, params)
        now = int(time.time() * 1000)
        runs.log_metrics(client, run.info.run_id, metrics, step=0, timestamp=now)
        runs.end_run(client, run, "FINISHED", seconds)
    return str(run.info.run_id)


def finish(run_id: str, *, tracking_uri: str, failed: bool = False) -> None:
    """End a run as finished or failed; ending it twice is allowed."""
    client = runs.connect(tracking_uri)
    with runs.reported(tracking_uri):
        client.set_terminated(run_id, "FAILED" if failed else "FINISHED")
