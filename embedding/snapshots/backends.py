"""The two kinds of places a store can be: a folder of this machine, or any fsspec address.

Both make a snapshot visible by one switch that comes last: a folder by renaming a finished,
synced directory; an object store, which cannot rename, by writing manifest.json after the rest.
"""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from embedding.kernel.durable import replaced, sync
from embedding.kernel.errors import SnapshotError
from embedding.snapshots.erasing import finish
from embedding.snapshots.files import entry, locked
from embedding.snapshots.format import (
    COUNTS,
    ID,
    MANIFEST,
    VECTORS,
    FileEntry,
    parse_manifest,
)
from embedding.snapshots.objects import asked, put_whole

TEMPORARY = ".publishing-"
LOCK = ".lock"
LOCK_TIMEOUT = 300.0
_NAMES = (VECTORS, COUNTS, MANIFEST)
"""What every snapshot has; its manifest may name more."""

Write = Callable[[Path], str]
"""Fills an empty directory with a snapshot's files; returns the name to publish it under."""


class StoreBackend(Protocol):
    """Holds snapshot directories by name."""

    def names(self) -> list[str]:
        """Names of all visible directories, sorted."""

    def holds(self, name: str) -> bool:
        """Whether there is a directory of that name."""

    def manifest(self, name: str) -> str:
        """Text of one manifest; SnapshotError when it is missing or unreadable."""

    def address(self, name: str) -> str:
        """Where a reader finds the directory `name`."""

    def note(self, name: str) -> str | None:
        """Text of a small file beside the directories; None when there is none."""

    def take_note(self, name: str, change: Callable[[str | None], str]) -> None:
        """Replace a note by what `change` makes of it, at once or not at all."""

    def publish(self, write: Write) -> str:
        """Make what `write` wrote visible, whole or not at all; a whole namesake stays."""

    def fetch(self, name: str) -> Path:
        """A local directory with the files of `name`; SnapshotError when there is none."""


