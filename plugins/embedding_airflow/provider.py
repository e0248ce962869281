"""What Airflow is told of this package (entry point `apache_airflow_provider`).

Airflow asks in each of its processes, so nothing is imported here.
"""

from __future__ import annotations

from typing import Any

_NAME = "Yeoron"
_PACKAGE = "embedding_airflow"


def get_provider_info() -> dict[str, Any]:
    """The provider, its connection type with the fields of its form, and its links."""
    return {
        "package-name": "yeoron",
        "name": _NAME,
        "description": "Public opinion in a stream of text: crawl, train, cut snapshots, report.",
        "integrations": [{"integration-name": _NAME, "tags": ["service"]}],
        "operators": _modules("operators", "alarms", "evaluation", "pool", "snapshot", "trends"),
        "sensors": _modules("sensors"),
        "triggers": _modules("triggers"),
        "hooks": _modules("hook"),
        "connection-types": [
            {
                "connection-type": "yeoron",
                "hook-class-name": f"{_PACKAGE}.hook.YeoronHook",
                "hook-name": _NAME,
                "ui-field-behaviour": {
                    "hidden-fields": ["schema", "login", "port", "extra"],
                    "relabeling": {"host": "Address of the trends page", "password": "Token"},
                    "placeholders": {
                        "host": "http://127.0.0.1:8080/yeoron",
                        "password": "yeoron_… (`yeoron token make NAME` prints one)",
                    },
                },
            }
        ],
        "asset-uris": [
            {
                "schemes": ["yeoron"],
                "handler": None,
                "to_openlineage_converter": f"{_PACKAGE}.lineage.to_dataset",
            }
        ],
        "extra-links": [
            f"{_PACKAGE}.links.{name}" for name in ("MlflowLink", "DaskLink", "TrendsLink")
        ],
    }


def _modules(module: str, *names: str) -> list[dict[str, Any]]:
    paths = [f"{_PACKAGE}.{module}.{name}" for name in names] or [f"{_PACKAGE}.{module}"]
    return [{"integration-name": _NAME, "python-modules": paths}]
