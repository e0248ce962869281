"""Starting and ending all services under one supervisord.

supervisord restarts a service that dies, keeps its log small, and listens on a Unix socket only.
It is called there by XML-RPC, as supervisorctl does it: a process of supervisorctl takes 0.15 s of
a processor, and a start asks twice a second.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import xmlrpc.client
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from embedding.kernel.errors import PlatformError
from embedding.kernel.private import private_folder
from embedding.platform.processes import (
    MARK,
    SERVICES_FILE,
    end_all,
    mark,
    marked,
    record_session,
    supervisor_pid,
)
from embedding.platform.services import Service

HEADER = """\
[supervisord]
nodaemon=false
umask=077
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


_START_SECONDS = 20.0
_LONGEST_SOCKET = 90
"""Bytes of a socket's path: 107 are allowed, and supervisord adds its process id at first."""


NOT_RUNNING = 70
"""Fault that stopping a service which does not run gives (`supervisor.xmlrpc.Faults`)."""

UNANSWERED = (OSError, httpx.HTTPError, xmlrpc.client.Error)
"""What a call raises where supervisord is away, is ending, or refuses."""


def call_supervisor(path: Path, method: str, *arguments: Any, timeout: float = 120) -> Any:
    """What the method `supervisor.*` of the supervisord on the socket `path` returns.

    Waits `timeout` seconds at most. Raises one of `UNANSWERED`.
    """
    request = xmlrpc.client.dumps(arguments, f"supervisor.{method}")
    # Nothing is to be verified on a socket; reading the authorities would take 20 ms a call.
    transport = httpx.HTTPTransport(verify=False, uds=str(path))
    with httpx.Client(transport=transport, timeout=timeout, trust_env=False) as client:
        headers = {"content-type": "text/xml"}
        response = client.post("http://localhost/RPC2", content=request, headers=headers)
    (result,), _ = xmlrpc.client.loads(response.raise_for_status().content)
    return result


def _escape(text: object) -> str:
    """supervisord expands %(name)s everywhere."""
    return str(text).replace("%", "%%")


class Supervisor:
    """One supervisord for the platform whose state is in `home`."""

    def __init__(self, home: Path, logs: Path) -> None:
        self.home = home.resolve()
        self.logs = logs.resolve()
        self.run = self.home / "run"
        self.configuration = self.run / "supervisord.conf"
        self.services = self.run / SERVICES_FILE

    @property
    def socket(self) -> Path:
        """supervisord's socket: in the run folder, or behind its link where that path is long."""
        inside = self.run / "supervisor.sock"
        if self._fits or not self._link.is_symlink():
            return inside
        return self._link.readlink() / inside.name

    @property
    def _link(self) -> Path:
        return self.run / "socket"

    @property
    def _fits(self) -> bool:
        return len(os.fsencode(self.run / "supervisor.sock")) <= _LONGEST_SOCKET

    def write(self, services: Sequence[Service]) -> None:
        """Write configuration and environments, readable by their owner only."""
        for folder in (self.run, self.logs):
            private_folder(folder)
        self._place_socket()
        run, logs, socket = (_escape(path) for path in (self.run, self.logs, self.socket))
        parts = [HEADER.format(logs=logs, run=run, socket=socket)]
        jobs = {}
        for service in services:
            environment = {**service.environment, MARK: mark(self.home)}
            jobs[service.name] = {"command": service.command, "environment": environment}
            launcher = ("-m", "embedding.platform.launch", str(self.services), service.name)
            parts.append(
                PROGRAM.format(
                    name=service.name,
                    command=_escape(shlex.join((sys.executable, *launcher))),
                    stop_seconds=service.stop_seconds,
                    logs=_escape(logs),  # this one setting is expanded twice
                )
            )
        for path, text in ((self.services, json.dumps(jobs)), (self.configuration, "".join(parts))):
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")

    def _place_socket(self) -> None:
        """Where the run folder's path is too long for a socket, a folder of a name not to guess."""
        if self._fits or self._link.is_dir():
            return
        self._link.unlink(missing_ok=True)
        self._link.symlink_to(tempfile.mkdtemp(prefix="yeoron-"))

    def _clear_socket(self) -> None:
        self.socket.unlink(missing_ok=True)
        if self._link.is_symlink():
            with suppress(OSError):
                self._link.readlink().rmdir()
            self._link.unlink()

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
        deadline = time.monotonic() + _START_SECONDS
        while (pid := self.pid()) is None:
            if time.monotonic() > deadline:
                raise PlatformError(
                    f"the supervisor did not start within {_START_SECONDS:.0f} s; "
                    f"see {self.logs}/supervisord.log."
                )
            time.sleep(0.1)
        record_session(self.home, pid)

    def pid(self) -> int | None:
        return supervisor_pid(self.run)

    def states(self) -> dict[str, str]:
        """State of every service by name (`RUNNING`, `FATAL`, …); empty when not running."""
        return {process["name"]: process["statename"] for process in self._all()}

    def pids(self) -> dict[str, int]:
        return {process["name"]: process["pid"] for process in self._all() if process["pid"]}

    def _all(self) -> list[dict[str, Any]]:
        if not self.socket.exists():
            return []
        with suppress(*UNANSWERED):
            processes: list[dict[str, Any]] = call_supervisor(self.socket, "getAllProcessInfo")
            return processes
        return []

    def restart(self, name: str) -> None:
        """End a service and start it again; one that does not stay shows in `states`."""
        with suppress(*UNANSWERED):
            try:
                call_supervisor(self.socket, "stopProcess", name)
            except xmlrpc.client.Fault as fault:
                if fault.faultCode != NOT_RUNNING:
                    raise
            call_supervisor(self.socket, "startProcess", name)

    def stop(self) -> int:
        """End supervisord, every service and every orphan. Returns how many processes ran."""
        ran = len(marked(self.home))
        if self.socket.exists() and self.configuration.exists():
            with suppress(*UNANSWERED):
                # They end one after the other; Airflow's, which take longest, beside the others.
                for name in self.pids():
                    if name.startswith("airflow-"):
                        call_supervisor(self.socket, "stopProcess", name, False)
                call_supervisor(self.socket, "shutdown")
            # Its socket goes first; the services have ended when its process has.
            deadline = time.monotonic() + 45
            while self.pid() is not None and time.monotonic() < deadline:
                time.sleep(0.2)
        end_all(self.home)
        self._clear_socket()
        return ran

    def log_tail(self, name: str, lines: int = 12) -> str:
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
                for name, state in self.states().items():
                    if state == "FATAL":
                        raise PlatformError(
                            f"{name} could not be started; the end of {self.logs}/{name}.log:\n"
                            f"{self.log_tail(name)}"
                        )
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


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        if url.startswith("tcp://"):
            parts = urlsplit(url)
            socket.create_connection((parts.hostname or "", parts.port or 0), timeout=3).close()
            return True
        return client.get(url).status_code == 200
    except (httpx.HTTPError, OSError):
        return False
