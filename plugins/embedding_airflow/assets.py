"""The assets by which one DAG's result starts the next one."""

from __future__ import annotations

from airflow.sdk import Asset

SOURCES = Asset(name="sources", uri="yeoron://sources", group="yeoron")
"""The list of sources (`sources.toml`) was changed by `discover_sources`."""

SNAPSHOTS = Asset(name="snapshots", uri="yeoron://snapshots", group="yeoron")
"""A snapshot was published; its event's extra: `id`, `window`, `parent` (the one before)."""

EVALUATIONS = Asset(name="evaluations", uri="yeoron://evaluations", group="yeoron")
"""A snapshot was evaluated; extra: `id`, `run_id` (of MLflow)."""

TRENDS = Asset(name="trends", uri="yeoron://trends", group="yeoron")
"""A trend report was saved; extra: `id`."""

LACKS = "lacks"
"""Field of an event on `snapshots`, and XCom of a run: what a snapshot lacks, in sentences."""
