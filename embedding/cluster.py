"""Nodes on a Dask cluster: starting, attaching, stopping. Which node reads which source the
leases in the pool's frontier say (`crawl/lease.py`).

A node is one Dask task with a fixed key, so starting it twice gives the same task: whoever asks
again (a retried Airflow task, a second person) attaches to what runs. Dask restarts the task on
another worker when its worker is lost, or on the one that comes in its place (`nodetask.py`).
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from sqlalchemy.engine import make_url

from embedding.crawl.frontier import Frontier
from embedding.crawl.rewinding import Blocked, blocked
from embedding.kernel.errors import PlatformError
from embedding.nodetask import spec_file, submit_node
from embedding.settings import Settings
from embedding.sources.config import SourceConfig, load_sources
from embedding.worker.spec import NodeSpec

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 30.0
ENDED = frozenset({"memory", "erred", "released", "forgotten"})


@dataclass(frozen=True)
class PoolState:
    """The nodes of a pool by name, which of them this call started, and who reads what.

    reading  sources by node, as the leases say; empty for nodes that have just been started
    """

    nodes: list[str]
    started: list[str]
    reading: dict[str, list[str]] = field(default_factory=dict)
    imbalance: float | None = None


def node_specs(settings: Settings, sources: Sequence[SourceConfig] | None = None) -> list[NodeSpec]:
    """The specification of every node of the pool."""
    listed = load_sources(settings.paths.sources) if sources is None else tuple(sources)
    names = tuple(f"{settings.cluster.pool}-node-{i}" for i in range(settings.cluster.nodes))
    crawl = settings.crawl.model_copy(
        update={"frontier": SecretStr(settings.database_address("frontier"))}
    )
    if not crawl.pseudonym_key.get_secret_value():
        # One for all: an author whose source moves to another node stays one author.
        key = SecretStr(secrets.token_hex(32))
        crawl = crawl.model_copy(update={"pseudonym_key": key})
    return [
        NodeSpec(
            name=name,
            peers=names,
            server=settings.server_location,
            sources=listed,
            crawl=crawl,
            text=settings.text,
            stream=settings.stream,
            model=settings.model,
            node=settings.node,
            min_count=settings.server.min_count,
            exchange=settings.line(),
            evidence=settings.paths.evidence.resolve(),
        )
        for name in names
    ]


def has_frontier(settings: Settings) -> bool:
    """Whether the pool's frontier is there: asking SQLite would make one."""
    address = make_url(settings.database_address("frontier"))
    return address.get_backend_name() != "sqlite" or Path(str(address.database)).is_file()


def blocked_sources(settings: Settings) -> dict[str, Blocked]:
    """Sources that nobody reads until they are unblocked, by name."""
    if not has_frontier(settings):
        return {}
    return blocked(settings.database_address("frontier"))


def pool_leases(settings: Settings) -> dict[str, Any]:
    """Nodes, token rates and owners, as `lease.shown` gives them; of no frontier, none."""
    if not has_frontier(settings):
        return {"nodes": {}, "imbalance": None, "moves": 0, "sources": {}}
    with closing(Frontier(settings.database_address("frontier"))) as frontier:
        return frontier.leases(settings.crawl.leases).show()


def publish_sources(settings: Settings, sources: Sequence[SourceConfig]) -> None:
    """From now on the pool's nodes read these; those that run hear of it within seconds."""
    settings.paths.frontier.mkdir(parents=True, exist_ok=True, mode=0o700)
    with closing(Frontier(settings.database_address("frontier"))) as frontier:
        frontier.leases(settings.crawl.leases).publish(sources)


def attach_pool(settings: Settings) -> PoolState:
    """Start the nodes that do not run, attach to those that do; starts nothing twice."""
    specs = node_specs(settings)
    publish_sources(settings, specs[0].sources)
    with dask_client(settings) as client:
        _require_workers(client, len(specs), settings)
        _on_event(client, "clear", settings.cluster.pool)
        _forget_ended(client, settings.cluster.pool)
        running = set(running_nodes(client, settings))
        started = []
        for spec in specs:
            if spec.name not in running:
                _submit(client, spec, settings)
                started.append(spec.name)
    shown = pool_leases(settings)
    reading = {
        spec.name: [name for name, lease in shown["sources"].items() if lease["node"] == spec.name]
        for spec in specs
    }
    return PoolState([spec.name for spec in specs], started, reading, shown["imbalance"])


def stop_pool(settings: Settings, *, timeout: float = 60.0) -> list[str]:
    """Ask every node to stop and wait; returns the nodes that ran."""
    with dask_client(settings) as client:
        running = running_nodes(client, settings)
        _on_event(client, "set", settings.cluster.pool)
        deadline = time.monotonic() + timeout
        while running_nodes(client, settings):
            if time.monotonic() > deadline:
                raise PlatformError(
                    f"nodes {', '.join(running_nodes(client, settings))} did not stop within "
                    f"{timeout:.0f} s; `yeoron down` ends them."
                )
            time.sleep(0.3)
    for name in running:
        spec_file(settings.paths.nodes, name).unlink(missing_ok=True)
    return running


