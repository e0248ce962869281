"""Entries of a snapshot's files, what is checked of foreign ones, and a lock between processes."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from embedding.kernel.durable import sha256
from embedding.kernel.errors import SnapshotError

MANIFEST = "manifest.json"


class FileEntry(BaseModel):
    """Size in bytes and SHA-256 (hex) of one file."""

    model_config = ConfigDict(frozen=True)

    size: Annotated[int, Field(ge=0)]
    sha256: str


_validated: set[tuple[int, int, int, int]] = set()
"""Files that this process has validated: device, inode, time of the change, size."""


def validate(rows: pa.RecordBatch | pa.Table, file: int) -> None:
    """Check every offset and code of an Arrow file: Arrow itself follows those of a file made by
    hand out of the memory of the process. Once a file and process; columns of numbers cost nothing.

    file  descriptor of the open file from which `rows` was read

    Raises pyarrow.ArrowInvalid for a file that no writer of Arrow makes.
    """
    status = os.fstat(file)
    seen = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
    if seen in _validated:
        return
    rows.validate(full=True)
    _validated.add(seen)


def entry(path: Path) -> FileEntry:
    """Size and SHA-256 of a file."""
    return FileEntry(size=path.stat().st_size, sha256=sha256(path))


def write_batch(path: Path, batch: pa.RecordBatch) -> None:
    """An Arrow file of one record batch, as all readers map the first."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def manifest_text(folder: Path) -> str:
    """What manifest.json of a snapshot's folder says; raises SnapshotError."""
    try:
        return (folder / MANIFEST).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise SnapshotError(
            f"snapshot {folder.name}: {MANIFEST} is missing in {folder}."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SnapshotError(
            f"snapshot {folder.name}: {MANIFEST} cannot be read: {error}."
        ) from error


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
