"""What is changed in a server's state folder while no server runs: it goes back to a snapshot, or
forgets a word or a source.

Going back to before a window makes the state again from a snapshot. That has both vectors of every
word that had a row, its id, count and last sight, so training can go on from it. What it does not
have begins again: words that waited for a row, sums of contexts, and what nodes had pushed (they
begin new incarnations).

Forgetting restores the newest checkpoint, changes it, and writes a new one; then those before it
and their journals go. Killed before that, all of them are as they were; killed after it, the next
call removes what is left.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from embedding.exchange.placement import placement
from embedding.kernel.durable import sync as to_disk
from embedding.kernel.errors import ConfigError, PlatformError, RefusedError, SnapshotError
from embedding.kernel.records import Table, Window
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.parts import Erasure
from embedding.server.recovery.checkpoint import NOTES, CheckpointFolder, successor
from embedding.server.recovery.restoring import Recovery
from embedding.server.rowstore import RowShape
from embedding.server.state import ServerState
from embedding.server.words.digests import WordDigests
from embedding.snapshots.format import Manifest
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore

logger = logging.getLogger(__name__)

NOTHING = "nothing"
"""Instead of a snapshot's id: an empty state."""
_BEFORE = "-before-"


def check_rollback(config: ServerConfig, *, buckets: int, biases: int) -> None:
    """RefusedError where a snapshot does not hold all that a server of this kind learns."""
    if config.state_dir is None or config.snapshots is None:
        raise RefusedError("rollback: the server keeps no checkpoints or cuts no snapshots.")
    if placement(config) is not None:
        raise RefusedError("rollback: rows that lie on shards cannot be put back; one shard can.")
    if buckets or biases:
        raise RefusedError(
            "rollback: snapshots of fastText and GloVe lack rows that are trained; sgns and cbow "
            "can go back to one."
        )


def roll_back_state(config: ServerConfig, to: str, *, dim: int, seed: int) -> Path:
    """Replace what a state folder holds by a checkpoint of the snapshot `to` (or `NOTHING`).

    No server may be using the folder. What it held is moved into a folder beside it, whose path is
    returned: moved back it undoes the step. Raises SnapshotError for a snapshot that is not there,
    damaged or of another dimension; then nothing has changed.
    """
    check_rollback(config, buckets=0, biases=0)
    folder, store = Path(str(config.state_dir)), SnapshotStore(str(config.snapshots))
    snapshot = None if to == NOTHING else store.open(to)
    if snapshot is not None:
        snapshot.verify()
        if snapshot.dim != dim:
            raise SnapshotError(
                f"snapshot {snapshot.id}: its vectors have {snapshot.dim} numbers, the server's "
                f"{dim}."
            )
    held = CheckpointFolder(folder, keep=config.keep_checkpoints)  # nobody else has it
    try:
        state = ServerState(config, SyncConfig(), RowShape(dim, seed=seed))
        fresh = _begun(config, snapshot, store, state)
        kept = _exchanged(folder, fresh)
    finally:
        held.close()
    logger.info("rolled back to %s; what was there is in %s", to, kept)
    return kept


def _begun(
    config: ServerConfig, snapshot: Snapshot | None, store: SnapshotStore, state: ServerState
) -> Path:
    """A folder beside the state folder with a checkpoint of the snapshot alone."""
    folder = Path(str(config.state_dir))
    fresh = folder.with_name(f".{folder.name}-rollback")
    shutil.rmtree(fresh, ignore_errors=True)
    recovery = Recovery(
        state, CheckpointFolder(fresh, keep=config.keep_checkpoints), every_s=3600.0
    )
    try:
        if snapshot is not None:
            end = snapshot.ref.window_end
            cut = [store.manifest(ref.id) for ref in store.series() if ref.window_end <= end]
            seed_state(state, snapshot, cut)
    finally:
        failed = recovery.write_once()
    if failed is not None:
        raise ConfigError(f"state_dir {folder}: {failed}; nothing has changed.")
    return fresh


def put_aside(folder: Path) -> list[Path]:
    """States of a state folder that were exchanged for others, the oldest first."""
    return sorted(path for path in folder.parent.glob(f"{folder.name}{_BEFORE}*") if path.is_dir())


