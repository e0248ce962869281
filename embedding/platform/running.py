"""Which platform runs now, known by the files that its supervisor keeps in `<home>/run`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from embedding.platform.processes import MARK

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
        """What a sentence calls it."""
        return "demo" if self.home.name == "demo" else "platform"


def homes(home: Path) -> tuple[Path, Path]:
    """Where the platform's state may be: its own home, and that of its demo."""
    return home, home / "demo"


def running_platform(home: Path) -> RunningPlatform | None:
    """The platform that runs in `home`, or its demo; None when neither does."""
    for one in homes(home):
        run = one / "run"
        if supervisor_pid(run) is not None:
            return RunningPlatform(one, _environment(run / SERVICES_FILE))
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
        held = json.loads(services.read_text(encoding="utf-8"))
        given: dict[str, str] = next(iter(held.values()))["environment"]
    except (OSError, ValueError, StopIteration, KeyError, TypeError, AttributeError):
        return {}
    return {k: v for k, v in given.items() if k.startswith("YEORON_") and k != MARK}
