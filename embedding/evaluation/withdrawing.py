"""Withdrawn snapshots in MLflow: their versions say so, and no alias names them."""

from __future__ import annotations

from collections.abc import Collection

from embedding.evaluation import registry, runs

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
            if version.tags.get(registry.SNAPSHOT) in ids:
                client.set_model_version_tag(model_name, version.version, registry.GATE, WITHDRAWN)
                client.set_model_version_tag(
                    model_name, version.version, f"{registry.GATE}.failed", reason[:4_000]
                )
        named: dict[str, str | None] = {}
        for alias in (registry.NEWEST, registry.BEST):
            held = registry.holder(client, model_name, alias)
            if held is None:
                named[alias] = None
            elif held.tags.get(registry.SNAPSHOT) in ids:
                named[alias] = registry.fall_back(client, model_name, alias, best_by)
            else:
                named[alias] = str(held.version)
    return named
