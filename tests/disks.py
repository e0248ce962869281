"""A file system that is small enough to fill."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Sixteen megabytes of its own under `folder`; skips where none can be mounted."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, timeout=300).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True, timeout=300)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Not a byte is left on it meanwhile."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as held, contextlib.suppress(OSError):
        while True:
            held.write(b"x" * 4096)
    try:
        yield
    finally:
        filler.unlink()
