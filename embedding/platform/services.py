"""The services of one machine: what each runs, in which order, and how to tell it is ready."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from embedding.settings import Settings
from embedding_airflow.environment import airflow_services


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


def _yeoron(*arguments: str) -> tuple[str, ...]:
    return _python("-m", "embedding.cli", *arguments)


def mlflow_service(settings: Settings) -> Service:
    """MLflow's tracking server with a local artifact folder."""
    home = settings.paths.mlflow.resolve()
    return Service(
        name="mlflow",
        command=_python(
            *("-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"),
            *("--port", str(settings.ports.mlflow)),
            *("--artifacts-destination", str(home / "artifacts")),
        ),
        ready=f"{settings.mlflow_url}/health",
        environment={
            # Not an argument, which everybody on the machine sees.
            "MLFLOW_BACKEND_STORE_URI": settings.database_address("mlflow"),
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "DO_NOT_TRACK": "true",
            # Background jobs are for hosted features that nobody here uses; they cost 0.5 GB.
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        },
    )


def dask_services(settings: Settings) -> list[Service]:
    """Dask's scheduler and one worker a node, all on loopback.

    They unpickle what they are told: each shows the platform's certificate, and asks for it.
    """
    cert, key = (str(path.resolve()) for path in settings.paths.dask_certificate)
    known = ("--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key)
    pages = ("--preload", "embedding.platform.dask_pages")
    scheduler = Service(
        name="dask-scheduler",
        command=_python(
            *("-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"),
            *("--protocol", "tls", *known, *pages),
            *("--port", str(settings.ports.dask), "--dashboard-address"),
            f"127.0.0.1:{settings.ports.dask_dashboard}",
        ),
        ready=f"http://127.0.0.1:{settings.ports.dask_dashboard}/health",
        # A node is a task for weeks: that its worker was killed for the fourth time says nothing
        # against it.
        environment={"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000000"},
    )
    scratch = str(settings.paths.home.resolve() / "dask")
    workers = [
        Service(
            name=f"dask-worker-{i}",
            command=_python(
                *("-m", "distributed.cli.dask_worker", settings.dask_url, "--no-nanny"),
                *known,
                *pages,
                # Without an address its HTTP server listens on every interface, dashboard or none.
                *("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
                *("--nthreads", "2"),
                *("--name", f"worker-{i}", "--resources", "node=1"),
                *("--memory-limit", "0", "--local-directory", scratch, "--death-timeout", "120"),
            ),
            stop_seconds=30,
        )
        for i in range(settings.cluster.nodes)
    ]
    return [scheduler, *workers]


def server_service(settings: Settings) -> Service:
    """The parameter server."""
    return Service(
        name="server",
        command=_yeoron("serve"),
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
            environment=environment,
        )
        for name, command in airflow_services(environment).items()
    ]


def simweb_service(settings: Settings, *arguments: str) -> Service:
    """The simulated web of the demo."""
    port = settings.ports.simweb
    return Service(
        name="simweb",
        command=_yeoron("simweb", "--port", str(port), *arguments),
        ready=f"http://127.0.0.1:{port}/clock.json",
    )
