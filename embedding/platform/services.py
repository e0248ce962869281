"""The services of one machine: what each runs, in which order, and how to tell it is ready."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from embedding.kernel.ports import bracketed
from embedding.settings import Settings
from embedding_airflow.environment import FREED_GOES_BACK, airflow_services, of_api_server


@dataclass(frozen=True)
class Service:
    """One long-running process under the supervisor.

    `ready` is an address that answers 200 once the service works (http) or accepts (tcp);
    `setting` names the setting of its port, for error messages.
    """

    name: str
    command: tuple[str, ...]
    ready: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    stop_seconds: int = 15


def _python(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, *arguments)


def yeoron(*arguments: str) -> tuple[str, ...]:
    """A command of Yeoron's own, as this process' Python runs it."""
    return _python("-m", "embedding.cli", *arguments)


def mlflow_service(settings: Settings) -> Service:
    """MLflow's tracking server with a local artifact folder, behind the platform's login."""
    return Service(
        name="mlflow",
        command=yeoron("mlflow"),
        ready=f"{settings.mlflow_url}/health",
        environment={"DO_NOT_TRACK": "true", **FREED_GOES_BACK},
    )


_SELDOM = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__TICK__CYCLE": "10s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
}
"""A node is one task for weeks: Dask would look 150 times a second where it stands."""
_PAGES = ("--preload", "embedding.kernel.dask_pages")


def _known(settings: Settings) -> tuple[str, ...]:
    """Dask unpickles what it is told: each shows a certificate of the platform, and asks for it."""
    cert, key = (str(path.resolve()) for path in settings.paths.dask_certificate)
    authority = str(settings.paths.dask_authority.resolve())
    return ("--tls-ca-file", authority, "--tls-cert", cert, "--tls-key", key)


def dask_scheduler(settings: Settings) -> Service:
    """Dask's scheduler, on loopback unless there are several hosts."""
    return Service(
        name="dask-scheduler",
        command=_python(
            *("-m", "distributed.cli.dask_scheduler"),
            *("--host", settings.hosts.address or "127.0.0.1"),
            *("--protocol", "tls", *_known(settings), *_PAGES),
            *("--port", str(settings.ports.dask), "--dashboard-address"),
            f"127.0.0.1:{settings.ports.dask_dashboard}",
        ),
        ready=f"http://127.0.0.1:{settings.ports.dask_dashboard}/health",
        # That a node's worker was killed for the fourth time says nothing against the node.
        environment={
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000000",
            # Otherwise in /tmp, under a name that another user of the machine can take first.
            "DASK_TEMPORARY_DIRECTORY": str(settings.paths.home.resolve() / "dask"),
            **_SELDOM,
        },
    )


def dask_workers(settings: Settings, scheduler: str, host: str) -> list[Service]:
    """One worker for each node of this host, which is `host` to Dask's scheduler."""
    count = settings.cluster.nodes if settings.hosts.workers is None else settings.hosts.workers
    # Names of workers are the scheduler's, which refuses two that are the same.
    prefix = "worker" if host == "127.0.0.1" else f"worker-{host}"
    scratch = str(settings.paths.home.resolve() / "dask")
    return [
        Service(
            name=f"dask-worker-{i}",
            command=_python(
                *("-m", "distributed.cli.dask_worker", scheduler, "--no-nanny"),
                *_known(settings),
                *_PAGES,
                # Without an address its HTTP server listens on every interface, dashboard or none.
                *("--host", host, "--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
                *("--nthreads", "2"),
                *("--name", f"{prefix}-{i}", "--resources", "node=1"),
                *("--memory-limit", "0", "--local-directory", scratch, "--death-timeout", "120"),
            ),
            environment=_SELDOM,
            stop_seconds=30,
        )
        for i in range(count)
    ]


def dask_services(settings: Settings) -> list[Service]:
    """Scheduler and workers of a platform on one host."""
    return [dask_scheduler(settings), *dask_workers(settings, settings.dask_url, "127.0.0.1")]


def door_service(settings: Settings) -> Service:
    """Answers hosts that join."""
    address = f"tcp://{bracketed(settings.hosts.address)}:{settings.hosts.port}"
    return Service("door", yeoron("door"), ready=address)


def relay_service(settings: Settings) -> Service:
    """Shows the pages of a parameter server that another host runs; ready at once: it may join
    later.
    """
    address = f"tcp://{bracketed(settings.server.http_host)}:{settings.server.http_port}"
    return Service("server-pages", yeoron("relay"), ready=address)


def server_service(settings: Settings) -> Service:
    """The parameter server."""
    return Service(
        name="server",
        command=yeoron("serve"),
        ready=settings.server_status_url.replace("/status", "/health"),
        stop_seconds=30,
    )


def airflow_processes(settings: Settings, environment: dict[str, str]) -> list[Service]:
    """Airflow's four processes; `environment` comes from `airflow_environment`."""
    health = f"{settings.airflow_url}/api/v2/monitor/health"
    return [
        Service(
            name=f"airflow-{name}",
            command=tuple(command),
            ready=health if name == "api-server" else "",
            environment=of_api_server(environment) if name == "api-server" else environment,
        )
        for name, command in airflow_services(environment).items()
    ]
