"""The result file of a bench, and what it says of the machine and the software."""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from embedding.kernel.errors import YeoronError

RESULTS = Path(__file__).parent / "results"


def facts(
    bench: str, packages: Sequence[str], machine: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What a report begins with: which bench, when, on what and with what.

    machine  as it was before the runs, its load too; None: as it is now
    """
    return {
        "bench": bench,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": hardware() if machine is None else machine,
        "versions": versions(packages),
    }


def keep(
    report: dict[str, Any], table: str | None = None, *, results: Path = RESULTS, part: str = ""
) -> Path:
    """Write a report that begins with `facts`, and the table of it for readers; returns its file.

    part  what tells this run from others of the bench
    """
    results.mkdir(parents=True, exist_ok=True)
    when = datetime.fromisoformat(report["when"])
    name = "-".join(filter(None, (report["bench"], f"{when:%Y-%m-%dT%H%M%S}", part)))
    path = results / f"{name}.json"
    path.write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if table is not None:
        (results / f"{name}.md").write_text(table, encoding="utf-8")
    return path


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


def ended(bench: Callable[[], object]) -> int:
    """Exit code of a bench: 0, or that of its error, which is said on stderr in one sentence."""
    try:
        bench()
    except YeoronError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0
