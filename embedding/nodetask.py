"""A node as a Dask task.

Dask gives a task to a worker that has the resource, whether or not it is in use: a node whose
worker was killed would wait behind the node of another worker, for weeks, while its own is long
back. So a node takes half of a worker's resource, which lets a second one begin there; it sees that
the worker has a node, and has Dask place it anew until there is a worker without one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from embedding.worker.node import run_node
from embedding.worker.spec import NodeSpec

RESOURCE = {"node": 0.5}
"""What a node takes of a worker that was started with `--resources node=1` and two threads."""
AGAIN_SECONDS = 1.0
"""How often a node that waits for a worker is placed anew."""

_TAKEN: set[str] = set()
_LOCK = threading.Lock()


def submit_node(client: Any, spec_json: str, name: str, pool: str) -> Any:
    """Start a node, on any worker that has none, as soon as there is one; its future."""
    return client.submit(
        node_task, spec_json, pool, key=name, resources=RESOURCE, retries=1000, pure=False
    )


def node_task(spec_json: str, pool: str) -> dict[str, Any]:
    """The Dask task of one node: runs until the pool's stop event is set."""
    from distributed import Event, Reschedule, get_client, get_worker

    spec = NodeSpec.model_validate_json(spec_json)
    stop = Event(f"{pool}-stop", client=get_client())

    def should_stop() -> bool:
        return bool(stop.is_set())

    with _place(get_worker().address) as free:
        if free:
            outcome = run_node(spec, should_stop)
            return {
                "name": outcome.name,
                "restarts": outcome.restarts,
                "seconds": outcome.seconds,
            }
    if should_stop():
        return {"name": spec.name, "restarts": 0, "seconds": 0.0}
    time.sleep(AGAIN_SECONDS)
    raise Reschedule


@contextmanager
def _place(worker: str) -> Iterator[bool]:
    """Whether the worker at this address had no node; if so it has one until the end."""
    with _LOCK:
        free = worker not in _TAKEN
        _TAKEN.add(worker)
    try:
        yield free
    finally:
        if free:
            with _LOCK:
                _TAKEN.discard(worker)
