"""`up` and `down`: bring every service of one machine up, and end all of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import embedding_airflow
from embedding.backup.staging import unfinished
from embedding.kernel.errors import ConfigError, PlatformError
from embedding.kernel.logs import FORMAT_VARIABLE
from embedding.kernel.private import private_folder
from embedding.platform.databases import check_databases, require_moved
from embedding.platform.hosts import (
    address_now,
    ensure_authority,
    joined_host,
    require_shared,
)
from embedding.platform.ports import port_settings, require_free
from embedding.platform.processes import MARK, homes, mark, marked
from embedding.platform.services import (
    Service,
    airflow_processes,
    dask_scheduler,
    dask_workers,
    door_service,
    mlflow_service,
    relay_service,
    server_service,
    yeoron,
)
from embedding.platform.supervisor import Supervisor
from embedding.settings import SETTINGS_VARIABLE, PathsConfig, Settings
from embedding_airflow.environment import airflow_environment, migrate_command

_Progress = Callable[[str], None]


def airflow_variables(settings: Settings) -> dict[str, str]:
    """The environment of Airflow's processes: `AIRFLOW__*` and where Yeoron's settings are."""
    root = Path(embedding_airflow.__file__).resolve().parents[2]
    variables = airflow_environment(
        settings.paths.airflow.resolve(),
        port=settings.ports.airflow,
        dags=root / "dags",
        plugins=root / "plugins",
        parallelism=settings.database.tasks,
        database=settings.database_address("airflow"),
    )
    return {**variables, **settings.trace.airflow}


def service_environment() -> dict[str, str]:
    """What every service inherits: the settings file by absolute path, few threads, no telemetry.

    Numerical libraries are held to one thread a process: the platform's parallelism is its
    processes, and a pool of threads in each of twenty processes would only contend. Memory that
    was freed goes back: with an arena a thread, or Arrow's own allocator, a parameter server keeps
    half as much again of what it once needed.
    """
    environment = {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONUNBUFFERED": "1",
        "MALLOC_ARENA_MAX": "2",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    own = {k: v for k, v in os.environ.items() if k.startswith("YEORON_") and k != MARK}
    environment.update(own)
    if SETTINGS_VARIABLE in environment:
        environment[SETTINGS_VARIABLE] = str(Path(environment[SETTINGS_VARIABLE]).resolve())
    return environment


def prepare_airflow(settings: Settings, environment: dict[str, str]) -> None:
    """Create or migrate Airflow's database."""
    settings.paths.airflow.mkdir(parents=True, exist_ok=True, mode=0o700)
    done = subprocess.run(  # noqa: S603
        migrate_command(),
        env={**os.environ, **environment, MARK: mark(settings.paths.home)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise PlatformError(f"Airflow's database could not be prepared: {' '.join(lines[-2:])}")


def all_services(settings: Settings, extra: Sequence[Service] = ()) -> list[Service]:
    """Every service in the order they are started."""
    here = settings.hosts.address or "127.0.0.1"
    services = [
        *extra,
        relay_service(settings) if settings.hosts.server else server_service(settings),
        dask_scheduler(settings),
        *([door_service(settings)] if settings.hosts.address else []),
        *dask_workers(settings, settings.dask_url, here),
        mlflow_service(settings),
        *airflow_processes(settings, airflow_variables(settings)),
    ]
    return with_common(settings, services)


def with_common(settings: Settings, services: Sequence[Service]) -> list[Service]:
    """The services with the environment that all of them share."""
    common = {
        **service_environment(),
        **settings.trace.environment,
        FORMAT_VARIABLE: settings.log.format,
    }
    return [replace(service, environment={**common, **service.environment}) for service in services]


def require_stopped(settings: Settings) -> Supervisor:
    """The home's supervisor, which runs nothing; PlatformError where it does."""
    supervisor = Supervisor(settings.paths.home, settings.paths.logs)
    if supervisor.states():
        raise PlatformError(
            f"the platform in {settings.paths.home} is already running; `yeoron down` ends it."
        )
    return supervisor


def bring_up(
    settings: Settings,
    *,
    extra: Sequence[Service] = (),
    progress: _Progress = lambda _: None,
    timeout: float = 240,
) -> Supervisor:
    """Start every service and wait until each answers; on failure nothing is left running."""
    supervisor = require_stopped(settings)
    if unfinished(settings.paths.home):
        raise PlatformError(
            f"a restore into {settings.paths.home} was cut off; run the same `yeoron restore` once "
            "more."
        )
    host = joined_host(settings.paths)
    if host is not None:
        if settings.hosts.address:
            raise ConfigError(
                f"hosts.address {settings.hosts.address}: {settings.paths.home} has joined a "
                "control host, and is none itself; leave it out, or use another paths.home."
            )
        own = [server_service(settings)]
        if host.role != "server":
            own = dask_workers(settings, host.scheduler, address_now(host))
            if host.control:
                own.append(Service("delivery", yeoron("deliver")))
        return _started(supervisor, with_common(settings, own), progress, timeout)
    require_shared(settings, settings.database_address("frontier"))
    require_moved(settings)
    check_databases(settings)
    private_folder(settings.paths.home)
    require_free(port_settings(settings, simweb=bool(extra)))
    ensure_authority(settings)
    services = all_services(settings, extra)
    for folder in (settings.paths.mlflow, settings.paths.snapshots, settings.paths.frontier):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        prepare_airflow(
            settings, next(s for s in services if s.name == "airflow-scheduler").environment
        )
        progress("airflow-database")
    except BaseException:
        supervisor.stop()
        raise
    return _started(supervisor, services, progress, timeout)


def _started(
    supervisor: Supervisor, services: Sequence[Service], progress: _Progress, timeout: float
) -> Supervisor:
    try:
        supervisor.write(services)
        supervisor.start()
        supervisor.wait_ready(services, timeout=timeout, progress=progress)
    except BaseException:
        supervisor.stop()
        raise
    return supervisor


def supervisors(settings: Settings) -> list[Supervisor]:
    """The supervisors that may run: the platform's and its demo's."""
    return [Supervisor(home, home / "logs") for home in homes(settings.paths.home)]


def running_supervisor(settings: Settings) -> Supervisor | None:
    """The supervisor that runs now, None when none does."""
    return next((supervisor for supervisor in supervisors(settings) if supervisor.states()), None)


def bring_down(settings: Settings) -> int:
    """End the platform of `settings` and of its demo; returns how many processes ran.

    Raises PlatformError when a process is left.
    """
    ran = 0
    for supervisor in supervisors(settings):
        ran += supervisor.stop()
        # What its nodes had to know: sources with their cookies, the key of pseudonyms.
        shutil.rmtree(PathsConfig(home=supervisor.home).nodes, ignore_errors=True)
        left = marked(supervisor.home)
        if left:
            raise PlatformError(
                f"{len(left)} processes would not end: {', '.join(str(p.pid) for p in left)}."
            )
    return ran