def running_nodes(client: Any, settings: Settings) -> list[str]:
    """Names of the pool's nodes that the scheduler holds as running or waiting for a worker."""
    states = _states(client, settings.cluster.pool)
    return sorted(name for name, state in states.items() if state not in ENDED)


def _states(client: Any, pool: str) -> dict[str, str]:
    prefix = f"{pool}-node-"
    with _in_time(client):
        states: dict[str, str] = client.run_on_scheduler(
            _task_states, prefix=prefix, callback_timeout=CONNECT_SECONDS
        )
    return states


def _task_states(prefix: str, dask_scheduler: Any = None) -> dict[str, str]:
    """Runs on the scheduler: state by key of the tasks that start with `prefix`."""
    tasks = dask_scheduler.tasks.items()
    return {str(key): task.state for key, task in tasks if str(key).startswith(prefix)}


def _submit(client: Any, spec: NodeSpec, settings: Settings) -> None:
    """Start a node; returns when the scheduler has taken it, so that closing loses nothing."""
    from distributed import fire_and_forget

    pool = settings.cluster.pool
    fire_and_forget(submit_node(client, spec, pool, settings.paths.nodes))
    _wait(lambda: _states(client, pool).get(spec.name) not in {None, *ENDED}, spec.name, "start")


def _forget_ended(client: Any, pool: str) -> None:
    """Drop the results of nodes that ended, so that their keys can run again."""
    from distributed import Future

    ended = [name for name, state in _states(client, pool).items() if state in ENDED]
    if ended:
        client.cancel([Future(name, client) for name in ended], force=True)
        _wait(lambda: not set(ended) & set(_states(client, pool)), ", ".join(ended), "be dropped")


def _wait(done: Callable[[], bool], what: str, verb: str) -> None:
    deadline = time.monotonic() + CONNECT_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise PlatformError(
                f"{what} did not {verb} within {CONNECT_SECONDS:.0f} s; the Dask scheduler's log "
                "says why."
            )
        time.sleep(0.1)


def _on_event(client: Any, verb: str, pool: str) -> None:
    """Set or clear the pool's stop event; `distributed.Event` itself would wait for ever."""
    ask = getattr(client.scheduler, f"event_{verb}")
    with _in_time(client):
        client.sync(ask, name=f"{pool}-stop", callback_timeout=CONNECT_SECONDS)


@contextmanager
def _in_time(client: Any) -> Iterator[None]:
    """Say which scheduler is silent, instead of waiting for it for ever."""
    try:
        yield
    except TimeoutError as error:
        raise PlatformError(
            f"the Dask scheduler at {client.scheduler.address} took longer than "
            f"{CONNECT_SECONDS:.0f} s to answer; its log says why."
        ) from error


def _require_workers(client: Any, nodes: int, settings: Settings) -> None:
    """Wait until the cluster has a worker for each node."""
    try:
        client.wait_for_workers(nodes, timeout=CONNECT_SECONDS)
    except TimeoutError as error:
        have = len(client.scheduler_info(n_workers=-1)["workers"])
        raise PlatformError(
            f"the Dask cluster at {settings.dask_url} has {have} workers and the pool needs "
            f"{nodes}; start workers with `--resources node=1` or lower cluster.nodes."
        ) from error


def dask_security(settings: Settings) -> Any:
    """The certificate of all in the cluster, required of each: Dask unpickles what it receives."""
    from distributed import Security

    cert, key = settings.paths.dask_certificate
    if not (cert.is_file() and key.is_file()):
        raise PlatformError(
            f"{cert}: there is no certificate of the Dask cluster; `yeoron up` makes one."
        )
    files = {
        f"tls_{role}_{name}": str(path)
        for role in ("client", "scheduler", "worker")
        for name, path in (("cert", cert), ("key", key))
    }
    authority = str(settings.paths.dask_authority)
    return Security(require_encryption=True, tls_ca_file=authority, **files)


@contextmanager
def dask_client(settings: Settings) -> Iterator[Any]:
    """A client of the cluster; raises PlatformError with the address when it is not there."""
    from distributed import Client

    try:
        client = Client(
            settings.dask_url,
            security=dask_security(settings),
            timeout=CONNECT_SECONDS,
            set_as_default=False,
        )
    except (OSError, TimeoutError) as error:
        raise PlatformError(
            f"no Dask scheduler answers at {settings.dask_url} within {CONNECT_SECONDS:.0f} s; "
            "start the platform with `yeoron up`, or set ports.dask."
        ) from error
    try:
        yield client
    finally:
        client.close(timeout=10)
