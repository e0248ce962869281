"""Is the machine as the platform needs it? Python, packages, memory, disk, ports, clock, limits."""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import psutil

from embedding.platform.doctor.diagnosis import Diagnosis, fine, warn, wrong
from embedding.platform.ports import holder, variable

_OLDEST, _NEWEST = (3, 11), (3, 13)
_GB = 1024**3
_NODE_GB, _REST_GB = 1.2, 3.5
"""Memory of a node, and of all other services together, as the demo has them."""
_DISK_WRONG, _DISK_WARN = 1 * _GB, 10 * _GB
_SHARED = 256 * 1024**2
_FILES = 1024
_AHEAD_S = 60.0
_BUILT = 1_735_689_600.0
"""2025-01-01: no clock that is right is before it."""
_LATEST = 4_102_444_800.0
"""2100-01-01."""

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "mlflow": ("mlflow", "matplotlib"),
    "airflow": ("airflow",),
    "platform": ("supervisor", "bokeh"),
    "mecab": ("mecab",),
    "render": ("playwright",),
    "s3": ("s3fs",),
}
"""Modules of each extra."""
_BASE = ("distributed", "kiwipiepy", "lxml", "numba", "pyarrow", "torch", "trafilatura")


def check_python(
    running: tuple[int, int] | None = None, *, root: bool | None = None
) -> Iterator[Diagnosis]:
    """The version, and whose process this is."""
    version = sys.version_info[:2] if running is None else running
    shown = ".".join(map(str, version))
    if _OLDEST <= version <= _NEWEST:
        yield fine(f"Python {shown}.")
    else:
        yield wrong(f"Python {shown}; 3.11 to 3.13 are supported.", "Make .venv with one of these.")
    if os.geteuid() == 0 if root is None else root:
        yield warn(
            "This is root; Chromium has no sandbox then, and whoever breaks in is root too.",
            "Run Yeoron as a user of its own.",
        )


def check_packages(needed: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Of the base, and of the extras that are needed.

    needed  extra → what needs it
    """
    gone = [name for name in _BASE if not _installed(name)]
    if gone:
        yield wrong(f"Packages are missing: {', '.join(gone)}.", "Run `make setup`.")
    for extra, why in needed.items():
        lacking = [name for name in EXTRAS[extra] if not _installed(name)]
        if lacking:
            yield wrong(
                f"{why} needs {', '.join(lacking)}, which is not installed.",
                f"pip install 'yeoron[{extra}]'",
            )
    if not gone and all(_installed(name) for extra in needed for name in EXTRAS[extra]):
        extras = f", and those of {', '.join(needed)}" if needed else ""
        yield fine(f"All packages are there{extras}.")


def _installed(module: str) -> bool:
    return find_spec(module) is not None


def check_memory(
    nodes: int, *, available: float | None = None, swap: int | None = None
) -> Iterator[Diagnosis]:
    """Bytes of free memory for so many nodes and the services, and whether text may be swapped."""
    free = psutil.virtual_memory().available if available is None else available
    need = (_REST_GB + _NODE_GB * nodes) * _GB
    shown = f"{free / _GB:.1f} GB of memory are free; {nodes} nodes and the services take some "
    shown += f"{need / _GB:.1f} GB"
    if free < need / 2:
        yield wrong(f"{shown}.", "Add memory, or set cluster.nodes lower.")
    elif free < need:
        yield warn(f"{shown}.", "Add memory, or set cluster.nodes lower.")
    else:
        yield fine(f"{shown}.")
    if psutil.swap_memory().total if swap is None else swap:
        yield warn(
            "Swap is on: text in memory may be written to the disk.",
            "Switch it off (swapoff -a), or encrypt it.",
        )


def check_shared_memory(folder: Path = Path("/dev/shm")) -> Iterator[Diagnosis]:  # noqa: S108
    """Room for the queues between processes."""
    if not folder.is_dir():
        yield warn(f"{folder} is not there.", "Mount a tmpfs there; containers: --shm-size=1g.")
        return
    free = shutil.disk_usage(folder).free
    if free < _SHARED:
        yield wrong(
            f"{folder} has {free / 1024**2:.0f} MB free; queues between processes lie there.",
            "Give it 1 GB (containers: --shm-size=1g).",
        )
    else:
        yield fine(f"{folder} has {free / _GB:.1f} GB free.")


def check_limits(files: int | None = None) -> Iterator[Diagnosis]:
    """How many files a process may open."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if files is None else files
    if most < _FILES:
        yield wrong(f"A process may open {most} files.", f"Allow {_FILES} (ulimit -n {_FILES}).")
    else:
        yield fine(f"A process may open {most:,} files.")


def check_disk(home: Path) -> Iterator[Diagnosis]:
    """Whether the home can be written, and how much room there is."""
    folder = next(parent for parent in (home, *home.absolute().parents) if parent.is_dir())
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        yield wrong(
            f"{folder} cannot be written ({error.strerror}).",
            "Set paths.home to a folder of your own, or free its disk.",
        )
        return
    free = shutil.disk_usage(folder).free
    shown = f"{folder} can be written and has {free / _GB:.1f} GB free."
    if free < _DISK_WRONG:
        yield wrong(shown, "Free some; a checkpoint that does not fit is not written.")
    elif free < _DISK_WARN:
        yield warn(shown, "Snapshots grow: have 10 GB, or set [retention].")
    else:
        yield fine(shown)


def check_ports(
    ports: Mapping[str, int], free: Mapping[int, bool], *, runs: bool
) -> Iterator[Diagnosis]:
    """Whether each service finds its port.

    free  by port; runs  the platform runs, and has taken them itself
    """
    seen: dict[int, str] = {}
    good = True
    for name, port in ports.items():
        if port and port in seen:
            good = False
            yield wrong(
                f"Port {port} is set twice: {seen[port]} and {name}.", f"Set {variable(name)}."
            )
        elif not runs and not free.get(port, True):
            good = False
            yield wrong(
                f"Port {port} ({name}) is taken by {holder(port)}.",
                f"End that process, or set {variable(name)}.",
            )
        seen[port] = name
    if good:
        yield fine(
            "The platform runs on its ports." if runs else f"All {len(ports)} ports are free."
        )


def check_clock(home: Path, *, now: float | None = None) -> Iterator[Diagnosis]:
    """Whether the time can be right: windows and leases go by it."""
    clock = time.time() if now is None else now
    if not _BUILT < clock < _LATEST:
        yield wrong(
            f"The clock says {time.strftime('%Y-%m-%d', time.gmtime(clock))}.",
            "Set it, and keep it right (NTP).",
        )
        return
    written = [path.stat().st_mtime for path in _recent(home)]
    ahead = max(written, default=clock) - clock
    if ahead > _AHEAD_S:
        yield wrong(
            f"Files of {home} are {ahead:,.0f} s ahead of the clock: it was set back.",
            "Set it right (NTP); leases of sources wait for it otherwise.",
        )
    else:
        yield fine(f"The clock says {time.strftime('%Y-%m-%d %H:%M', time.gmtime(clock))} UTC.")


def _recent(home: Path) -> list[Path]:
    folders = ("checkpoints", "frontier", "logs", "snapshots")
    return [path for name in folders if (home / name).is_dir() for path in (home / name).iterdir()]
