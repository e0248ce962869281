"""Checkpoints on disk: a folder each, complete or not there at all.

    checkpoint-00000007/   manifest.json rows.in.npy rows.out.npy [moved.*.npy] words.arrow …
    journal-00000007.jsonl words admitted after it
    epoch                  number of the last incarnation of the server
    identity               random name of this training, where rows lie on shards
    waiting.key            key of the digests of words without a row (mode 600)
    refused                digests of words that get no row, in hex, one a line
    lock                   held by the running server

Plain npy and Arrow files with a SHA-256 of each in the manifest, which has one of itself; nothing
is pickled. This file knows files only; what goes into them is `recovery.py`'s business.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import re
import secrets
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from embedding.kernel.durable import replaced, sha256, sync, unreadable
from embedding.kernel.errors import ConfigError, PlatformError
from embedding.kernel.private import ensure_secret
from embedding.server.parts import Content
from embedding.server.words.digests import KEY_BYTES

logger = logging.getLogger(__name__)

_NAME = re.compile(r"checkpoint-(\d{8})")
NOTES = ("epoch", "identity", "fences.jsonl", "waiting.key", "refused")
"""Files of the state folder that outlive its checkpoints."""
_MANIFEST = "manifest.json"
_DIGEST = "digest"
SHARD_FORMAT = 1
"""Of the checkpoints of shards."""
_PIECE_BYTES = 8 * 1024 * 1024


class CheckpointFolder:
    """The state folder of one server; ConfigError when another server holds it."""

    def __init__(self, path: Path, *, keep: int) -> None:
        self.path = path
        self.keep = keep
        try:
            if not path.exists() and successor(path).exists():
                successor(path).rename(path)
            path.mkdir(parents=True, exist_ok=True)
            self._lock: TextIO = (path / "lock").open("w")
        except OSError as error:
            raise ConfigError(f"state_dir {path}: {error.strerror}.") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise ConfigError(f"state_dir {path}: another server is using it.") from error
        for left in path.glob(".checkpoint-*"):
            shutil.rmtree(left, ignore_errors=True)

    def next_epoch(self) -> int:
        """The number of this incarnation of the server: greater than any before it.

        PlatformError: the folder cannot be written to.
        """
        file = self.path / "epoch"
        with self._note(file, "a whole number is expected; delete it"):
            before = int(file.read_bytes()) if file.exists() else 0
            epoch = max(before + 1, int(time.time() * 1000))
            with replaced(file) as fresh:
                fresh.write(str(epoch).encode())
        return epoch

    def identity(self) -> str:
        """A random name of what is kept here, given once."""
        file = self.path / "identity"
        if not file.exists():
            with replaced(file) as fresh:
                fresh.write(secrets.token_hex(16).encode())
        return file.read_text()

    def waiting_key(self) -> bytes:
        """The key of the digests of words without a row, made once.

        ConfigError when it is no key; without the file a new one is made, and what waits starts
        from nothing.
        """
        file = self.path / "waiting.key"
        with self._note(file, f"{2 * KEY_BYTES} hex digits are expected"):
            ensure_secret(file, secrets.token_hex(KEY_BYTES))
            key = bytes.fromhex(file.read_text(encoding="utf-8").strip())
            if len(key) != KEY_BYTES:
                raise ValueError(f"{len(key)} bytes")
        return key

    def refused(self) -> list[bytes]:
        """Digests of words that get no row; ConfigError when a line is none."""
        file = self.path / "refused"
        with self._note(file, "hex digits are expected, a digest a line"):
            lines = file.read_text("utf-8").split() if file.exists() else []
            return [bytes.fromhex(line) for line in lines]

    def refuse(self, digest: bytes) -> None:
        """Add one; raises OSError."""
        lines = sorted({*(known.hex() for known in self.refused()), digest.hex()})
        with replaced(self.path / "refused") as file:
            file.write("".join(f"{line}\n" for line in lines).encode())

    @contextmanager
    def _note(self, file: Path, expected: str) -> Iterator[None]:
        """Reading and writing one of NOTES; a server that cannot starts nothing in the folder."""
        try:
            yield
        except ValueError as error:
            self.close()
            raise ConfigError(f"{file}: {expected}.") from error
        except OSError as error:
            self.close()
            raise PlatformError(f"state_dir {self.path}: {error.strerror}.") from error

    def numbers(self) -> list[int]:
        return numbers(self.path)

    def next_number(self) -> int:
        """The number of the next checkpoint: above all that are there, whole or not."""
        return max(self.numbers(), default=0) + 1

    def journals(self, since: int) -> list[Path]:
        """Journals of checkpoint `since` and later ones, oldest first."""
        return [path for n, path in self._journals() if n >= since]

    def journal(self, number: int) -> Path:
        return self.path / f"journal-{number:08d}.jsonl"

    def last_journal(self, number: int) -> Path:
        """The journal that a server which restored checkpoint `number` goes on with: the newest.

        A later one than its own is there when the checkpoint that it belongs to was not finished;
        words noted in an earlier one would be read back before those whose ids come first.
        """
        return self.journal(max([number, *(n for n, _ in self._journals())]))

    def write(self, number: int, content: Content) -> None:
        """Write everything, sync, rename; then remove checkpoints that are too old.

        OSError: nothing of it stays; on a full disk it would be in the way of all else.
        """
        fresh = self.path / f".checkpoint-{number:08d}"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        try:
            self._fill(fresh, content)
            fresh.rename(self.path / f"checkpoint-{number:08d}")
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        sync(self.path)
        try:
            self._prune()
        except OSError as error:
            logger.warning("state_dir %s: what is too old stays: %s", self.path, error)

    def _fill(self, fresh: Path, content: Content) -> None:
        """The files of a checkpoint, on the disk on return."""
        for name, values in content.arrays.items():
            write_npy(fresh / f"{name}.npy", values)
        for name, table in content.tables.items():
            with pa.ipc.new_file(fresh / f"{name}.arrow", table.schema) as writer:
                writer.write_table(table)
        files = {}
        for file in sorted(fresh.iterdir()):
            sync(file)
            files[file.name] = sha256(file)
        manifest = fresh / _MANIFEST
        # As it is read back: JSON makes names of numbers.
        checkpoint = json.loads(json.dumps({"facts": content.facts, "files": files}))
        sealed = {**checkpoint, _DIGEST: _digest(checkpoint)}
        manifest.write_text(json.dumps(sealed, ensure_ascii=False), encoding="utf-8")
        sync(manifest)
        sync(fresh)

    def newest(self) -> tuple[int, Content] | None:
        """The newest checkpoint whose files are whole; None when there is none at all.

        ConfigError when there are checkpoints but none is whole: starting from nothing would
        silently throw the model away.
        """
        numbers = self.numbers()
        for number in reversed(numbers):
            try:
                return number, _read(self.path / f"checkpoint-{number:08d}")
            except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
                logger.error("checkpoint %d cannot be used: %s", number, error)
        if numbers:
            raise ConfigError(
                f"state_dir {self.path}: none of its {len(numbers)} checkpoints is whole; put one "
                "back or start with an empty folder."
            )
        return None

    def close(self) -> None:
        self._lock.close()

    def _journals(self) -> list[tuple[int, Path]]:
        return sorted((int(path.stem[8:]), path) for path in self.path.glob("journal-*.jsonl"))

    def _prune(self) -> None:
        kept = self.numbers()[-self.keep :]
        for number in self.numbers()[: -self.keep]:
            shutil.rmtree(self.path / f"checkpoint-{number:08d}", ignore_errors=True)
        for number, journal in self._journals():
            if number < kept[0]:
                journal.unlink()


def check_facts(
    facts: Mapping[str, Any],
    started: Mapping[str, object],
    *,
    readable: Collection[int],
    where: str,
    who: str,
) -> None:
    """ConfigError for a checkpoint of a format that is not `readable`, or of other tables than
    those that `who` was started with.
    """
    held = facts.get("format", 0)
    if why := unreadable(held, readable):
        # A shard's format has not changed yet.
        if isinstance(held, int) and 0 < held < min(readable):
            why += "; open it once with Yeoron of 30 November 2026, which writes format 3"
        raise ConfigError(f"state_dir {where}: its checkpoint cannot be read: {why}.")
    for name, expected in started.items():
        if (held := facts.get(name)) != expected:
            raise ConfigError(
                f"state_dir {where}: its checkpoint has {name} {held}, the {who} was started with "
                f"{expected}; use that or an empty folder."
            )


def numbers(path: Path) -> list[int]:
    """Numbers of the checkpoints of a state folder, oldest first; none where there is no folder."""
    if not path.is_dir():
        return []
    names = [_NAME.fullmatch(entry.name) for entry in path.iterdir()]
    return sorted(int(match[1]) for match in names if match)


@contextmanager
def kept_out(path: Path) -> Iterator[bool]:
    """Let no server use a state folder meanwhile; False: one is using it."""
    if not (path / "lock").is_file():
        yield True
        return
    with (path / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def successor(path: Path) -> Path:
    """What takes a state folder's place when that is not there: it was killed between two renames
    while it went back to a snapshot (`rewriting.py`). It is whole when it has this name.
    """
    return path.with_name(f".{path.name}-rolled-back")


def _read(folder: Path) -> Content:
    manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    # Older formats have none; `check_facts` says which version opens them.
    if manifest.pop(_DIGEST, None) not in (None, _digest(manifest)):
        raise ValueError(f"{_MANIFEST} is damaged")
    arrays: dict[str, npt.NDArray[Any]] = {}
    tables: dict[str, pa.Table] = {}
    for name, expected in manifest["files"].items():
        file = folder / name
        if sha256(file) != expected:
            raise ValueError(f"{name} is damaged")
        if file.suffix == ".npy":
            arrays[file.stem] = np.load(file, mmap_mode="r", allow_pickle=False)
        else:
            with pa.ipc.open_file(file) as reader:
                tables[file.stem] = reader.read_all()
    return Content(manifest["facts"], arrays, tables)


def _digest(manifest: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of what a manifest says."""
    text = json.dumps(manifest, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def write_npy(path: Path, values: npt.NDArray[Any]) -> None:
    """Write an npy file in pieces: `np.save` holds the interpreter up for a whole table."""
    contiguous = np.ascontiguousarray(values)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, np.lib.format.header_data_from_array_1_0(contiguous)
        )
        content = contiguous.reshape(-1).view(np.uint8).data
        for at in range(0, len(content), _PIECE_BYTES):
            file.write(content[at : at + _PIECE_BYTES])
