"""The two kinds of places a store can be: a folder of this machine, or any fsspec address.

Both make a snapshot visible by one switch that comes last: a folder by renaming a finished,
synced directory; an object store, which cannot rename, by writing manifest.json after the rest.
"""

from __future__ import annotations

import hashlib
import shutil
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from embedding.kernel.durable import replaced, sync
from embedding.kernel.errors import SnapshotError, YeoronError
from embedding.snapshots import erasing
from embedding.snapshots.files import FileEntry, entry, locked, manifest_text
from embedding.snapshots.format import COUNTS, ID, MANIFEST, VECTORS, Manifest, parse_manifest

_TRIES = 4
_PAUSE_S = 0.2
"""Before the second try; twice as long each time. A client of S3 tries more often by itself."""
_SENTENCE = 300
_Answer = TypeVar("_Answer")


def asked(call: Callable[[], _Answer], failed: Callable[[str], YeoronError]) -> _Answer:
    """Make a call of an object store, several times where it fails for a reason that may pass.

    A call that fails is made again; an upload is looked at afterwards, and sent again where it is
    not whole: writing the same object twice does no harm.

    failed  the error to raise, of what the store said
    FileNotFoundError, and errors of ours, go through.
    """
    for tried in range(_TRIES):
        try:
            return call()
        except (FileNotFoundError, YeoronError):
            raise
        # What clients of object stores raise is of many kinds, and not all are an OSError.
        except Exception as error:
            if tried == _TRIES - 1 or isinstance(error, PermissionError):
                reason = " ".join(str(error).split())[:_SENTENCE] or type(error).__name__
                raise failed(reason.rstrip(".")) from error
        time.sleep(_PAUSE_S * 2**tried)
    raise AssertionError("the last try returns or raises")


def put_whole(fs: Any, source: Path, target: str) -> None:
    """Upload a file and look at what is there; OSError when it is not all of it."""
    fs.put_file(str(source), target)
    fs.invalidate_cache()
    try:
        size = int(fs.info(target)["size"])
    except FileNotFoundError:
        size = 0
    sent = source.stat().st_size
    if size != sent:
        raise OSError(f"{target} has {size} bytes there, {sent} were sent")


def objects_under(
    fs: Any, root: str, folder: str, ask: Callable[[Callable[[], list[str]]], list[str]]
) -> list[str]:
    """Names under `root` of all objects of a folder (empty: of all there are), sorted.

    ask  makes the call of the store (`asked`)
    """

    def listed() -> list[str]:
        fs.invalidate_cache()
        return list(fs.find(f"{root}/{folder}" if folder else root))

    try:
        paths = ask(listed)
    except FileNotFoundError:
        return []
    return sorted(path.lstrip("/").removeprefix(root.lstrip("/") + "/") for path in paths)


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

    def written_at(self, name: str) -> float | None:
        """When the manifest was written, Unix seconds; None when there is no manifest."""

    def erase(self, name: str, *, word: str | None, source: str | None) -> None:
        """Take a word or a source out of the files, for all readers at once or not at all."""

    def remove(self, name: str) -> None:
        """Remove a directory, at once as whoever lists the store sees it."""

    def sweep(self, before: float) -> None:
        """Clear away what killed calls left behind: half of a publication, files without use.

        before  Unix seconds; what was written since then may belong to a call that goes on
        """


