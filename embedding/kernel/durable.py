"""Files that are whole on the disk or not there: fsync, atomic switch, checksum."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


def sha256(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Force a file or a directory to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def appending(path: Path) -> IO[bytes]:
    """A file to `append` to; where it is new, its name is on the disk on return. Raises OSError."""
    fresh = not path.exists()
    file = path.open("ab", buffering=0)
    try:
        if fresh:
            sync(path.parent)
    except BaseException:
        file.close()
        raise
    return file


def append(file: IO[bytes], line: bytes) -> None:
    """Add a line to an unbuffered file that was opened to append; on the disk on return.

    OSError (a full disk): nothing of it is left in the file, and what comes next stays readable.
    """
    end = os.fstat(file.fileno()).st_size
    try:
        rest = memoryview(line)
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    except OSError:
        os.ftruncate(file.fileno(), end)
        raise


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path` when the block ends without an error.

    It has the permissions of the file that it replaces. Its folder is made where there is none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            with suppress(FileNotFoundError):
                temporary.chmod(path.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def unreadable(version: object, readable: Collection[int]) -> str:
    """Why a stored format cannot be read here, as a part of a sentence; "": it can be.

    version  what the store says; readable  the versions that this code opens
    """
    if isinstance(version, int) and version in readable:
        return ""
    known = " and ".join(str(number) for number in sorted(readable))
    if isinstance(version, int) and version > max(readable):
        return (
            f"format {version} is of a newer version of Yeoron; this version reads {known}: use "
            "that version, or a backup from before it"
        )
    return f"format {version!r} is not known; this version reads {known}"
