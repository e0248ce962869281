"""Taking rows out of a shard's state folder, while neither it nor its primary runs."""

from __future__ import annotations

from pathlib import Path

from embedding.kernel.errors import PlatformError
from embedding.kernel.records import IntArray
from embedding.server.recovery.checkpoint import CheckpointFolder
from embedding.server.shards.log import Admit
from embedding.server.shards.recovery import ShardRecovery
from embedding.server.shards.spec import ShardSpec
from embedding.server.shards.state import ShardState


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
    held, own = state.held, ids[spec.layout.held(ids, spec.index)]
    slots = held.map.slots(own)
    held.tables.clear(slots[slots >= 0])
    held.admit(Admit(held.next_id, 0, own))
    if (failed := recovery.write_once()) is not None:
        raise PlatformError(f"state_dir {path}: {failed}; what was there is still there.")
