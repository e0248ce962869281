"""Where a backup lies: a folder of this machine, or any fsspec address such as s3://bucket/name.

Both hold plain files by name. A file is there whole or not at all, and what was written is looked
at again, since a store may lose an answer or a part.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import fsspec

from embedding.kernel.durable import replaced, sync
from embedding.kernel.errors import ConfigError, InputError, PlatformError
from embedding.snapshots.backends import asked, objects_under, put_whole
from embedding.snapshots.files import FileEntry, entry

_PIECE = 4 * 1024 * 1024
_Value = TypeVar("_Value")


class BackupRepository(ABC):
    """Holds files by name, with `/` between folders. PlatformError where it does not answer."""

    address: str

    @abstractmethod
    def empty(self) -> bool:
        """Whether nothing is there."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """A small file; None when it is not there."""

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Write a small file, or replace it."""

    @abstractmethod
    def put(self, source: Path, name: str) -> FileEntry:
        """Copy a file of this machine there; what was written."""

    @abstractmethod
    def get(self, name: str, into: Path) -> FileEntry | None:
        """Copy a file from there to this machine; what came, None when it is not there."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    @abstractmethod
    def clear(self, but: str) -> None:
        """Remove everything but one file."""


def open_repository(address: str) -> BackupRepository:
    """The repository at a path or an fsspec URL; ConfigError for an address that cannot work."""
    if not address.strip():
        raise ConfigError("backup: the address is empty; a folder or a URL is accepted.")
    try:
        filesystem, root = fsspec.core.url_to_fs(address)
    except ImportError as error:
        raise ConfigError(
            f"backup {address}: {str(error).rstrip('.')}; `pip install 'yeoron[s3]'` brings what "
            "s3:// needs."
        ) from error
    except ValueError as error:
        raise ConfigError(
            f"backup {address}: {error}; a folder or an fsspec URL is accepted."
        ) from error
    protocol = filesystem.protocol
    if "file" in ((protocol,) if isinstance(protocol, str) else protocol):
        return FolderRepository(Path(root))
    return ObjectRepository(filesystem, root, address)


def copied(source: Path, target: Path) -> FileEntry:
    """Copy a file, mode 600 and on the disk on return; size and digest of what was copied."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    digest, size = hashlib.sha256(), 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with source.open("rb") as file, os.fdopen(os.open(target, flags, 0o600), "wb") as copy:
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
            copy.write(piece)
        copy.flush()
        os.fsync(copy.fileno())
    return FileEntry(size=size, sha256=digest.hexdigest())


class FolderRepository(BackupRepository):
    """A folder of a local or mounted file system."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.address = str(self.root)
        if self.root.exists() and not self.root.is_dir():
            raise InputError(f"{self.root}: a folder is expected, found a file.")

    def empty(self) -> bool:
        with self._reported("read"):
            return not self.root.is_dir() or not any(self.root.iterdir())

    def read(self, name: str) -> bytes | None:
        with self._reported("read"), suppress(FileNotFoundError):
            return (self.root / name).read_bytes()
        return None

    def write(self, name: str, data: bytes) -> None:
        with self._reported("written"):
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            with replaced(self.root / name) as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(data)

    def put(self, source: Path, name: str) -> FileEntry:
        with self._reported("written"):
            target = self.root / name
            stored = copied(source, target)
            sync(target.parent)
            return stored

    def get(self, name: str, into: Path) -> FileEntry | None:
        with self._reported("read"):
            source = self.root / name
            return copied(source, into) if source.is_file() else None

    def remove(self, name: str) -> None:
        with self._reported("written"):
            (self.root / name).unlink(missing_ok=True)

    def clear(self, but: str) -> None:
        with self._reported("written"):
            for path in self.root.iterdir():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                elif path.name != but:
                    path.unlink()

    @contextmanager
    def _reported(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PlatformError(
                f"{self.root}: cannot be {verb}: {error.strerror or error}."
            ) from error


class ObjectRepository(BackupRepository):
    """An fsspec file system other than the local one."""

    def __init__(self, filesystem: Any, root: str, address: str) -> None:
        self.fs = filesystem
        self.root = root.rstrip("/")
        self.address = address.rstrip("/")

    def empty(self) -> bool:
        return not self.names()

    def clear(self, but: str) -> None:
        for name in self.names():
            if name != but:
                self.remove(name)

    def names(self) -> list[str]:
        """Of all files."""
        return objects_under(self.fs, self.root, "", self._asked)

    def read(self, name: str) -> bytes | None:
        with suppress(FileNotFoundError):
            return self._asked(lambda: bytes(self.fs.cat_file(self._path(name))))
        return None

    def write(self, name: str, data: bytes) -> None:
        self._stored(lambda: self.fs.pipe_file(self._path(name), data))

    def put(self, source: Path, name: str) -> FileEntry:
        stored = entry(source)
        self._stored(lambda: put_whole(self.fs, source, self._path(name)))
        return stored

    def get(self, name: str, into: Path) -> FileEntry | None:
        into.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._asked(lambda: self.fs.get_file(self._path(name), str(into)))
        except FileNotFoundError:
            return None
        into.chmod(0o600)
        sync(into)
        return entry(into)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._asked(lambda: self.fs.rm_file(self._path(name)))

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def _asked(self, call: Callable[[], _Value]) -> _Value:
        return asked(
            call, lambda answer: PlatformError(f"{self.address}: the store says: {answer}.")
        )

    def _stored(self, call: Callable[[], object]) -> None:
        """A call that writes, for which there must be a bucket."""
        try:
            self._asked(call)
        except FileNotFoundError as error:
            raise PlatformError(f"{self.address}: the store says: {error}.") from error
