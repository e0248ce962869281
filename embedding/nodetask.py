"""A node as a Dask task."""

from __future__ import annotations

from typing import Any

from embedding.worker.node import run_node
from embedding.worker.spec import NodeSpec


def node_task(spec_json: str, pool: str) -> dict[str, Any]:
    """The Dask task of one node: runs until the pool's stop event is set."""
    from distributed import Event, get_client

    spec = NodeSpec.model_validate_json(spec_json)
    stop = Event(f"{pool}-stop", client=get_client())

    def should_stop() -> bool:
        return bool(stop.is_set())

    outcome = run_node(spec, should_stop)
    return {"name": outcome.name, "restarts": outcome.restarts, "seconds": outcome.seconds}
