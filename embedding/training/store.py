"""The store that a training fills: all of its snapshots appear in it at the end, or none."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from embedding.kernel.durable import sync
from embedding.kernel.errors import InputError
from embedding.snapshots.store import SnapshotStore


@contextmanager
def new_store(out: Path | None, kept: Path | None = None) -> Iterator[Path]:
    """A folder to publish in; what it holds moves to `out` when the block ends without an error.

    kept  the folder to use, which stays as it is when there was an error; None makes one

    None keeps nothing. Raises InputError for a place that cannot be written, and for a folder that
    holds something already: two trainings of one corpus have the same windows and could not be
    told apart there. Hidden entries do not count: a killed training may have left one.
    """
    if out is None:
        with tempfile.TemporaryDirectory(prefix="yeoron-train-") as scratch:
            yield kept or Path(scratch)
        return
    if out.exists() and not out.is_dir():
        raise InputError(f"out {out}: a file; a new or empty folder is expected.")
    if found := _held(out):
        raise InputError(f"out {out}: it holds {found} already; a new or empty folder is expected.")
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        work = _folder_in(out)
        try:
            yield kept or work
            for ref in SnapshotStore(kept or work).list():
                if kept is not None:  # it may lie on another file system
                    shutil.move(kept / ref.id, work / ref.id)
                (work / ref.id).rename(out / ref.id)
            sync(out)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except BaseException:
        _remove(made)
        raise


def _held(out: Path) -> str | None:
    """Name of something that the folder holds, the latest snapshot first; None: nothing."""
    try:
        names = sorted(each.name for each in out.iterdir() if not each.name.startswith("."))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"out {out}: it cannot be read: {error.strerror or error}.") from error
    refs = SnapshotStore(out).list() if names else []
    return f"snapshot {refs[-1].id}" if refs else next(iter(names), None)


def _folder_in(out: Path) -> Path:
    """A hidden folder in `out`, on the same file system, so that a snapshot moves in one step."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=".training-", dir=out))
    except OSError as error:
        raise InputError(
            f"out {out}: it cannot be written ({error.strerror or error}); a folder that can be "
            "is expected."
        ) from error


def _remove(folders: list[Path]) -> None:
    """Remove folders that are still empty, the innermost first."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
