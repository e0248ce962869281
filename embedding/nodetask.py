"""A node as a Dask task.

Dask gives a task to a worker that has the resource, whether or not it is in use: a node whose
worker was killed would wait behind the node of another worker, for weeks, while its own is long
back. So a node takes half of a worker's resource, which lets a second one begin there; it sees that
the worker has a node, and has Dask place it again until there is a worker without one.

What a node must know holds secrets: cookies, passwords, a key. Dask shows arguments of tasks, in
its log where one fails; so a task is told a file, which its owner alone can read. A worker asks the
scheduler for what is in it: only there, on the control host, it lies.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from embedding.kernel.config import WITH_SECRETS
from embedding.kernel.errors import PlatformError, YeoronError
from embedding.kernel.private import ensure_secret, private_folder
from embedding.worker.process.node import run_node
from embedding.worker.spec import NodeSpec

logger = logging.getLogger(__name__)

RESOURCE = {"node": 0.5}
"""What a node takes of a worker that was started with `--resources node=1` and two threads."""
HOME_VARIABLE = "YEORON_PLATFORM"
"""Where a worker that the platform started has its home."""
AGAIN_SECONDS = 1.0
"""How often a node that waits for a worker is placed again."""
PAUSE_SECONDS = 60.0
"""How long a node that gave up rests before Dask starts it again: what hinders it may go."""

_TAKEN: set[str] = set()
_LOCK = threading.Lock()


def submit_node(client: Any, spec: NodeSpec, pool: str, folder: Path) -> Any:
    """Start a node, on any worker that has none, as soon as there is one; its future.

    folder  where the node's file is written (mode 600); it stays there while the node may run
    """
    file = spec_file(folder, spec.name)
    private_folder(folder)
    text = spec.model_dump_json(context=WITH_SECRETS)
    file.unlink(missing_ok=True)
    ensure_secret(file, text)
    return client.submit(
        node_of_file, str(file), pool, key=spec.name, resources=RESOURCE, retries=1000, pure=False
    )


def spec_file(folder: Path, name: str) -> Path:
    """Where what a node must know is written."""
    return folder.resolve() / f"{name}.json"


def node_of_file(file: str, pool: str) -> dict[str, Any]:
    """The Dask task of a node of a pool, which is told the file of its specification."""
    from distributed import Event, get_client

    try:
        text = get_client().run_on_scheduler(Path(file).read_text, "utf-8")
    except OSError as error:
        raise PlatformError(f"{file}: {error.strerror}; start the pool again.") from error
    spec = NodeSpec.model_validate_json(text)
    here = os.environ.get(HOME_VARIABLE)
    if here is not None:
        spec = placed(spec, Path(file).parents[2], Path(here))
    try:
        return _run(spec, pool)
    except YeoronError as error:
        logger.error("%s It is started again in %.0f s.", error, PAUSE_SECONDS)
        Event(f"{pool}-stop", client=get_client()).wait(PAUSE_SECONDS)
        raise


def placed(spec: NodeSpec, home: Path, here: Path) -> NodeSpec:
    """A node of the control host's `home` on a host whose own home is `here`.

    Files of the home are those of the same name: each host has its own certificate.
    """

    def moved(path: Path | None) -> Path | None:
        inside = path is not None and path.is_relative_to(home)
        return here / path.relative_to(home) if path is not None and inside else path

    names = ("token_file", "operator_token_file", "tls_ca", "tls_cert", "tls_key")
    files = {name: moved(getattr(spec.exchange, name)) for name in names}
    exchange = spec.exchange.model_copy(update=files)
    return spec.model_copy(update={"exchange": exchange, "evidence": moved(spec.evidence)})


def _run(spec: NodeSpec, pool: str) -> dict[str, Any]:
    """Run a node until the pool's stop event is set."""
    from distributed import Event, Reschedule, get_client, get_worker

    stop = Event(f"{pool}-stop", client=get_client())

    def should_stop() -> bool:
        return bool(stop.is_set())

    with _place(get_worker().address) as free:
        if free:
            outcome = run_node(spec, should_stop)
            return {"name": outcome.name, "restarts": outcome.restarts, "seconds": outcome.seconds}
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
