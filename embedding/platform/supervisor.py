"""Starting and ending all services under one supervisord.

supervisord restarts a service that dies, keeps its log small, and listens on a Unix socket only.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import psutil

from embedding.errors import PlatformError
from embedding.platform.processes import MARK, end_all, mark, marked, record_session
from embedding.platform.services import Service

HEADER = """\
[supervisord]
nodaemon=false
logfile={logs}/supervisord.log
logfile_maxbytes=5MB
logfile_backups=1
pidfile={run}/supervisord.pid
childlogdir={logs}
silent=true

[unix_http_server]
file={socket}
chmod=0600

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface

[supervisorctl]
serverurl=unix://{socket}
"""

PROGRAM = """
[program:{name}]
command={command}
environment={environment}
directory={directory}
autorestart=true
startsecs=2
startretries=5
stopwaitsecs={stop_seconds}
stopasgroup=true
killasgroup=true
redirect_stderr=true
stdout_logfile={logs}/{name}.log
stdout_logfile_maxbytes=20MB
stdout_logfile_backups=1
"""


def _escape(text: str) -> str:
    """supervisord expands %(name)s everywhere."""
    return text.replace("%", "%%")


class Supervisor:
    """One supervisord for the platform whose state is in `home`."""

    def __init__(self, home: Path, logs: Path) -> None:
        self.home = home.resolve()
        self.logs = logs.resolve()
        self.run = self.home / "run"
        self.configuration = self.run / "supervisord.conf"
        digest = hashlib.sha256(str(self.home).encode()).hexdigest()[:16]
        self.socket = Path(tempfile.gettempdir()) / f"yeoron-{os.getuid()}-{digest}.sock"

    def write(self, services: Sequence[Service]) -> None:
        """Write the configuration, readable by its owner only."""
        for folder in (self.run, self.logs):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        parts = [HEADER.format(logs=self.logs, run=self.run, socket=self.socket)]
        for service in services:
            environment = {**service.environment, MARK: mark(self.home)}
            pairs = ",".join(
                f'{name}="{_escape(value)}"' for name, value in sorted(environment.items())
            )
            parts.append(
                PROGRAM.format(
                    name=service.name,
                    command=_escape(shlex.join(service.command)),
                    environment=pairs,
                    directory=Path.cwd(),
                    stop_seconds=service.stop_seconds,
                    logs=self.logs,
                )
            )
        self.configuration.touch(mode=0o600)
        self.configuration.write_text("".join(parts), encoding="utf-8")

    def start(self) -> None:
        """Start supervisord and with it every service."""
        environment = {**os.environ, MARK: mark(self.home)}
        done = subprocess.run(  # noqa: S603 (our own interpreter, our own file)
            [sys.executable, "-m", "supervisor.supervisord", "-c", str(self.configuration)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            lines = (done.stdout + done.stderr).strip().splitlines()
            raise PlatformError(
                f"the supervisor did not start: {lines[-1] if lines else 'no output'} "
                f"(see {self.logs}/supervisord.log)."
            )
        pid = self._wait_pid()
        record_session(self.home, pid)

    def _wait_pid(self, timeout: float = 20.0) -> int:
        """Process id of the supervisord that was just started."""
        deadline = time.monotonic() + timeout
        while True:
            pid = self.pid()
            if pid is not None:
                return pid
            if time.monotonic() > deadline:
                raise PlatformError(
                    f"the supervisor did not start within {timeout:.0f} s; "
                    f"see {self.logs}/supervisord.log."
                )
            time.sleep(0.1)

    def pid(self) -> int | None:
        """Process id of the supervisord that runs, None when none does."""
        try:
            pid = int((self.run / "supervisord.pid").read_text().strip())
            return pid if "supervisor" in " ".join(psutil.Process(pid).cmdline()) else None
        except (OSError, ValueError, psutil.Error):
            return None

    def control(self, *arguments: str, timeout: float = 120) -> str:
        """Run supervisorctl; its output."""
        done = subprocess.run(  # noqa: S603
            [
                *(sys.executable, "-m", "supervisor.supervisorctl"),
                *("-c", str(self.configuration), *arguments),
            ],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return done.stdout.strip()

    def states(self) -> dict[str, str]:
        """State of every service by name (`RUNNING`, `FATAL`, …); empty when not running."""
        if not self.socket.exists():
            return {}
        lines = self.control("status").splitlines()
        pairs = [line.split()[:2] for line in lines if len(line.split()) >= 2]
        known = {"RUNNING", "STARTING", "STOPPED", "BACKOFF", "FATAL", "EXITED", "STOPPING"}
        return {name: state for name, state in pairs if state in known}

    def stop(self) -> int:
        """End supervisord, every service and every orphan. Returns how many processes ran."""
        ran = len(marked(self.home))
        if self.socket.exists() and self.configuration.exists():
            self.control("shutdown")
            # Its socket goes first; the services have ended when its process has.
            deadline = time.monotonic() + 45
            while self.pid() is not None and time.monotonic() < deadline:
                time.sleep(0.2)
        end_all(self.home)
        self.socket.unlink(missing_ok=True)
        return ran

    def log_tail(self, name: str, lines: int = 12) -> str:
        """The end of a service's log."""
        try:
            text = (self.logs / f"{name}.log").read_text(errors="replace")
        except OSError:
            return "(no log)"
        return "\n".join(text.splitlines()[-lines:])

    def wait_ready(
        self,
        services: Sequence[Service],
        *,
        timeout: float = 180,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Wait until every service answers; raises PlatformError with the log of one that fails."""
        waiting = {service.name: service for service in services if service.ready}
        deadline = time.monotonic() + timeout
        with httpx.Client(timeout=3, trust_env=False) as client:
            while waiting:
                self._fail_on_fatal()
                for name, service in list(waiting.items()):
                    if _answers(client, service.ready):
                        progress(name)
                        del waiting[name]
                if waiting and time.monotonic() > deadline:
                    name = next(iter(waiting))
                    raise PlatformError(
                        f"{name} did not answer at {waiting[name].ready} within {timeout:.0f} s; "
                        f"the end of {self.logs}/{name}.log:\n{self.log_tail(name)}"
                    )
                time.sleep(0.5)

    def _fail_on_fatal(self) -> None:
        for name, state in self.states().items():
            if state == "FATAL":
                raise PlatformError(
                    f"{name} could not be started; the end of {self.logs}/{name}.log:\n"
                    f"{self.log_tail(name)}"
                )


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url).status_code == 200
    except httpx.HTTPError:
        return False
