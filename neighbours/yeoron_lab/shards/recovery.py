"""What a checkpoint holds of a shard, and how a shard goes on from one."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import numpy as np

from embedding.kernel.config import part_of
from embedding.kernel.errors import PlatformError
from embedding.kernel.records import IntArray
from embedding.server.parts import Content
from embedding.server.recovery.checkpoint import SHARD_FORMAT, CheckpointFolder, check_facts
from embedding.server.recovery.checkpointer import Checkpointer
from yeoron_lab.settings import ShardSettings
from yeoron_lab.shards.log import Admit
from yeoron_lab.shards.spec import ShardSpec
from yeoron_lab.shards.state import ShardState

logger = logging.getLogger(__name__)


class ShardRecovery(Checkpointer):
    """Writes a shard's checkpoints in the background and restores the newest on construction."""

    def __init__(self, state: ShardState, folder: CheckpointFolder, *, every_s: float) -> None:
        super().__init__(every_s=every_s)
        self._state = state
        self._folder = folder
        self._written: tuple[int, int] | None = None
        self._restore()

    def _write(self) -> None:
        state = self._state
        with state.lock:
            state.check_whole()
            mark = (state.cursor.number, state.cursor.position)
            if mark == self._written:
                return
            began = time.perf_counter()
            facts, ids = collect(state)
            copy = state.tables.checkpoint_copy(state.held.map.end)
            pause = time.perf_counter() - began
        longest = copy.finish(state.lock)
        content = Content(facts, {**copy.arrays(), "ids": ids}, {})
        self._folder.write(self._folder.next_number(), content)
        self._written = mark
        with state.lock:
            state.meters.checkpoint_pause_s = max(pause, longest)
            state.inbox.ledger.persisted(facts["applied"])
            # The primary may have been started again while this was written: a position of its
            # log before would let it drop entries that this shard has on no disk.
            if state.cursor.number == mark[0]:
                state.cursor.durable = mark[1]

    def _ended(self) -> None:
        self._folder.close()

    def _restore(self) -> None:
        newest = self._folder.newest()
        if newest is None:
            return
        restore(self._state, newest[1], str(self._folder.path))
        logger.info("restored checkpoint %d: %d rows", newest[0], self._state.held.map.end)


def collect(state: ShardState) -> tuple[dict[str, Any], IntArray]:
    """Facts, and the id int64 of each slot, -1 for a free one (under the lock)."""
    spec = state.spec
    facts = {
        "format": SHARD_FORMAT,
        **_layout(spec),
        "seed": state.tables.seed,
        "identity": state.identity,
        "next_id": state.held.next_id,
        "log": [state.cursor.number, state.cursor.position],
        "applied": {name: entry.applied for name, entry in state.inbox.ledger.nodes.items()},
        "pushes": state.meters.pushes,
        "lost_pushes": state.inbox.lost,
        "repeated_pushes": state.inbox.repeated,
    }
    return facts, state.held.map.ids(np.arange(state.held.map.end, dtype=np.int64))


def restore(state: ShardState, content: Content, where: str) -> None:
    """Put a checkpoint's content into a fresh state; ConfigError when it does not fit."""
    facts, spec = content.facts, state.spec
    check_facts(facts, _layout(spec), readable=(SHARD_FORMAT,), where=where, who="shard")
    state.identity = facts["identity"]
    state.tables.seed = facts["seed"]
    ids: IntArray = np.array(content.arrays["ids"], dtype=np.int64)
    state.held.next_id = facts["next_id"]
    state.tables.ensure(len(ids))
    state.held.map.fill(ids)
    used = np.flatnonzero(ids >= 0)
    state.tables.restore_from(content.arrays, used, used)
    for node, sequence in facts["applied"].items():
        entry = state.inbox.ledger.of(node)
        # `accepted` too: pushes that waited for the log died with the process, and nodes send again
        # what this shard does not claim to have.
        entry.accepted = entry.applied = entry.durable = sequence
    # If the primary is the same, its log goes on here; another one starts it again (`lead`).
    state.cursor.number, state.cursor.position = facts["log"]
    state.cursor.durable = state.cursor.position
    state.meters.pushes, state.inbox.lost = facts["pushes"], facts["lost_pushes"]
    state.inbox.repeated = facts.get("repeated_pushes", 0)


def _layout(spec: ShardSpec) -> dict[str, object]:
    """What a checkpoint and a shard that goes on from it have in common."""
    return {
        "dim": spec.dim,
        "index": spec.index,
        "count": spec.count,
        "split": part_of(spec.server, ShardSettings).split,
        "buckets": spec.buckets,
    }


def erase_rows(spec: ShardSpec, ids: IntArray) -> None:
    """Write what the folder holds as a new checkpoint without the rows of these ids, and remove
    those before it. Done again it changes nothing.

    ConfigError when a shard is running there or the folder cannot be used, PlatformError when the
    new checkpoint cannot be written.
    """
    path = Path(str(spec.server.state_dir))
    if not path.is_dir():
        return
    folder = CheckpointFolder(path, keep=1)
    if not folder.numbers():
        folder.close()
        return
    state = ShardState(spec, epoch=0)
    recovery = ShardRecovery(state, folder, every_s=3600.0)
    rows, own = state.held, ids[spec.layout.held(ids, spec.index)]
    slots = rows.map.slots(own)
    rows.tables.clear(slots[slots >= 0])
    rows.admit(Admit(rows.next_id, 0, own))
    if (failed := recovery.write_once()) is not None:
        raise PlatformError(f"state_dir {path}: {failed}; what was there is still there.")
