"""Files as they lie on the disk, plain or packed, with how far they are read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from embedding.kernel.errors import InputError

_PACKED = {b"\x1f\x8b": ".gz", b"\xfd7zXZ": ".xz", b"BZh": ".bz2"}
_ZIP = ".zip"
DAMAGED = (
    *(zlib.error, lzma.LZMAError, zipfile.BadZipFile, EOFError, OSError, ValueError),
    *(RuntimeError, NotImplementedError, struct.error),
)
"""What unpacking raises for a file that is damaged, locked, or packed in an unknown way."""
_UNSEEN = ("__MACOSX/", "._", ".DS_Store", "Thumbs.db", "desktop.ini")
"""What file managers put into archives beside the files."""


class UnpackedFile:
    """The bytes of a file, unpacked as they are read. `cut`: its packing ends too early."""

    def __init__(self, path: Path, stored: IO[bytes], unpacked: IO[bytes], size: int) -> None:
        self.cut = False
        self._path, self._stored, self._unpacked, self._size = path, stored, unpacked, size
        self._head = b""

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`; none at the end. Raises InputError for a damaged file."""
        if self._head:
            taken, self._head = self._head[:size], self._head[size:]
            return taken
        try:
            return self._unpacked.read(size)
        except EOFError:
            self.cut = True
            return b""
        except DAMAGED as error:
            raise InputError(f"{self._path}: damaged, it cannot be unpacked ({error}).") from error

    def head(self, size: int) -> bytes:
        """The first bytes, which `read` gives again; before anything is read."""
        while len(self._head) < size:
            more, head = b"", self._head
            self._head = b""
            more = self.read(size - len(head))
            self._head = head + more
            if not more:
                break
        return self._head[:size]

    @property
    def done(self) -> float:
        """Share of the file that is read."""
        return min(self._stored.tell() / self._size, 1.0)


@contextmanager
def opened(path: Path) -> Iterator[UnpackedFile]:
    """A file, unpacked where it is .gz, .xz, .bz2 or a .zip of one file.

    Raises InputError for what is no file, is empty or cannot be read.
    """
    check_file(path)
    try:
        stored = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}.") from error
    with stored:
        begin = stored.read(8)
        stored.seek(0)
        yield UnpackedFile(path, stored, _unpacked(path, stored, begin), path.stat().st_size)


def check_file(path: Path) -> None:
    """Raises InputError for what is no plain file with something in it."""
    if path.is_dir():
        raise InputError(f"{path}: a folder; name the files in it, as in {path}/*.")
    if not path.exists():
        raise InputError(f"{path}: no such file.")
    if not path.is_file():
        raise InputError(
            f"{path}: not a regular file; it is read more than once, so save it first."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; at least one record is expected.")


def _unseen(file: zipfile.ZipInfo) -> bool:
    return any(
        file.filename.startswith(name) or file.filename.rpartition("/")[2].startswith(name)
        for name in _UNSEEN
    )


def _unpacked(path: Path, stored: IO[bytes], begin: bytes) -> IO[bytes]:
    kind = next((kind for magic, kind in _PACKED.items() if begin.startswith(magic)), None)
    if kind == ".gz":
        return io.BufferedReader(gzip.GzipFile(fileobj=stored), 1 << 16)
    if kind == ".xz":
        return lzma.open(stored)
    if kind == ".bz2":
        return bz2.open(stored)
    if path.suffix.lower() == _ZIP:
        try:
            archive = zipfile.ZipFile(stored)
            names = [one for one in archive.infolist() if not one.is_dir() and not _unseen(one)]
            if len(names) != 1:
                raise InputError(
                    f"{path}: holds {len(names)} files; unpack it and name those to import."
                )
            return archive.open(names[0])
        except DAMAGED as error:
            raise InputError(f"{path}: cannot be unpacked ({error}).") from error
    return stored