def _exchanged(folder: Path, fresh: Path) -> Path:
    """Put `fresh` in the place of the state folder; where that is now."""
    for name in NOTES:
        if (folder / name).exists():
            shutil.copy2(folder / name, fresh / name)
            to_disk(fresh / name)
    to_disk(fresh)
    kept = folder.with_name(f"{folder.name}{_BEFORE}{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
    # Killed between these, the next server of this folder finishes it.
    shutil.rmtree(successor(folder), ignore_errors=True)
    fresh.rename(successor(folder))
    folder.rename(kept)
    successor(folder).rename(folder)
    to_disk(folder.parent)
    return kept


def seed_state(state: ServerState, snapshot: Snapshot, cut: Sequence[Manifest]) -> None:
    """Put a snapshot into a fresh state.

    cut  of the series up to and with the snapshot: what comes for these windows now is late
    """
    ids = snapshot.ids
    slots = state.vocabulary.restore(
        words=list(snapshot.words),
        ids=ids,
        stored=snapshot.counts.astype(np.float64),
        last_seen=snapshot.last_seen,
        next_id=int(ids.max()) + 1,
        weight=1.0,
        candidates={},
    )
    state.tables.ensure(state.vocabulary.rows)
    for table, rows in ((Table.IN, snapshot.vectors), (Table.OUT, snapshot.contexts)):
        state.tables.restore(table, slots, rows)
    accounts = state.accounts
    accounts.tracker.watermark = snapshot.ref.window_end.timestamp()
    for manifest in cut:
        window = manifest.as_window()
        accounts.cut |= set(_units(state, window))
        accounts.closed[window.label] = {
            "start": window.start.isoformat(),
            "end": window.end.isoformat(),
            "documents": sum(manifest.documents.values()),
            "tokens": sum(manifest.tokens.values()),
            "snapshot": manifest.id,
        }


def _units(state: ServerState, window: Window) -> list[int]:
    """Starts of the server's own windows within this one."""
    starts, at = [], int(window.start.timestamp())
    while at < window.end.timestamp():
        starts.append(at)
        at = int(state.accounts.tracker.window(at).end.timestamp())
    return starts


@dataclass(frozen=True)
class Erased:
    """What a state folder held.

    row      whether the word had a row
    waiting  whether it was counted without one
    copies   folders of states that were put aside by rollbacks; they were removed
    """

    row: bool
    waiting: bool
    copies: tuple[str, ...]


def erase_state(
    config: ServerConfig,
    sync: SyncConfig,
    shape: RowShape,
    *,
    word: str | None = None,
    source: str | None = None,
    dry: bool = False,
) -> Erased:
    """Take a word or a source out of `config.state_dir`; a word gets no row again.

    dry  only say what is there

    ConfigError when a server is running there or the folder cannot be used, PlatformError when the
    new checkpoint cannot be written.
    """
    path = Path(str(config.state_dir))
    copies = put_aside(path)
    names = tuple(folder.name for folder in copies)
    if not path.is_dir():
        return Erased(False, False, names)
    folder = CheckpointFolder(path, keep=1)
    if not folder.numbers():
        folder.close()
        return Erased(False, False, names)
    digests = WordDigests(folder.waiting_key(), folder.refused())
    state = ServerState(config, sync, shape, digests=digests)
    recovery = Recovery(state, folder, every_s=3600.0)
    erased = Erased(
        word is not None and int(state.vocabulary.ids([word])[0]) >= 0,
        word is not None and digests.of(word) in state.vocabulary.candidates,
        names,
    )
    if dry:
        recovery.stop()
        return erased
    ids = state.vocabulary.ids([] if word is None else [word])
    try:
        if word is not None:
            folder.refuse(digests.of(word))
        erasure = Erasure(word, source, ids[ids >= 0], digests.written(word or ""))
        for part in state.parts.values():
            part.forget(erasure)
    except BaseException:
        recovery.stop()  # never started, it writes nothing: what was there is still there
        raise
    # Last: the word is known here until its rows are gone, wherever they lie.
    state.words.install([], erasure.ids)
    if (failed := recovery.write_once()) is not None:
        raise PlatformError(f"state_dir {path}: {failed}; what was there is still there.")
    for left in _older(path):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    for copy in copies:
        shutil.rmtree(copy)
    return erased


def _older(path: Path) -> list[Path]:
    """Checkpoints before the newest, and journals before its own."""
    newest = max(path.glob("checkpoint-*"))
    journal = f"journal-{newest.name.removeprefix('checkpoint-')}.jsonl"
    older = [file for file in path.glob("checkpoint-*") if file.name < newest.name]
    return older + [file for file in path.glob("journal-*.jsonl") if file.name < journal]
