"""Rows that are taken out of a shard's folder, whatever of the tables it holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embedding.kernel.records import Table
from embedding.server.config import ServerConfig
from embedding.server.recovery.checkpoint import CheckpointFolder
from yeoron_lab.shards.log import Admit
from yeoron_lab.shards.recovery import ShardRecovery, erase_rows
from yeoron_lab.shards.sharding import shard_specs
from yeoron_lab.shards.spec import ShardSpec
from yeoron_lab.shards.state import ShardState

GONE = np.array([3], dtype=np.int64)


def kept(spec: ShardSpec) -> tuple[ShardState, ShardRecovery]:
    folder = CheckpointFolder(Path(str(spec.server.state_dir)), keep=2)
    state = ShardState(spec, epoch=1)
    return state, ShardRecovery(state, folder, every_s=3600.0)


def bytes_of(spec: ShardSpec, row: bytes) -> list[str]:
    """Files that hold a row."""
    files = Path(str(spec.server.state_dir)).rglob("*.npy")
    return [str(path) for path in files if row in path.read_bytes()]


@pytest.mark.parametrize("split", ["rows", "columns"])
def test_rows_are_gone_from_each_shard(tmp_path: Path, split: str) -> None:
    config = ServerConfig(state_dir=tmp_path, shards=2, split=split, device="cpu")
    for spec in shard_specs(config, dim=6, seed=0, identity="x"):
        state, recovery = kept(spec)
        recovery.opened()
        for first in (0, 4):
            state.held.admit(Admit(first, 4))
            state.cursor.position += 1
            recovery.request(wait=True)
        slots = state.held.map.slots(np.arange(8, dtype=np.int64))
        held = [n for n in range(8) if slots[n] >= 0]
        rows = {n: state.tables.read(Table.IN, slots[[n]]).tobytes() for n in held}
        recovery.stop()
        assert all(bytes_of(spec, rows[n]) for n in held)

        for _ in range(2):
            erase_rows(spec, GONE)
            assert len(list(Path(str(spec.server.state_dir)).glob("checkpoint-*"))) == 1
            again, recovery = kept(spec)
            recovery.stop()
            left = again.held.map.slots(np.arange(8, dtype=np.int64))
            assert [n for n in range(8) if left[n] >= 0] == [n for n in held if n != 3]
            assert again.held.next_id == 8, "no id is given twice"
            assert (again.cursor.number, again.cursor.position) == (0, 2)
            assert again.identity == "x"
        if 3 in held:
            assert not bytes_of(spec, rows[3])
        assert all(bytes_of(spec, rows[n]) for n in held if n != 3)


def test_a_shard_that_never_ran_has_nothing(tmp_path: Path) -> None:
    config = ServerConfig(state_dir=tmp_path, shards=2)
    for spec in shard_specs(config, dim=6, seed=0, identity="x"):
        erase_rows(spec, GONE)
    assert list(tmp_path.iterdir()) == []
