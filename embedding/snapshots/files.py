"""Entries of a snapshot's files, and a lock between processes."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embedding.kernel.durable import sha256
from embedding.kernel.errors import SnapshotError
from embedding.snapshots.format import FileEntry


def entry(path: Path) -> FileEntry:
    """Size and SHA-256 of a file."""
    return FileEntry(size=path.stat().st_size, sha256=sha256(path))


@contextmanager
def locked(path: Path, timeout: float) -> Iterator[None]:
    """Hold an advisory lock on `path`; the system frees it when the process ends or dies.

    Raises SnapshotError when another process holds it for longer than `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise SnapshotError(
                        f"{path.parent}: another process has been publishing a snapshot there for "
                        f"{timeout:.0f} s; try again when it has finished."
                    ) from error
                time.sleep(0.05)
        yield
