"""A snapshot as a version of a registered MLflow model."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from embedding.snapshots.snapshot import Snapshot

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

NEWEST = "newest"
"""Alias of the version whose window is last in event time.

MLflow keeps `latest` for itself: `models:/NAME@latest` is the version registered last.
"""
SNAPSHOT = "yeoron.snapshot"
WINDOW_END = "yeoron.window_end"
_SCRIPT = Path(__file__).with_name("pyfunc.py")
_REQUIREMENTS = ["mlflow", "numpy", "pandas", "pyarrow"]


def register(
    client: MlflowClient, snapshot: Snapshot, run_id: str, model_name: str, tags: Mapping[str, str]
) -> str:
    """Register the snapshot once and return its version; a second call finds the first's.

    tags  lineage, set on the version
    """
    known = find_version(client, model_name, run_id)
    if known is None:
        _ensure_model(client, model_name)
        _upload(client, snapshot, run_id)
        known = client.create_model_version(
            model_name,
            source=f"runs:/{run_id}/model",
            run_id=run_id,
            tags={**tags, SNAPSHOT: snapshot.id},
            description=f"Snapshot {snapshot.id}: nearest words of {len(snapshot)} words.",
        )
    _move_newest(client, model_name, known, snapshot)
    return str(known.version)


def find_version(client: MlflowClient, model_name: str, run_id: str) -> ModelVersion | None:
    """The version that this run registered, None when it has not."""
    found = client.search_model_versions(f"run_id = '{run_id}'")
    return next((version for version in found if version.name == model_name), None)


def _ensure_model(client: MlflowClient, model_name: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        client.create_registered_model(
            model_name, description="Nearest words of Yeoron's embedding snapshots."
        )
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise


def _upload(client: MlflowClient, snapshot: Snapshot, run_id: str) -> None:
    """Save the model as a script with the snapshot's files, and log it into the run."""
    import mlflow.pyfunc

    with tempfile.TemporaryDirectory(prefix="yeoron-model-") as folder, warnings.catch_warnings():
        # MLflow warns that no input example is given: an example would be a word of the corpus.
        warnings.simplefilter("ignore")
        # … and says at length that the answer is a table, which has no type hint.
        logging.getLogger("mlflow.models.signature").setLevel(logging.WARNING)
        path = Path(folder) / "model"
        mlflow.pyfunc.save_model(
            path=str(path),
            python_model=str(_SCRIPT),
            artifacts={"snapshot": str(snapshot.path)},
            input_example=([""], {"n": 10}),
            pip_requirements=_REQUIREMENTS,
        )
        client.log_artifacts(run_id, str(path), "model")


def _move_newest(
    client: MlflowClient, model_name: str, version: ModelVersion, snapshot: Snapshot
) -> None:
    """Let `newest` point at this version unless a later window has it (a backfill)."""
    from mlflow.exceptions import MlflowException

    end = snapshot.ref.window_end.isoformat()
    try:
        holder = client.get_model_version_by_alias(model_name, NEWEST)
    except MlflowException:
        holder = None
    if holder is None or holder.tags.get(WINDOW_END, "") <= end:
        client.set_model_version_tag(model_name, version.version, WINDOW_END, end)
        client.set_registered_model_alias(model_name, NEWEST, version.version)
