"""One MLflow run a snapshot: parameters, figures over windows, pictures, manifest, model version.

Only figures, settings, the manifest and the vectors go to MLflow, never text of documents.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from embedding.evaluation import gate, registry, runs
from embedding.evaluation.config import EvaluationConfig
from embedding.evaluation.evaluate import evaluate_snapshot
from embedding.evaluation.gate import GateResult
from embedding.snapshots.format import MANIFEST, Manifest
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore
from embedding_airflow.tracking import provenance, recording, versions, views
from embedding_airflow.tracking.plots import draw

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_KIND = "snapshot"
_STREAM = "stream"
_STEP = "yeoron.step"
_NOTE = "mlflow.note.content"
"""What MLflow shows at the head of a run."""
_STREAM_NOTE = "Every figure as one line over the windows: see *Model metrics*."
GATE_PASSED = "gate"
"""Metric of a run: 1 when its snapshot passed the gate, else 0."""
DEGRADED = "degraded"
"""Tag `yeoron.degraded`: what a snapshot lacks (usage, learning, documents), or no."""


@dataclass(frozen=True)
class TrackedRun:
    """What was logged.

    run_id, experiment_id   of MLflow
    model_version           version of the registered model
    metrics                 figures logged, by name; `gate` is 1 for a snapshot that passed, else 0
    skipped                 one sentence for each figure that could not be had
    verdict                 what the gate says
    aliases                 aliases that name this version now
    """

    run_id: str
    experiment_id: str
    model_version: str
    metrics: dict[str, float]
    skipped: tuple[str, ...]
    verdict: GateResult
    aliases: tuple[str, ...]


def track_snapshot(
    store: SnapshotStore,
    id: str,
    config: EvaluationConfig,
    *,
    tracking_uri: str,
) -> TrackedRun:
    """Evaluate a snapshot and log it to MLflow; a second call continues the first's run.

    The run's metrics have the window's place in the store's series as step and the window's end
    as time. They are also logged, at the same step, into the experiment's run `stream`, where
    MLflow draws them as one line over the windows. The run is no child of it: MLflow's list folds
    children away. The gate
    (`config.floors`, `max_rise`) alone moves the aliases `newest` and `best` (by `best_by`).

    Raises SnapshotError for a snapshot that cannot be read, InputError for a floors file that
    cannot be, ConfigError for a device or an experiment that cannot be used, PlatformError when
    MLflow cannot be reached or refuses.
    """
    snapshot = store.open(id)
    bounds = () if config.floors is None else gate.read_floors(config.floors)
    client = runs.connect(tracking_uri)
    with runs.reported(tracking_uri):
        place = recording.experiment_id(client, config.experiment)
        client.set_experiment_tag(place, *views.snapshots_view())
        line = _stream(client, place)
        run = _open(client, place, snapshot)
        with _closing(client, run):
            manifest = snapshot.manifest
            params = {"snapshot": manifest.id, "window": manifest.window.label}
            recording.log_params(client, run, params | provenance.params(manifest))
            evaluation = evaluate_snapshot(snapshot, config.gold, config.device)
            series = _series(store, snapshot)
            step = _step(client, run, series)
            end = int(snapshot.ref.window_end.timestamp() * 1000)
            for target in (run.info.run_id, line):
                recording.log_metrics(client, target, evaluation.metrics, step=step, timestamp=end)
            with tempfile.TemporaryDirectory(prefix="yeoron-plots-") as folder:
                for path in draw(Path(folder), series, evaluation):
                    client.log_artifact(run.info.run_id, str(path), "plots")
            client.log_artifact(run.info.run_id, str(snapshot.path / MANIFEST))
            version = versions.register(
                client, snapshot, run.info.run_id, config.model_name, lineage(snapshot.manifest)
            )
            # What `newest` names is what comes before, unless that is this version.
            now = registry.holder(client, config.model_name, registry.NEWEST)
            is_this = now is not None and str(now.version) == version
            verdict = gate.judge(
                evaluation.metrics,
                bounds,
                corpus=gate.corpus_digest(manifest),
                gold=config.gold,
                before={} if is_this else registry.figures(client, now),
                max_rise=config.max_rise,
                lacks=() if manifest.judgeable else snapshot.ref.lacks,
            )
            figure = (config.best_by, evaluation.metrics.get(config.best_by))
            aliases = versions.move_aliases(
                client, config.model_name, version, snapshot.ref.window_end, verdict, figure
            )
            passed = {GATE_PASSED: float(verdict.passed)}
            # The last word counts: of two figures at one step and time MLflow shows the larger.
            at = int(time.time() * 1000)
            recording.log_metrics(client, run.info.run_id, passed, step=step, timestamp=at)
            client.set_tag(run.info.run_id, registry.GATE, _in_words(verdict))
            lines = [headline(verdict, evaluation.metrics)]
            lines += [sentence for sentence in snapshot.ref.lacks if sentence not in verdict.lacks]
            client.set_tag(run.info.run_id, _NOTE, "\n\n".join(lines))
    return TrackedRun(
        run_id=run.info.run_id,
        experiment_id=place,
        model_version=version,
        metrics={**evaluation.metrics, **passed},
        skipped=evaluation.skipped,
        verdict=verdict,
        aliases=aliases,
    )


def _in_words(verdict: GateResult) -> str:
    return "passed" if verdict.passed else f"failed: {'; '.join(verdict.reasons)}"[:4_000]


def headline(verdict: GateResult, metrics: Mapping[str, float]) -> str:
    """Gate, loss and collapse of a snapshot in a line or two; a figure it lacks is left out."""
    known = (("loss", "nll"), ("mean cosine", "mean_cosine"), ("first axis", "first_axis"))
    figures = [f"{title} {metrics[name]:.3f}" for title, name in known if name in metrics]
    return f"Gate {_in_words(verdict)}. {', '.join(figures)}".rstrip()


def lineage(manifest: Manifest) -> dict[str, str]:
    """Where a snapshot comes from, as tags of its run and of its model version."""
    known = {
        "parent": manifest.parent or "",
        "window": manifest.window.label,
        "window_start": manifest.window.start.isoformat(),
        "window_end": manifest.window.end.isoformat(),
        "sources": ",".join(sorted(manifest.tokens))[:4_000],
        "config_digest": manifest.config_digest,
        "tokenizer_digest": manifest.tokenizer_digest,
        "code_version": manifest.code_version,
        DEGRADED: ", ".join(sorted({missing.part for missing in manifest.lacking})) or "no",
        **{f"sha256.{name}": entry.sha256 for name, entry in manifest.files.items()},
    }
    return {
        **{f"yeoron.{name}": value for name, value in known.items()},
        **provenance.tags(provenance.params(manifest)),
    }


def _stream(client: MlflowClient, experiment: str) -> str:
    run = recording.open_run(client, experiment, _STREAM, _STREAM, _STREAM, {_NOTE: _STREAM_NOTE})
    if run.info.status != "FINISHED":
        client.set_terminated(run.info.run_id, "FINISHED")
    return str(run.info.run_id)


def _open(client: MlflowClient, experiment: str, snapshot: Snapshot) -> Run:
    tags = lineage(snapshot.manifest)
    run = recording.open_run(client, experiment, _KIND, snapshot.id, snapshot.id, tags)
    if runs.PARENT in run.data.tags:
        client.delete_tag(run.info.run_id, runs.PARENT)  # of a run that `stream` once held
    return run


@contextmanager
def _closing(client: MlflowClient, run: Run) -> Iterator[None]:
    """End the run, which lasts as long as the block: FINISHED, or FAILED when that raises."""
    client.update_run(run.info.run_id, status="RUNNING")
    began = time.monotonic()
    try:
        yield
    except BaseException:
        recording.end_run(client, run, "FAILED", time.monotonic() - began)
        raise
    recording.end_run(client, run, "FINISHED", time.monotonic() - began)


def _series(store: SnapshotStore, snapshot: Snapshot) -> list[Manifest]:
    """Manifests up to and with this snapshot, one a window, oldest first."""
    start = snapshot.ref.window_start
    earlier = [ref for ref in store.series() if ref.window_start < start]
    return [*(store.manifest(ref.id) for ref in earlier), snapshot.manifest]


def _step(client: MlflowClient, run: Run, series: Sequence[Manifest]) -> int:
    """The window's place in the series when it was first logged; kept in a tag."""
    known = run.data.tags.get(_STEP)
    if known is not None:
        return int(known)
    step = len(series) - 1
    client.set_tag(run.info.run_id, _STEP, str(step))
    return step
