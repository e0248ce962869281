"""Which processes belong to a platform, and how they end: no orphan is left, whatever started it.

Two marks find them. Every service is started with `YEORON_PLATFORM=<absolute home>` in its
environment, which its children inherit: Airflow's LocalExecutor workers, Chromium. Some programs
(Airflow's API server, Dask's scheduler) write their title over their environment, so the session
of the supervisor is recorded as well: they stay in it when their parents are gone.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from embedding.kernel import processes

MARK = "YEORON_PLATFORM"


def mark(home: Path) -> str:
    """The value of the mark for the platform whose state is in `home`."""
    return str(home.resolve())


def _session_file(home: Path) -> Path:
    return home / "run" / "session.json"


def record_session(home: Path, pid: int) -> None:
    """Remember the session of process `pid`; it counts until the machine is started again."""
    values = {
        "session": os.getsid(pid),
        "since": psutil.Process(pid).create_time(),
        "boot": psutil.boot_time(),
    }
    _session_file(home).write_text(json.dumps(values), encoding="utf-8")


def _session(home: Path) -> tuple[int, float] | None:
    """(session, since) that was recorded since the machine was started."""
    try:
        values = json.loads(_session_file(home).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if abs(float(values["boot"]) - psutil.boot_time()) > 5:
        return None
    return int(values["session"]), float(values["since"])


def marked(home: Path) -> list[psutil.Process]:
    """Every live process of the platform in `home`, without this process and its parents."""
    value = mark(home)
    session = _session(home)
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    ours = []
    for process in psutil.process_iter():
        if process.pid in own:
            continue
        try:
            if process.status() != psutil.STATUS_ZOMBIE and _ours(process, value, session):
                ours.append(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess, OSError):
            continue
    return ours


def _ours(process: psutil.Process, value: str, session: tuple[int, float] | None) -> bool:
    if process.environ().get(MARK) == value:
        return True
    if session is None or os.getsid(process.pid) != session[0]:
        return False
    return process.create_time() >= session[1] - 1


def end_all(home: Path, *, patience: float = 10.0) -> int:
    """End every marked process, also those that appear meanwhile. Returns how many there were."""
    ended = 0
    deadline = time.monotonic() + 4 * patience
    while time.monotonic() < deadline:
        left = marked(home)
        if not left:
            return ended
        ended += len(left)
        processes.end_all(left, patience)
    return ended


def memory(home: Path) -> int:
    """Resident bytes of all marked processes, shared pages counted once (PSS where allowed)."""
    return sum(map(processes.memory_of, marked(home)))


PID_FILE = "supervisord.pid"
SERVICES_FILE = "services.json"


@dataclass(frozen=True)
class RunningPlatform:
    """A platform that runs.

    environment  the variables `YEORON_*` that its services have: their settings file, if any, and
                 single settings
    """

    home: Path
    environment: Mapping[str, str]

    @property
    def name(self) -> str:
        return "demo" if self.home.name == "demo" else "platform"


def homes(home: Path) -> tuple[Path, Path]:
    """Where the platform's state may be: its own home, and that of its demo."""
    return home, home / "demo"


def running_platform(home: Path) -> RunningPlatform | None:
    """The platform that runs in `home`, or its demo; None when neither does."""
    for state in homes(home):
        run = state / "run"
        if supervisor_pid(run) is not None:
            return RunningPlatform(state, _environment(run / SERVICES_FILE))
    return None


def supervisor_pid(run: Path) -> int | None:
    """Process id of the supervisor whose files are in `run`; None when none runs."""
    try:
        pid = int((run / PID_FILE).read_text().strip())
        return pid if "supervisor" in " ".join(psutil.Process(pid).cmdline()) else None
    except (OSError, ValueError, psutil.Error):
        return None


def _environment(services: Path) -> dict[str, str]:
    """The settings that the services were given; none where the file cannot be read."""
    try:
        stored = json.loads(services.read_text(encoding="utf-8"))
        given: dict[str, str] = next(iter(stored.values()))["environment"]
    except (OSError, ValueError, StopIteration, KeyError, TypeError, AttributeError):
        return {}
    return {k: v for k, v in given.items() if k.startswith("YEORON_") and k != MARK}
