"""One training from file to snapshots: what is refused, and in which order things begin.

Words are counted and the processes of nodes get ready while the rest is imported here.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from embedding.kernel.durable import sync
from embedding.kernel.errors import InputError
from embedding.models.traits import COUNT_MODELS
from embedding.snapshots.store import SnapshotStore
from embedding.training.checks import INITIAL_ROWS, check_corpus, check_memory, check_options
from embedding.training.request import Progress, TrainRequest, TrainResult
from embedding.training.resume import resuming
from embedding.training.vocabulary import CountingThread, counting
from embedding.worker.process.forking import OF_A_CORPUS, processes

_WORK = ".training-"


@contextmanager
def new_store(out: Path | None, kept: Path | None = None) -> Iterator[Path]:
    """A folder to publish in; what it holds is in `out` when the block ends without an error.

    It comes there by one rename, where `out` is new or empty. In a folder with hidden entries, or
    on a disk of its own, each snapshot is renamed by itself: killed there, the same training goes
    on.

    kept  the folder to use, of which nothing is taken away; None makes one

    None keeps nothing. Raises InputError for a place that cannot be written, or has no room, and
    for a folder that holds something else already: two trainings of one corpus have the same
    windows and could not be told apart there. Hidden entries do not count.
    """
    if out is None:
        with tempfile.TemporaryDirectory(prefix="yeoron-train-") as scratch:
            yield kept or Path(scratch)
        return
    if out.exists() and not out.is_dir():
        raise InputError(f"out {out}: a file; a new or empty folder is expected.")
    own = set() if kept is None else {ref.id for ref in SnapshotStore(kept).list()}
    if other := _foreign(out, own):
        raise InputError(f"out {out}: it holds {other} already; a new or empty folder is expected.")
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        with _work_folder(out) as work:
            yield kept or work
            if kept is not None:  # it may lie on another file system
                _copy(kept, work, out)
            _publish(work, out)
    except BaseException:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise


def _copy(kept: Path, work: Path, out: Path) -> None:
    try:
        for ref in SnapshotStore(kept).list():
            shutil.copytree(kept / ref.id, work / ref.id)
    except OSError as error:
        # Of copytree, a list of (from, to, why).
        why = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror
        raise InputError(
            f"out {out}: the snapshots cannot be written ({why}). Nothing is published; all of "
            f"them lie in {kept}, and the same command goes on."
        ) from error


def _publish(work: Path, out: Path) -> None:
    for folder in (*work.glob("*/"), work):
        for file in folder.iterdir():
            sync(file)
        sync(folder)
    try:
        work.chmod(out.stat().st_mode & 0o7777)
        work.rename(out)  # over a folder that is empty
    except OSError:
        for ref in SnapshotStore(work).list():
            if not (out / ref.id).exists():
                (work / ref.id).rename(out / ref.id)
        sync(out)
    sync(out.parent)


def _foreign(out: Path, own: set[str]) -> str | None:
    """Name of something that the folder holds beside these snapshots; None: nothing."""
    try:
        names = [path.name for path in out.iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"out {out}: it cannot be read: {error.strerror or error}.") from error
    foreign = sorted(name for name in names if name not in own)
    refs = [ref.id for ref in SnapshotStore(out).list() if ref.id in foreign] if foreign else []
    return f"snapshot {refs[-1]}" if refs else next(iter(foreign), None)


@contextmanager
def _work_folder(out: Path) -> Iterator[Path]:
    """A hidden folder on the file system of `out`, locked while it is in use; what killed trainings
    left of theirs goes.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        beside = not any(out.iterdir()) and not out.is_mount() and os.access(out.parent, os.W_OK)
        prefix = f"{_WORK}{out.resolve().name}-" if beside else _WORK
        folder = out.resolve().parent if beside else out
        for left in folder.glob(f"{prefix}*"):
            with suppress(OSError), _locked(left):
                shutil.rmtree(left)
        work = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))
    except OSError as error:
        raise InputError(
            f"out {out}: it cannot be written ({error.strerror or error}); a folder that can be "
            "is expected."
        ) from error
    try:
        with _locked(work):
            yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, which the system frees when the process dies; OSError: another does."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def train_corpus(request: TrainRequest, progress: Progress = lambda _: None) -> TrainResult:
    """Train; raises ConfigError or InputError for what cannot work, if it can before it starts."""
    started = time.monotonic()
    check_options(request)
    survey = check_corpus(request)
    check_memory(request, 0)  # fastText's n-gram rows are there before the first word is
    check_memory(request, INITIAL_ROWS)
    counted_only = request.model.model in COUNT_MODELS
    if not counted_only:
        processes(OF_A_CORPUS)
    with (
        resuming(request) as resume,
        new_store(request.out, None if resume is None else resume.snapshots) as store,
        counting(request, None if resume is None else resume.total) as count,
    ):
        if isinstance(count, CountingThread) and counted_only:
            model = COUNT_MODELS.get(request.model.model)
            result: TrainResult = model.count(request, store, progress, count)
        else:
            from embedding.training.running import train

            result = train(request, store, progress, resume, count, survey)
        last = SnapshotStore(store).open()
        result = replace(result, unreadable=last.unreadable)
    refs = result.snapshots
    if request.out is not None:
        refs = SnapshotStore(request.out).list()
    return replace(result, seconds=time.monotonic() - started, snapshots=refs)
