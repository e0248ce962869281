"""A snapshot as a version of a registered MLflow model, and which version the aliases name."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from embedding.evaluation.gate import GateResult
from embedding.evaluation.registry import (
    BEST,
    GATE,
    NEWEST,
    SNAPSHOT,
    WINDOW_END,
    beats,
    fall_back,
    holder,
)
from embedding.snapshots.snapshot import Snapshot

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

_SCRIPT = Path(__file__).with_name("pyfunc.py")


_ANSWER = {
    "word": "string",
    "neighbour": "string",
    "nearness": "double",
    "rank": "long",
    "reason": "string",
}
"""Columns of the model's answer and their types, as in pyfunc.py."""


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
    return str(known.version)


def move_aliases(
    client: MlflowClient,
    model_name: str,
    version: str,
    window_end: datetime,
    verdict: GateResult,
    best_by: tuple[str, float | None],
) -> tuple[str, ...]:
    """Write the verdict on a version, and let the aliases that it deserves name it.

    `newest` moves to a window that is not before the holder's (a backfill leaves it), `best` to a
    better value of the figure `best_by` names. A version that failed gets neither; an alias that it
    had goes back to the version that passed and comes next. Returns the aliases that name it now.
    """
    end = window_end.astimezone(UTC).isoformat()
    shown = {GATE: "passed" if verdict.passed else "failed", WINDOW_END: end}
    shown[f"{GATE}.failed"] = "; ".join(verdict.reasons)[:4_000]
    for tag, value in shown.items():
        client.set_model_version_tag(model_name, version, tag, value)
    named = []
    for alias in (NEWEST, BEST):
        now = holder(client, model_name, alias)
        is_this = now is not None and str(now.version) == version
        if not verdict.passed:
            if is_this:
                fall_back(client, model_name, alias, best_by[0])
        elif (alias == NEWEST or best_by[1] is not None) and (
            is_this or now is None or beats(client, alias, now, end, best_by)
        ):
            client.set_registered_model_alias(model_name, alias, version)
            named.append(alias)
    return tuple(named)


def find_version(client: MlflowClient, model_name: str, run_id: str) -> ModelVersion | None:
    """The version that this run registered, None when it has not."""
    versions = client.search_model_versions(f"run_id = '{run_id}'")
    return next((version for version in versions if version.name == model_name), None)


def _ensure_model(client: MlflowClient, model_name: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        client.create_registered_model(
            model_name, description="Nearest words of Yeoron's embedding snapshots."
        )
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise


def _type_answer(path: Path) -> None:
    """Write the columns of the answer into the signature: MLflow knows no type hint of a table."""
    from mlflow.models import Model
    from mlflow.types.schema import ColSpec, Schema

    model = Model.load(str(path))
    model.signature.outputs = Schema([ColSpec(kind, name) for name, kind in _ANSWER.items()])
    model.save(str(path / "MLmodel"))


def save_model(path: Path, snapshot: Snapshot) -> None:
    """Save the MLflow model of a snapshot in a folder: a script with the snapshot's files."""
    import mlflow.pyfunc

    with warnings.catch_warnings():
        # MLflow warns that no input example is given: an example would be a word of the corpus.
        warnings.simplefilter("ignore")
        # … and says at length that the answer is a table, which has no type hint.
        logging.getLogger("mlflow.models.signature").setLevel(logging.WARNING)
        mlflow.pyfunc.save_model(
            path=str(path),
            python_model=str(_SCRIPT),
            artifacts={"snapshot": str(snapshot.path)},
            input_example=([""], {"n": 10}),
            pip_requirements=_REQUIREMENTS,
            model_config={"unreadable": snapshot.unreadable or ""},
        )
    _type_answer(path)


def _upload(client: MlflowClient, snapshot: Snapshot, run_id: str) -> None:
    with tempfile.TemporaryDirectory(prefix="yeoron-model-") as folder:
        path = Path(folder) / "model"
        save_model(path, snapshot)
        client.log_artifacts(run_id, str(path), "model")
