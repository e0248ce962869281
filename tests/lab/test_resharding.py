"""Checkpoints dealt out to another number of shards: the same rows by id, on any way there."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from embedding.kernel.errors import ConfigError
from embedding.server.parts import Content
from embedding.server.recovery.checkpoint import CheckpointFolder
from yeoron_lab.shards.client.split import Layout
from yeoron_lab.shards.resharding import reshard

DIM, BUCKETS = 6, 11
IDS = np.array([7, 0, 12, 3, 5, 20], dtype=np.int64)
SLOTS = np.array([2, 4, 0, 1, 6, 3], dtype=np.int64)
NODES = {"n0": 4, "n1": 9}


def facts(**more: object) -> dict[str, object]:
    return {"seed": 3, "applied": NODES, "next_id": 21, "tokens": 5, **more}


def alone(folder: Path, *, adagrad: bool = True) -> None:
    """A server that holds its rows itself; slot 5 is free."""
    random = np.random.default_rng(1)
    arrays = {
        f"rows.{name}": random.normal(size=(7, DIM)).astype(np.float32) for name in ("in", "out")
    }
    arrays["rows.sub"] = random.normal(size=(BUCKETS, DIM)).astype(np.float32)
    if adagrad:
        arrays |= {f"moved.{name}": random.random(7).astype(np.float32) for name in ("in", "out")}
        arrays["moved.sub"] = random.random(BUCKETS).astype(np.float32)
    arrays["usage.0.ids"] = np.arange(3)
    words = pa.table({"word": [f"말{at}" for at in IDS], "id": IDS, "slot": SLOTS})
    held = CheckpointFolder(folder, keep=1)
    held.waiting_key()
    held.write(5, Content(facts(shards=1), arrays, {"words": words, "candidates": pa.table({})}))
    held.journal(5).write_text('{"first": 21, "words": [], "evicted": []}\n')
    held.close()


def rows(folder: Path) -> dict[str, np.ndarray]:
    """Of a server without shards, by id or bucket."""
    held = CheckpointFolder(folder, keep=1)
    found = held.newest()
    held.close()
    assert found is not None
    assert found[0] == 5
    content = found[1]
    words = content.tables["words"]
    order = np.argsort(words["id"].to_numpy())
    slots = words["slot"].to_numpy()[order]
    assert words["id"].to_numpy()[order].tolist() == sorted(IDS.tolist())
    return {
        name: np.array(values) if name.endswith("sub") else np.array(values)[slots]
        for name, values in content.arrays.items()
        if not name.startswith("usage")
    } | {"usage": np.array(content.arrays["usage.0.ids"])}


def way(tmp_path: Path, *layouts: Layout, buckets: int = BUCKETS) -> Path:
    """The folder after each of these in turn."""
    folder = tmp_path / "0"
    for at, (was, now) in enumerate(itertools.pairwise(layouts), start=1):
        reshard(folder, tmp_path / str(at), was, now, buckets=buckets)
        folder = tmp_path / str(at)
    return folder


ALONE = Layout(1, "rows", DIM)


@pytest.mark.parametrize("shards", [(2,), (3, 2), (5, 7, 4)])
def test_rows_are_the_same_after_any_way_back(tmp_path, shards: tuple[int, ...]):
    alone(tmp_path / "0")
    layouts = [ALONE, *(Layout(n, "rows", DIM) for n in shards), ALONE]
    last = way(tmp_path, *layouts)
    assert not (last / "lock").exists()
    before, after = rows(tmp_path / "0"), rows(last)
    assert set(before) == set(after)
    for name, values in before.items():
        np.testing.assert_array_equal(values, after[name], err_msg=name)
    assert (last / "waiting.key").read_bytes() == (tmp_path / "0" / "waiting.key").read_bytes()
    assert (last / "journal-00000005.jsonl").is_file()


def test_columns_go_to_another_number_of_shards(tmp_path):
    alone(tmp_path / "0", adagrad=False)
    # What a split by columns holds is made by hand: rows cannot become columns.
    split = [Layout(n, "columns", DIM) for n in (2, 3, 2)]
    reshard(tmp_path / "0", tmp_path / "1", ALONE, Layout(2, "rows", DIM), buckets=BUCKETS)
    _as_columns(tmp_path / "0", tmp_path / "1")
    folder = tmp_path / "1"
    for at, (was, now) in enumerate(itertools.pairwise(split), start=2):
        reshard(folder, tmp_path / str(at), was, now, buckets=0)
        folder = tmp_path / str(at)
    for index in range(2):
        first, last = (_shard(tmp_path / name / f"shard-{index}") for name in ("1", "3"))
        for name in ("ids", "rows.in", "rows.out"):
            np.testing.assert_array_equal(first.arrays[name], last.arrays[name])


def _shard(folder: Path) -> Content:
    held = CheckpointFolder(folder, keep=1)
    found = held.newest()
    held.close()
    assert found is not None
    return found[1]


def _as_columns(source: Path, target: Path) -> None:
    whole = _shard(source)
    layout = Layout(2, "columns", DIM)
    for index in range(2):
        shard = _shard(target / f"shard-{index}")
        arrays = {
            name: np.array(whole.arrays[name])[SLOTS][:, layout.columns(index)]
            for name in ("rows.in", "rows.out")
        }
        held = CheckpointFolder(target / f"shard-{index}", keep=1)
        said = {**shard.facts, "split": "columns"}
        held.write(2, Content(said, {"ids": IDS, **arrays}, {}))
        held.close()


@pytest.mark.parametrize("change", [{"n0": 5}, {"n0": 3}, {"n2": 1}])
def test_a_shard_that_is_not_where_its_primary_is_is_refused(tmp_path, change: dict[str, int]):
    alone(tmp_path / "0")
    two = way(tmp_path, ALONE, Layout(2, "rows", DIM))
    content = _shard(two / "shard-1")
    held = CheckpointFolder(two / "shard-1", keep=1)
    held.write(2, Content({**content.facts, "applied": NODES | change}, content.arrays, {}))
    held.close()
    with pytest.raises(ConfigError, match="2 shards are accepted"):
        reshard(two, tmp_path / "9", Layout(2, "rows", DIM), ALONE, buckets=BUCKETS)


def test_another_split_is_refused(tmp_path):
    alone(tmp_path / "0")
    with pytest.raises(ConfigError, match="split by rows"):
        reshard(tmp_path / "0", tmp_path / "1", ALONE, Layout(2, "columns", DIM), buckets=0)


def test_a_folder_without_a_checkpoint_stays_one(tmp_path):
    held = CheckpointFolder(tmp_path / "0", keep=1)
    held.waiting_key()
    held.close()
    reshard(tmp_path / "0", tmp_path / "1", ALONE, Layout(2, "rows", DIM), buckets=0)
    assert sorted(path.name for path in (tmp_path / "1").iterdir()) == ["waiting.key"]
