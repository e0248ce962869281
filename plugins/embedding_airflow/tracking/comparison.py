"""Comparing trainings in MLflow: one parent run, one child run a setting."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from embedding.evaluation import runs
from embedding.kernel.records import SnapshotRef
from embedding_airflow.tracking import provenance, recording, views

SUFFIX = "-comparisons"
"""Comparisons are in an experiment of their own: that of snapshots is a series in time."""
_PARENT = "comparison"
_CHILD = "training"
_NOTE = "mlflow.note.content"
CURVE = "curve/"
"""Prefix of the figures over a training, beside those of the whole."""
_POINTS = 200


@dataclass(frozen=True)
class CurvePoint:
    """Figures at one moment of a training.

    tokens   learnt until then; the step of the curve
    seconds  since the training began
    """

    tokens: int
    seconds: float
    figures: Mapping[str, float]


def start_parent(
    name: str,
    params: Mapping[str, object],
    *,
    tracking_uri: str,
    experiment: str = "yeoron",
    key: str | None = None,
    varied: Sequence[str] = (),
) -> str:
    """Start the run that holds a comparison, or find it again; returns its run id.

    It is in the experiment `EXPERIMENT-comparisons`, and its description opens its trainings side
    by side (`views.comparison_view`).
    varied  params that differ between them
    `key` says which comparison it is (an Airflow run id; default: `name`): a retried task that
    gives the same key gets the same run. Raises PlatformError when MLflow does not answer.
    """
    client = runs.connect(tracking_uri)
    with runs.reported(tracking_uri):
        place = recording.experiment_id(client, f"{experiment}{SUFFIX}")
        run = recording.open_run(client, place, _PARENT, key or name, name)
        recording.log_params(client, run, params)
        run_id = str(run.info.run_id)
        client.set_experiment_tag(place, *views.comparison_view(run_id, varied))
        table, charts = (views.address(place, run_id, charts=chart) for chart in (False, True))
        text = f"[Table of these trainings]({table[1:]}) · [parallel coordinates]({charts[1:]})"
        client.set_tag(run_id, _NOTE, text)
    return run_id


def track_training(
    parent_run: str,
    params: Mapping[str, object],
    metrics: Mapping[str, float],
    snapshot: SnapshotRef | None,
    *,
    tracking_uri: str,
    seconds: float,
    name: str | None = None,
    curve: Sequence[CurvePoint] = (),
) -> str:
    """Log one training, which took so many seconds until now, as a child of `parent_run`.

    Returns the child's run id.

    The same `name` (default: the parameters, written out) under the same parent is one run,
    continued. Its metrics that are no finite numbers are left out.
    curve  figures over the training, which become metrics `curve/NAME` over tokens
    """
    client = runs.connect(tracking_uri)
    title = name or " ".join(f"{key}={value}" for key, value in params.items()) or "training"
    tags = {runs.PARENT: parent_run, **provenance.tags(params)}
    if snapshot is not None:
        tags["yeoron.snapshot"] = snapshot.id
    with runs.reported(tracking_uri):
        place = client.get_run(parent_run).info.experiment_id
        key = f"{parent_run} {title}"[:4_000]
        run = recording.open_run(client, place, _CHILD, key, title, tags, seconds=seconds)
        recording.log_params(client, run, params)
        now = int(time.time() * 1000)
        recording.log_metrics(client, run.info.run_id, metrics, step=0, timestamp=now)
        recording.log_series(client, run.info.run_id, _series(curve, now - int(seconds * 1000)))
        recording.end_run(client, run, "FINISHED", seconds)
    return str(run.info.run_id)


def finish(run_id: str, *, tracking_uri: str, failed: bool = False) -> None:
    """End a run as finished or failed; ending it twice is allowed."""
    client = runs.connect(tracking_uri)
    with runs.reported(tracking_uri):
        client.set_terminated(run_id, "FAILED" if failed else "FINISHED")


def _series(curve: Sequence[CurvePoint], began: int) -> Iterator[tuple[int, int, dict[str, float]]]:
    """At most `_POINTS` of the points, evenly chosen and with the last; `began` in ms."""
    thin = -(-len(curve) // _POINTS) or 1
    for point in curve[::-1][::thin][::-1]:
        figures = {f"{CURVE}{name}": value for name, value in point.figures.items()}
        yield point.tokens, began + int(point.seconds * 1000), figures
