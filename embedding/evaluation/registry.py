"""A snapshot as a version of a registered MLflow model."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from embedding.evaluation import runs
from embedding.evaluation.gate import better

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

NEWEST = "newest"
"""Alias of the version whose window is last in event time, of those that passed the gate.

MLflow keeps `latest` for itself: `models:/NAME@latest` is the version registered last.
"""
BEST = "best"
"""Alias of the version that passed the gate with the best `nll`."""
GATE = "yeoron.gate"
"""Tag of a version: passed or failed."""
SNAPSHOT = "yeoron.snapshot"
WINDOW_END = "yeoron.window_end"


def holder(client: MlflowClient, model_name: str, alias: str) -> ModelVersion | None:
    """The version that an alias names, None when it names none."""
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version_by_alias(model_name, alias)
    except MlflowException:
        return None


def figures(client: MlflowClient, version: ModelVersion | None) -> dict[str, float]:
    """The metrics of the run that a version comes from; of none, none."""
    if version is None or not version.run_id:
        return {}
    return dict(client.get_run(version.run_id).data.metrics)


def fall_back(client: MlflowClient, model_name: str, alias: str, best_by: str) -> str | None:
    """Let an alias name what it would without the versions that did not pass.

    Returns the version it names now; None when no version has passed: then it names none.
    """
    versions = client.search_model_versions(f"name = '{model_name}'")
    passed = [version for version in versions if version.tags.get(GATE) == "passed"]
    chosen = None
    for version in sorted(passed, key=lambda passing: passing.tags.get(WINDOW_END, "")):
        value = figures(client, version).get(best_by)
        end = version.tags.get(WINDOW_END, "")
        if chosen is None or beats(client, alias, chosen, end, (best_by, value)):
            chosen = version
    if chosen is None:
        client.delete_registered_model_alias(model_name, alias)
        return None
    client.set_registered_model_alias(model_name, alias, chosen.version)
    return str(chosen.version)


def beats(
    client: MlflowClient, alias: str, now: ModelVersion, end: str, best_by: tuple[str, float | None]
) -> bool:
    """Whether a version with this window's end and figure is to take the place of `now`."""
    if alias == NEWEST:
        return str(now.tags.get(WINDOW_END, "")) <= end
    metric, value = best_by
    other = figures(client, now).get(metric)
    return value is not None and (other is None or better(metric, value, other))


WITHDRAWN = "withdrawn"


def withdraw_versions(
    ids: Collection[str],
    reason: str,
    *,
    tracking_uri: str,
    model_name: str = "yeoron",
    best_by: str = "nll",
) -> dict[str, str | None]:
    """Mark the versions of these snapshots; aliases go back to what passed and comes next.

    Returns the version by alias, None for one that names nothing now. Doing it again changes
    nothing. Raises PlatformError when MLflow cannot be reached or refuses.
    """
    client = runs.connect(tracking_uri)
    with runs.reported(tracking_uri):
        for version in client.search_model_versions(f"name = '{model_name}'"):
            if version.tags.get(SNAPSHOT) in ids:
                client.set_model_version_tag(model_name, version.version, GATE, WITHDRAWN)
                client.set_model_version_tag(
                    model_name, version.version, f"{GATE}.failed", reason[:4_000]
                )
        named: dict[str, str | None] = {}
        for alias in (NEWEST, BEST):
            version = holder(client, model_name, alias)
            if version is not None and version.tags.get(SNAPSHOT) in ids:
                named[alias] = fall_back(client, model_name, alias, best_by)
            else:
                named[alias] = version and str(version.version)
    return named
