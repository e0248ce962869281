"""A server's checkpoints moved to another number of shards, while no server runs.

Rows are gathered by id from wherever they lie and placed by the other layout. That is exact
where all shards hold the same pushes as the primary's checkpoint; what is ahead of it would be
learnt again, so such checkpoints are refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from embedding.exchange.sharding import check_split
from embedding.kernel.errors import ConfigError
from embedding.kernel.positions import positions
from embedding.kernel.records import IntArray, Table
from embedding.server.parts import Content
from embedding.server.recovery.checkpoint import NOTES, SHARD_FORMAT, CheckpointFolder
from yeoron_lab.shards.client.split import Layout

_Arrays = dict[str, npt.NDArray[Any]]


def reshard(folder: Path, into: Path, was: Layout, now: Layout, *, buckets: int) -> None:
    """Write what the state folder `folder` holds to the new folder `into`, on other shards.

    buckets  rows of n-grams (fastText)

    ConfigError where that cannot be, and where a checkpoint is damaged.
    """
    check_split((was.shards, was.split), (now.shards, now.split))
    with _opened(folder) as held, _opened(into) as fresh:
        newest = held.newest()
        _keep_notes(folder, into)
        if newest is None:
            return
        number, content = newest
        names, ids = content.tables["words"], content.tables["words"]["id"].to_numpy()
        rows = _gathered(folder, content, ids, was, buckets)
        facts = {key: value for key, value in content.facts.items() if key not in _OF_SHARDS}
        others = {key: value for key, value in content.arrays.items() if not _is_rows(key)}
        if _alone(now):
            places = pa.array(np.arange(len(ids), dtype=np.int64))
            at = names.schema.get_field_index("slot")
            tables = {**content.tables, "words": names.set_column(at, "slot", places)}
            fresh.write(number, Content({**facts, "shards": 1}, {**others, **rows}, tables))
        else:
            _write_shards(fresh, facts, ids, rows, now, buckets)
            log = {"applied": facts["applied"], "next_id": facts["next_id"], "entries": []}
            facts |= {"shards": now.shards, "split": now.split, "log": log}
            fresh.write(number, Content(facts, others, content.tables))


@contextmanager
def _opened(path: Path) -> Iterator[CheckpointFolder]:
    """A state folder that is used by nobody else meanwhile, and has no lock file afterwards."""
    folder = CheckpointFolder(path, keep=1)
    try:
        yield folder
    finally:
        folder.close()
        (path / "lock").unlink(missing_ok=True)


_OF_SHARDS = frozenset(("shards", "split", "log"))


def _is_rows(name: str) -> bool:
    return name.startswith(("rows.", "moved."))


def _alone(layout: Layout) -> bool:
    return layout.shards == 1 and layout.split == "rows"


def _keep_notes(folder: Path, into: Path) -> None:
    for path in (*(folder / name for name in NOTES), *sorted(folder.glob("journal-*.jsonl"))):
        if path.is_file():
            shutil.copy2(path, into / path.name)


@dataclass(frozen=True)
class _Part:
    """Of one shard: facts, arrays, and for each id the place of its rows, -1 for none."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]

    def places(self, ids: IntArray) -> IntArray:
        held = np.asarray(self.arrays["ids"])
        order = np.argsort(held, kind="stable")
        # The -1 behind all is what an id at -1, which is not there, picks.
        rows: IntArray = np.append(order, -1)[positions(held[order], ids)]
        return rows


def _gathered(folder: Path, content: Content, ids: IntArray, was: Layout, buckets: int) -> _Arrays:
    """Rows of words in the order of `ids`, and of n-grams by bucket; accumulators likewise."""
    if _alone(was):
        places = content.tables["words"]["slot"].to_numpy()
        return {
            name: np.asarray(values) if _grams(name) else np.asarray(values)[places]
            for name, values in content.arrays.items()
            if _is_rows(name)
        }
    parts = [_read(folder / f"shard-{index}", content.facts) for index in range(was.shards)]
    names = [name for name in parts[0].arrays if _is_rows(name)]
    if was.split == "columns" and any(name.startswith("moved.") for name in names):
        raise ConfigError(
            "server.shards: with split columns and adagrad each shard sums up its own columns; "
            f"{was.shards} shards are accepted."
        )
    return {name: _joined(name, parts, ids, was, buckets) for name in names}


def _joined(
    name: str, parts: list[_Part], ids: IntArray, was: Layout, buckets: int
) -> npt.NDArray[np.float32]:
    wide = parts[0].arrays[name].ndim == 2
    n = buckets if _grams(name) else len(ids)
    joined = np.zeros((n, was.dim) if wide else (n,), dtype=np.float32)
    for index, part in enumerate(parts):
        values = np.asarray(part.arrays[name])
        if _grams(name):
            joined[index :: was.shards] = values
            continue
        own = np.flatnonzero(was.held(ids, index))
        places = part.places(ids[own])
        if (places < 0).any():
            raise ConfigError(_ahead(was.shards))
        if wide:
            joined[own, was.columns(index)] = values[places]
        else:
            joined[own] = values[places]
    return joined


def _grams(name: str) -> bool:
    return name.rpartition(".")[2] == str(Table.SUB)


def _read(folder: Path, primary: Mapping[str, Any]) -> _Part:
    with _opened(folder) as held:
        newest = held.newest()
    if newest is None:
        raise ConfigError(f"{folder}: there is no checkpoint of this shard.")
    facts = newest[1].facts
    if {k: v for k, v in facts["applied"].items() if v} != {
        k: v for k, v in primary["applied"].items() if v
    }:
        raise ConfigError(_ahead(int(facts["count"])))
    return _Part(facts, newest[1].arrays)


def _ahead(shards: int) -> str:
    return (
        f"server.shards: the shards went on after the primary's checkpoint; {shards} shards are "
        "accepted, or a backup that is made while no node trains."
    )


def _write_shards(
    fresh: CheckpointFolder,
    facts: Mapping[str, Any],
    ids: IntArray,
    rows: _Arrays,
    now: Layout,
    buckets: int,
) -> None:
    """Write a checkpoint of each shard, from which it goes on under another primary's log."""
    identity = fresh.identity()
    for index in range(now.shards):
        own = np.flatnonzero(now.held(ids, index))
        arrays: _Arrays = {"ids": ids[own].astype(np.int64)}
        for name, values in rows.items():
            part = values[index :: now.shards] if _grams(name) else values[own]
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
        with _opened(fresh.path / f"shard-{index}") as folder:
            folder.write(1, Content(header, arrays, {}))
