"""Which shard holds which row, and how ids, deltas and rows are split and put together.

A row lies on shard id mod S: ids are given in the order of admission, so the frequent words, which
come first, are spread evenly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedding.exchange.payload import RowDelta
from embedding.records import FloatArray, HalfArray, IntArray


def places(ids: IntArray, shards: int) -> list[IntArray]:
    """For each shard the places int64 of its ids in `ids`, in order."""
    owner = ids % shards
    return [np.flatnonzero(owner == shard) for shard in range(shards)]


def split_deltas(deltas: Sequence[RowDelta], shards: int) -> list[tuple[RowDelta, ...]]:
    """What of each delta goes to each shard; every shard gets each table, though perhaps empty."""
    parts: list[list[RowDelta]] = [[] for _ in range(shards)]
    for delta in deltas:
        for part, where in zip(parts, places(delta.ids, shards), strict=True):
            part.append(RowDelta(delta.table, delta.ids[where], delta.values[where]))
    return [tuple(part) for part in parts]


def joined(
    where: Sequence[IntArray], rows: Sequence[FloatArray | HalfArray]
) -> FloatArray | HalfArray:
    """Rows [n, dim] in the order in which they were asked for.

    where  as `places` gave them; rows  what each shard answered, of one dtype
    """
    found = np.empty((sum(len(each) for each in where), rows[0].shape[1]), dtype=rows[0].dtype)
    for at, part in zip(where, rows, strict=True):
        found[at] = part
    return found
