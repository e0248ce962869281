"""Run a program where nothing can be written but one folder: a mount namespace of its own.

unshare --mount python readonly.py FOLDER program …
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KERNEL = {"proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue", "debugfs", "tracefs"}


def mounted() -> list[tuple[str, str, str]]:
    """(place, kind, options) of every mount, the last first."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" ") for line in lines]
    return [(row[1].replace("\\040", " "), row[2], row[3]) for row in reversed(rows)]


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, timeout=300, capture_output=True)


def seal(folder: str) -> None:
    """Leave `folder` writable and nothing else that is a file system."""
    mount("--make-rprivate", "/")
    mount("--bind", folder, folder)
    for place, kind, options in mounted():
        if place == folder or kind in KERNEL or options.startswith("ro"):
            continue
        mount("-o", "remount,bind,ro", place)
    for place in ("/", "/tmp", "/dev/shm", "/var/tmp", str(Path.home())):
        try:
            Path(place, ".yeoron-probe").touch()
        except OSError:
            continue
        raise SystemExit(f"{place} can be written")
    Path(folder, ".yeoron-probe").touch()
    Path(folder, ".yeoron-probe").unlink()


if __name__ == "__main__":
    seal(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
