"""A server's checkpoints moved to another number of shards, while no server runs.

Rows are gathered by id from wherever they lie and placed by the other layout. That is exact
where all shards hold the same pushes as the primary's checkpoint; what is ahead of it would be
learnt again, so such checkpoints are refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from embedding.kernel.errors import ConfigError
from embedding.kernel.positions import positions
from embedding.kernel.records import IntArray, Table
from embedding.server.parts import Content
from embedding.server.recovery.checkpoint import NOTES, SHARD_FORMAT, CheckpointFolder
from yeoron_lab.shards.client.split import Layout

_Arrays = Mapping[str, npt.NDArray[Any]]
_OF_SHARDS = frozenset(("shards", "split", "log"))


def check_split(was: str, now: str) -> None:
    """ConfigError where rows cannot be placed otherwise."""
    if was != now:
        raise ConfigError(
            f"server.split {now}: the checkpoint's tables are split by {was}, and only the number "
            f"of shards can change; {was} is accepted."
        )


def reshard(folder: Path, into: Path, was: Layout, now: Layout, *, buckets: int) -> None:
    """Write what the state folder `folder` holds to the new folder `into`, on other shards.

    buckets  rows of n-grams (fastText)

    ConfigError where that cannot be, and where a checkpoint is damaged.
    """
    check_split(was.split, now.split)
    with _opened(folder) as before, _opened(into) as after:
        newest = before.newest()
        for path in (*(folder / name for name in NOTES), *sorted(folder.glob("journal-*.jsonl"))):
            if path.is_file():
                shutil.copy2(path, into / path.name)
        if newest is None:
            return
        number, content = newest
        words = content.tables["words"]
        ids, slots = words["id"].to_numpy(), words["slot"].to_numpy()
        if _alone(was):
            by_slot = np.full(int(slots.max(initial=-1)) + 1, -1, dtype=np.int64)
            by_slot[slots] = ids
            parts: list[_Arrays] = [{**content.arrays, "ids": by_slot}]
        else:
            parts = [_shard(folder / f"shard-{i}", content.facts) for i in range(was.shards)]
        rows = _gathered(parts, ids, was, buckets)
        facts = {key: value for key, value in content.facts.items() if key not in _OF_SHARDS}
        arrays = {name: values for name, values in content.arrays.items() if not _is_rows(name)}
        tables = dict(content.tables)
        if _alone(now):
            facts |= {"shards": 1, "split": "rows"}
            arrays |= rows
            where = words.schema.get_field_index("slot")
            order = pa.array(np.arange(len(ids), dtype=np.int64))
            tables["words"] = words.set_column(where, "slot", order)
        else:
            _write_shards(after, facts, ids, rows, now, buckets)
            log = {"applied": facts["applied"], "next_id": facts["next_id"], "entries": []}
            facts |= {"shards": now.shards, "split": now.split, "log": log}
        after.write(number, Content(facts, arrays, tables))


@contextmanager
def _opened(path: Path) -> Iterator[CheckpointFolder]:
    """A state folder that is used by nobody else meanwhile, and has no lock file afterwards."""
    folder = CheckpointFolder(path, keep=1)
    try:
        yield folder
    finally:
        folder.close()
        (path / "lock").unlink(missing_ok=True)


def _is_rows(name: str) -> bool:
    return name.startswith(("rows.", "moved."))


def _of_grams(name: str) -> bool:
    return name.rpartition(".")[2] == str(Table.SUB)


def _alone(layout: Layout) -> bool:
    return layout.shards == 1 and layout.split == "rows"


def _shard(folder: Path, primary: Mapping[str, Any]) -> _Arrays:
    """The newest checkpoint of a shard: rows by slot, and the `ids` of the slots."""
    with _opened(folder) as shard:
        newest = shard.newest()
    if newest is None:
        raise ConfigError(f"{folder}: there is no checkpoint of this shard.")
    facts, arrays = newest[1].facts, newest[1].arrays
    applied = [
        {k: v for k, v in checkpoint["applied"].items() if v} for checkpoint in (facts, primary)
    ]
    if applied[0] != applied[1]:
        raise ConfigError(_ahead(int(facts["count"])))
    return arrays


def _gathered(
    parts: Sequence[_Arrays], ids: IntArray, was: Layout, buckets: int
) -> dict[str, npt.NDArray[np.float32]]:
    """Rows of words in the order of `ids`, and of n-grams by bucket; accumulators likewise."""
    names = [name for name in parts[0] if _is_rows(name)]
    if was.split == "columns" and any(name.startswith("moved.") for name in names):
        raise ConfigError(
            "server.shards: with split columns and adagrad each shard sums up its own columns; "
            f"{was.shards} shards are accepted."
        )
    gathered = {}
    for name in names:
        n, wide = buckets if _of_grams(name) else len(ids), parts[0][name].ndim == 2
        rows = gathered[name] = np.zeros((n, was.dim) if wide else (n,), dtype=np.float32)
        for index, part in enumerate(parts):
            values = np.asarray(part[name])
            if _of_grams(name):
                rows[index :: was.shards] = values
                continue
            own = np.flatnonzero(was.held(ids, index))
            by_slot = np.asarray(part["ids"])
            order = np.argsort(by_slot, kind="stable")
            at = positions(by_slot[order], ids[own])
            if (at < 0).any():
                raise ConfigError(_ahead(was.shards))
            if wide:
                rows[own, was.columns(index)] = values[order[at]]
            else:
                rows[own] = values[order[at]]
    return gathered


def _ahead(shards: int) -> str:
    return (
        f"server.shards: the shards went on after the primary's checkpoint; {shards} shards are "
        "accepted, or a backup that is made while no node trains."
    )


def _write_shards(
    after: CheckpointFolder,
    facts: Mapping[str, Any],
    ids: IntArray,
    rows: _Arrays,
    now: Layout,
    buckets: int,
) -> None:
    """Write a checkpoint of each shard, from which it goes on under another primary's log."""
    identity = after.identity()
    for index in range(now.shards):
        own = np.flatnonzero(now.held(ids, index))
        arrays: dict[str, npt.NDArray[Any]] = {"ids": ids[own].astype(np.int64)}
        for name, values in rows.items():
            part = values[index :: now.shards] if _of_grams(name) else values[own]
            arrays[name] = part[:, now.columns(index)] if part.ndim == 2 else part
        header = {
            "format": SHARD_FORMAT,
            "dim": now.dim,
            "index": index,
            "count": now.shards,
            "split": now.split,
            "buckets": buckets,
            "seed": facts["seed"],
            "identity": identity,
            "next_id": facts["next_id"],
            "log": [0, 0],
            "applied": dict(facts["applied"]),
            "pushes": 0,
            "lost_pushes": 0,
            "repeated_pushes": 0,
        }
        with _opened(after.path / f"shard-{index}") as folder:
            folder.write(1, Content(header, arrays, {}))
