"""Making files durable: checksums, fsync, and a lock between processes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from embedding.errors import SnapshotError
from embedding.snapshots.format import FileEntry


def sha256(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def entry(path: Path) -> FileEntry:
    """Size and SHA-256 of a file."""
    return FileEntry(size=path.stat().st_size, sha256=sha256(path))


def sync(path: Path) -> None:
    """Force a file or a directory to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