class Folder:
    """A folder of a local or mounted file system."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        if self.root.exists() and not self.root.is_dir():
            raise SnapshotError(f"snapshot store {self.root}: a folder is expected, found a file.")
        erasing.finish(self.root)

    def names(self) -> list[str]:
        if not self.root.is_dir():
            return []
        folders = (path for path in self.root.iterdir() if not path.name.startswith("."))
        return sorted(path.name for path in folders if path.is_dir())

    def holds(self, name: str) -> bool:
        """Whether there is a directory of that name, by its path: a list that is read while another
        directory is renamed may lack it."""
        return ID.fullmatch(name) is not None and (self.root / name).is_dir()

    def manifest(self, name: str) -> str:
        return manifest_text(self.root / name)

    def address(self, name: str) -> str:
        return str(self.root / name)

    def note(self, name: str) -> str | None:
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

    def written_at(self, name: str) -> float | None:
        try:
            return (self.root / name / MANIFEST).stat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None

    def erase(self, name: str, *, word: str | None, source: str | None) -> None:
        """Write the changed files beside the directory and rename them into its place."""
        with locked(self.root / LOCK, LOCK_TIMEOUT):
            erasing.erase(self.root / name, word=word, source=source)

    def remove(self, name: str) -> None:
        with locked(self.root / LOCK, LOCK_TIMEOUT):
            if (self.root / name).is_dir():
                erasing.remove(self.root / name)

    def sweep(self, before: float) -> None:
        """Clear away what killed calls left: the lock says that no call goes on."""
        del before
        if self.root.is_dir():
            with locked(self.root / LOCK, LOCK_TIMEOUT):
                erasing.sweep(self.root)
                self._clean()

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
    """An fsspec file system other than the local one; read through a local cache.

    Objects cannot change together. A snapshot from which something was erased N times has its files
    in a folder `erased-N` of its own, and its manifest, which comes last, says N.
    """

    def __init__(self, filesystem: Any, root: str, cache: Path) -> None:
        self.fs = filesystem
        self.root = root.rstrip("/")
        protocol = filesystem.protocol
        self.protocol = protocol if isinstance(protocol, str) else protocol[0]
        key = hashlib.sha256(f"{self.protocol}://{self.root}".encode()).hexdigest()[:16]
        self.cache = Folder(cache / key)

    def names(self) -> list[str]:

        def listed() -> list[Any]:
            self.fs.invalidate_cache()
            return list(self.fs.ls(self.root, detail=True))

        try:
            entries = asked(listed, self._failed("listed"))
        except FileNotFoundError:
            return []
        paths = (entry["name"].rstrip("/") for entry in entries if entry["type"] == "directory")
        names = (name.rsplit("/", 1)[-1] for name in paths)
        # Who lists is told by others what is there.
        return sorted(name for name in names if ID.fullmatch(name))

    def holds(self, name: str) -> bool:
        """Whether there is one of that name: a listing may be older than the newest snapshot."""
        return name in self.names() or self._exists(name)

    def manifest(self, name: str) -> str:
        try:
            return self._read(f"{name}/{MANIFEST}")
        except FileNotFoundError as error:
            raise SnapshotError(
                f"snapshot {name}: {MANIFEST} is missing in {self.address(name)}."
            ) from error
        except UnicodeDecodeError as error:
            raise SnapshotError(f"snapshot {name}: {MANIFEST} cannot be read: {error}.") from error

    def address(self, name: str) -> str:
        return f"{self.protocol}://{self.root.lstrip('/')}/{name}"

    def note(self, name: str) -> str | None:
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
        if not self._exists(name):
            self._upload(name, name)
        return name

    def fetch(self, name: str) -> Path:
        """Its directory in the cache, downloaded when it is not there, or is not the same."""
        text = self.manifest(name)
        if self.cache.holds(name):
            if self._cached(name) == text:
                return self.cache.fetch(name)
            # Something was erased from it since.
            self.cache.remove(name)
        self.cache.publish(lambda into: self._download(name, text, into))
        return self.cache.fetch(name)

    def written_at(self, name: str) -> float | None:
        return self._modified(f"{name}/{MANIFEST}")

    def erase(self, name: str, *, word: str | None, source: str | None) -> None:
        """Change the copy in the cache, upload it to a folder of its own, then the manifest."""
        self.fetch(name)
        self.cache.erase(name, word=word, source=source)
        manifest = self._parsed(name, self.cache.manifest(name))
        self._upload(name, _changed(name, manifest))
        for part in self._unused(name, manifest):
            self._delete(part)

    def remove(self, name: str) -> None:
        """Remove the manifest, which is the switch, then the rest."""
        self._delete(f"{name}/{MANIFEST}")
        self._delete(name, recursive=True)
        self.cache.remove(name)

    def sweep(self, before: float) -> None:
        """Clear away halves of uploads, files of no use, and copies of what was changed or went."""
        for name in self.names():
            parts = self._objects(name)
            if f"{name}/{MANIFEST}" in parts:
                parts = self._unused(name, self._parsed(name, self.manifest(name)))
            elif self._exists(name):
                continue  # The list is older than the manifest.
            for part in parts:
                if (self._modified(part) or 0.0) < before:
                    self._delete(part)
        for name in self.cache.names():
            remote = self.manifest(name) if self._exists(name) else None
            if self._cached(name) != remote and (self.cache.written_at(name) or 0.0) < before:
                self.cache.remove(name)
        self.cache.sweep(before)

    def _upload(self, name: str, into: str) -> None:
        """Upload what the cache has of a snapshot; without its manifest nobody takes it for one."""
        failed = self._failed("written", f"; {name} was not published")
        asked(lambda: self.fs.makedirs(f"{self.root}/{into}", exist_ok=True), failed)
        folder = self.cache.fetch(name)
        files = {path.name for path in folder.iterdir()} - {MANIFEST}
        targets = {part: f"{self.root}/{into}/{part}" for part in sorted(files)}
        for part, target in {**targets, MANIFEST: f"{self.root}/{name}/{MANIFEST}"}.items():
            asked(partial(put_whole, self.fs, folder / part, target), failed)

    def _cached(self, name: str) -> str | None:
        """The manifest in the cache; None where there is none that can be read."""
        try:
            return self.cache.manifest(name)
        except SnapshotError:
            return None

    def _parsed(self, name: str, text: str) -> Manifest:
        return parse_manifest(text, f"snapshot {name}: {MANIFEST}")

    def _lies_in(self, name: str, manifest: Manifest) -> str:
        """Folder of the files: a store that was copied from a disk has all in one."""
        own = _changed(name, manifest)
        return own if self._modified(f"{own}/{VECTORS}") is not None else name

    def _unused(self, name: str, manifest: Manifest) -> list[str]:
        """Objects of a snapshot that its manifest does not need."""
        folder = self._lies_in(name, manifest)
        needed = {f"{folder}/{part}" for part in {*_NAMES, *manifest.files}}
        return [part for part in self._objects(name) if part not in {*needed, f"{name}/{MANIFEST}"}]

    def _objects(self, name: str) -> list[str]:
        """All objects of a snapshot, under the store's address."""
        failed = self._failed("listed")
        return objects_under(self.fs, self.root, name, lambda call: asked(call, failed))

    def _modified(self, part: str) -> float | None:
        def looked() -> float:
            self.fs.invalidate_cache()
            return float(self.fs.modified(f"{self.root}/{part}").timestamp())

        try:
            return asked(looked, self._failed("read"))
        except FileNotFoundError:
            return None

    def _delete(self, part: str, *, recursive: bool = False) -> None:
        def gone() -> None:
            self.fs.invalidate_cache()
            path = f"{self.root}/{part}"
            self.fs.rm(path, recursive=True) if recursive else self.fs.rm_file(path)

        with suppress(FileNotFoundError):
            asked(gone, self._failed("erased"))

    def _download(self, name: str, text: str, into: Path) -> str:
        manifest = self._parsed(name, text)
        folder = self._lies_in(name, manifest)
        for part in sorted({*_NAMES, *manifest.files} - {MANIFEST}):
            expected = manifest.files.get(part)
            try:
                self._fetch(name, f"{folder}/{part}", into / part, expected)
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
        source, failed = f"{self.root}/{part}", self._failed("read")
        size = asked(lambda: int(self.fs.info(source)["size"]), failed)
        if expected is not None and size != expected.size:
            raise SnapshotError(
                f"snapshot {name}: {into.name} has {size} bytes in {self.address(name)}, its "
                f"manifest says {expected.size}; it was not fetched."
            )
        asked(lambda: self.fs.get_file(source, str(into)), failed)

    def _exists(self, name: str) -> bool:
        def exists() -> bool:
            self.fs.invalidate_cache()
            try:
                return bool(self.fs.info(f"{self.root}/{name}/{MANIFEST}"))
            except FileNotFoundError:
                return False

        return asked(exists, self._failed("read"))

    def _read(self, name: str) -> str:
        """A small object; raises FileNotFoundError and UnicodeDecodeError."""
        path, failed = f"{self.root}/{name}", self._failed("read")
        return str(asked(lambda: bytes(self.fs.cat_file(path)), failed).decode("utf-8"))

    def _failed(self, verb: str, then: str = "") -> Callable[[str], SnapshotError]:
        where = f"snapshot store {self.protocol}://{self.root}: cannot be {verb}"
        return lambda reason: SnapshotError(f"{where}: {reason}{then}.")


def _changed(name: str, manifest: Manifest) -> str:
    """Folder of the files of a snapshot from which something was erased."""
    return f"{name}/erased-{manifest.erased}" if manifest.erased else name
