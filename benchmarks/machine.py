"""What a result file says about the machine and the software it was measured on."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any


def versions(packages: Sequence[str]) -> dict[str, str]:
    return {name: version(name) for name in packages} | {"python": platform.python_version()}


def hardware() -> dict[str, Any]:
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = models[0].split(":", 1)[1].strip() if models else cpu
    load = os.getloadavg()[0]
    return {"cpu": cpu, "cores": os.cpu_count(), "system": platform.system(), "load_1min": load}


def free_port() -> int:
    """A port of loopback that nobody has at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