class Folder:
    """A folder of a local or mounted file system."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        if self.root.exists() and not self.root.is_dir():
            raise SnapshotError(f"snapshot store {self.root}: a folder is expected, found a file.")
        finish(self.root)

    def names(self) -> list[str]:
        """Names of all visible directories, sorted."""
        if not self.root.is_dir():
            return []
        found = (path for path in self.root.iterdir() if not path.name.startswith("."))
        return sorted(path.name for path in found if path.is_dir())

    def holds(self, name: str) -> bool:
        """Whether there is a directory of that name."""
        return name in self.names()

    def manifest(self, name: str) -> str:
        """Text of one manifest; SnapshotError when it is missing or unreadable."""
        try:
            return (self.root / name / MANIFEST).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise SnapshotError(
                f"snapshot {name}: {MANIFEST} is missing in {self.root / name}."
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise SnapshotError(f"snapshot {name}: {MANIFEST} cannot be read: {error}.") from error

    def address(self, name: str) -> str:
        """The directory's absolute path."""
        return str(self.root / name)

    def note(self, name: str) -> str | None:
        """Text of a small file beside the directories; None when there is none."""
        try:
            return (self.root / name).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise SnapshotError(f"snapshot store {self.root}: {name}: {error}.") from error

    def take_note(self, name: str, change: Callable[[str | None], str]) -> None:
        """Replace a note under the folder's lock: write, sync, rename."""
        try:
            with locked(self.root / LOCK, LOCK_TIMEOUT), replaced(self.root / name) as file:
                file.write(change(self.note(name)).encode())
        except OSError as error:
            raise SnapshotError(
                f"snapshot store {self.root}: cannot be written: {error.strerror or error}."
            ) from error

    def publish(self, write: Write) -> str:
        """Write into a hidden directory, sync, rename; a damaged namesake is replaced.

        One publisher at a time holds the folder's lock, so a hidden directory that is found
        while holding it was left by a publisher that died, and is removed.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with locked(self.root / LOCK, LOCK_TIMEOUT):
                self._clean()
                try:
                    return self._publish(write)
                finally:
                    self._clean()
        except OSError as error:
            raise SnapshotError(
                f"snapshot store {self.root}: cannot be written: {error.strerror or error}; "
                "nothing was published."
            ) from error

    def fetch(self, name: str) -> Path:
        """The directory itself."""
        path = self.root / name
        if not path.is_dir():
            raise SnapshotError(f"snapshot {name}: there is none of that name in {self.root}.")
        return path

    def _publish(self, write: Write) -> str:
        files = self._hidden()
        name = write(files)
        for path in files.iterdir():
            sync(path)
        sync(files)
        target = self.root / name
        if all((target / part).is_file() for part in _NAMES):
            return name
        if target.exists():
            target.rename(self._hidden() / name)
        files.rename(target)
        sync(self.root)
        return name

    def _hidden(self) -> Path:
        path = self.root / f"{TEMPORARY}{uuid.uuid4().hex}"
        path.mkdir()
        return path

    def _clean(self) -> None:
        for path in self.root.glob(f"{TEMPORARY}*"):
            shutil.rmtree(path, ignore_errors=True)


class Remote:
    """An fsspec file system other than the local one; read through a local cache."""

    def __init__(self, filesystem: Any, root: str, cache: Path) -> None:
        self.fs = filesystem
        self.root = root.rstrip("/")
        protocol = filesystem.protocol
        self.protocol = protocol if isinstance(protocol, str) else protocol[0]
        key = hashlib.sha256(f"{self.protocol}://{self.root}".encode()).hexdigest()[:16]
        self.cache = Folder(cache / key)

    def names(self) -> list[str]:
        """Names of all visible directories, sorted."""

        def listed() -> list[Any]:
            self.fs.invalidate_cache()
            return list(self.fs.ls(self.root, detail=True))

        try:
            entries = asked(listed, self._failed("listed"))
        except FileNotFoundError:
            return []
        found = (entry["name"].rstrip("/") for entry in entries if entry["type"] == "directory")
        names = (name.rsplit("/", 1)[-1] for name in found)
        # Who lists is told by others what is there.
        return sorted(name for name in names if ID.fullmatch(name))

    def holds(self, name: str) -> bool:
        """Whether there is one of that name: a listing may be older than the newest snapshot."""
        return name in self.names() or self._exists(name)

    def manifest(self, name: str) -> str:
        """Text of one manifest; SnapshotError when it is missing or unreadable."""
        try:
            return self._read(f"{name}/{MANIFEST}")
        except FileNotFoundError as error:
            raise SnapshotError(
                f"snapshot {name}: {MANIFEST} is missing in {self.address(name)}."
            ) from error
        except UnicodeDecodeError as error:
            raise SnapshotError(f"snapshot {name}: {MANIFEST} cannot be read: {error}.") from error

    def address(self, name: str) -> str:
        """The directory's URL."""
        return f"{self.protocol}://{self.root.lstrip('/')}/{name}"

    def note(self, name: str) -> str | None:
        """Text of a small object beside the directories; None when there is none."""
        try:
            return self._read(name)
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise SnapshotError(f"snapshot store {self.address(name)}: {error}.") from error

    def take_note(self, name: str, change: Callable[[str | None], str]) -> None:
        """Replace a note; of two writers at once the last one's stays."""
        data = change(self.note(name)).encode()
        asked(lambda: self.fs.pipe_file(f"{self.root}/{name}", data), self._failed("written"))

    def publish(self, write: Write) -> str:
        """Write into the cache, upload the tables, then the manifest, which is the switch."""
        name = self.cache.publish(write)
        target = f"{self.root}/{name}"
        failed = self._failed("written", f"; {name} was not published")
        if self._exists(name):
            return name
        asked(lambda: self.fs.makedirs(target, exist_ok=True), failed)
        there = {path.name for path in (self.cache.root / name).iterdir()}
        # The manifest comes last: without it nobody takes the folder for a snapshot.
        for part in (*sorted(there - {MANIFEST}), MANIFEST):
            source = self.cache.root / name / part
            asked(partial(put_whole, self.fs, source, f"{target}/{part}"), failed)
        return name

    def fetch(self, name: str) -> Path:
        """Its directory in the cache, downloaded when it is not there yet."""
        if name not in self.cache.names():
            self.cache.publish(lambda into: self._download(name, into))
        return self.cache.fetch(name)

    def _download(self, name: str, into: Path) -> str:
        text = self.manifest(name)
        files = parse_manifest(text, f"snapshot {name}: {MANIFEST}").files
        for part in sorted({*_NAMES, *files} - {MANIFEST}):
            expected = files.get(part)
            try:
                self._fetch(name, part, into / part, expected)
            except FileNotFoundError as error:
                raise SnapshotError(
                    f"snapshot {name}: {part} is missing in {self.address(name)}."
                ) from error
            if expected is not None and entry(into / part) != expected:
                raise SnapshotError(
                    f"snapshot {name}: {part} in {self.address(name)} is not what its manifest "
                    "says: it is damaged."
                )
        (into / MANIFEST).write_text(text, encoding="utf-8")
        return name

    def _fetch(self, name: str, part: str, into: Path, expected: FileEntry | None) -> None:
        source, failed = f"{self.root}/{name}/{part}", self._failed("read")
        size = asked(lambda: int(self.fs.info(source)["size"]), failed)
        if expected is not None and size != expected.size:
            raise SnapshotError(
                f"snapshot {name}: {part} has {size} bytes in {self.address(name)}, its "
                f"manifest says {expected.size}; it was not fetched."
            )
        asked(lambda: self.fs.get_file(source, str(into)), failed)

    def _exists(self, name: str) -> bool:
        def there() -> bool:
            self.fs.invalidate_cache()
            try:
                return bool(self.fs.info(f"{self.root}/{name}/{MANIFEST}"))
            except FileNotFoundError:
                return False

        return asked(there, self._failed("read"))

    def _read(self, name: str) -> str:
        """A small object; raises FileNotFoundError and UnicodeDecodeError."""
        path, failed = f"{self.root}/{name}", self._failed("read")
        return str(asked(lambda: bytes(self.fs.cat_file(path)), failed).decode("utf-8"))

    def _failed(self, verb: str, then: str = "") -> Callable[[str], SnapshotError]:
        where = f"snapshot store {self.protocol}://{self.root}: cannot be {verb}"
        return lambda said: SnapshotError(f"{where}: {said}{then}.")
