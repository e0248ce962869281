"""Files on disk, plain or compressed, and how far they have been read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from embedding.kernel.errors import InputError

_OPENERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ": lzma.open,
    b"BZh": bz2.open,
    b"\x28\xb5\x2f\xfd": lambda stored: pa.CompressedInputStream(stored, "zstd"),
}
"""By what a file begins with."""
_ZIP = ".zip"
_BLOCK = 1 << 20
DAMAGED = (
    *(zlib.error, lzma.LZMAError, zipfile.BadZipFile, EOFError, OSError, ValueError),
    *(RuntimeError, NotImplementedError, struct.error),
)
"""What unpacking raises for a file that is damaged, locked, or packed in an unknown way."""
_DEFLATED = re.compile(rb"PK\x03\x04..[^\x01].\x08\0", re.DOTALL)
"""How a .zip begins whose first file is packed as most are, without a password."""
_UNSEEN = re.compile(r"^__MACOSX/|(?:^|/)(?:\._|\.DS_Store|Thumbs\.db|desktop\.ini)[^/]*$")
"""What file managers put into archives beside the files."""


class UnpackedFile:
    """The bytes of a file, unpacked as they are read.

    name    of the file that is packed in it, where that is known; else its own
    cut     its packing ends too early, or is damaged
    damage  why what is behind the bytes that were read cannot be unpacked
    """

    def __init__(
        self, path: Path, stored: IO[bytes], unpacked: io.BufferedIOBase, crc: int | None
    ) -> None:
        self.cut = False
        self.damage: InputError | None = None
        self._path, self._stored, self._unpacked = path, stored, unpacked
        self._size, self._crc, self._read = path.stat().st_size, crc, 0
        self.name = str(getattr(unpacked, "name", path))
        self._head = b""
        self._begun = False

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`; none at the end, or where it is damaged.

        Raises InputError for a file that is damaged where it begins.
        """
        if self._head:
            taken, self._head = self._head[:size], self._head[size:]
            return taken
        data = b""
        while len(data) < size and not (self.cut or self.damage):
            try:
                # One step at a time: what was unpacked before the damage is kept.
                more = self._unpacked.read1(size - len(data))
            except DAMAGED as error:
                # A wrong checksum, or what follows the packing, cuts nothing off.
                self.cut = not isinstance(error, gzip.BadGzipFile)
                why = f"{self._path}: damaged, it cannot be unpacked ({error})."
                self.damage = None if isinstance(error, EOFError) else InputError(why)
                if not data and not self._begun:
                    raise InputError(why) from error
                break
            if not more:
                if self._crc not in (None, self._read):
                    why = f"{self._path}: damaged, its checksum is wrong somewhere in it."
                    self.damage = InputError(why)
                break
            self._read = 0 if self._crc is None else zlib.crc32(more, self._read)
            data = data + more if data else more
        self._begun = self._begun or bool(data)
        return data

    def head(self, size: int) -> bytes:
        """The first bytes, which `read` gives again; before anything is read."""
        head, self._head = self._head, b""
        while len(head) < size and (more := self.read(size - len(head))):
            head += more
        self._head = head
        return head[:size]

    @property
    def done(self) -> float:
        return min(self._stored.tell() / self._size, 1.0)


def lines_of(
    read: Callable[[int], bytes], cut: Callable[[bytes], list[bytes]], longest: int = 0
) -> Iterator[bytes]:
    """Lines, as `cut` finds them. One of more than `longest` bytes (0: no limit) is in pieces."""
    rest = b""
    while data := read(_BLOCK):
        *lines, rest = cut(rest + data)
        yield from lines
        if longest and len(rest) > longest:
            yield rest
            rest = b""
    if rest:
        yield rest


def whole_of(read: Callable[[int], bytes], most: int, too_long: str) -> bytes:
    """All that a file holds; InputError, which says `too_long`, beyond `most` bytes."""
    data = b""
    while more := read(_BLOCK):
        data += more
        if len(data) > most:
            raise InputError(too_long)
    return data


@contextmanager
def opened(path: Path) -> Iterator[UnpackedFile]:
    """A file, unpacked where it is .gz, .xz, .bz2, .zst or a .zip of one file.

    Raises InputError for what is no file, is empty or cannot be read; for a damaged one once all
    that can be unpacked of it was read.
    """
    check_file(path)
    try:
        stored = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}.") from error
    with stored:
        begin = stored.read(8)
        stored.seek(0)
        file = UnpackedFile(path, stored, *_unpacked(path, stored, begin))
        yield file
        if file.damage is not None:
            raise file.damage


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


def why_not(error: BaseException, head: bytes) -> str:
    """Why a .zip that begins with `head` cannot be unpacked."""
    cut = isinstance(error, zipfile.BadZipFile) and head.startswith(b"PK\x03\x04")
    return "its end, which says what is in it, is missing or damaged" if cut else str(error)


class _WithoutEnd:
    """What a .zip begins with, where its end, which says what is in it, is missing or damaged."""

    def __init__(self, stored: IO[bytes]) -> None:
        self._stored, self._inflate = stored, zlib.decompressobj(-zlib.MAX_WBITS)
        stored.seek(26)
        name, more = struct.unpack("<HH", stored.read(4))
        self.name = stored.read(name).decode(errors="replace")
        stored.seek(more, 1)

    def read1(self, size: int) -> bytes:
        while not self._inflate.eof:
            packed = self._inflate.unconsumed_tail or self._stored.read(1 << 16)
            if not packed:
                raise EOFError("its end is missing")
            if data := self._inflate.decompress(packed, size):
                return data
        return b""


def _unpacked(
    path: Path, stored: io.BufferedReader, begin: bytes
) -> tuple[io.BufferedIOBase, int | None]:
    """The bytes of a file, and their checksum where nothing else compares it."""
    for magic, unpacking in _OPENERS.items():
        if begin.startswith(magic):
            return unpacking(stored), None
    if path.suffix.lower() == _ZIP:
        head = stored.read(30)
        stored.seek(0)
        try:
            archive = zipfile.ZipFile(stored)
            files = [file for file in archive.infolist() if not file.is_dir()]
            files = [file for file in files if not _UNSEEN.search(file.filename)]
            if len(files) != 1:
                raise InputError(
                    f"{path}: holds {len(files)} files; unpack it and name those to import."
                )
            crc = files[0].CRC
            # Else its last step raises what is wrong in place of giving what was unpacked.
            del files[0].CRC
            return archive.open(files[0]), crc  # type: ignore[return-value]
        except DAMAGED as error:
            if len(head) == 30 and _DEFLATED.match(head):
                return _WithoutEnd(stored), None  # type: ignore[return-value]
            raise InputError(f"{path}: cannot be unpacked ({why_not(error, head)}).") from error
    return stored, None
