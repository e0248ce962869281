"""Which shard holds what, and how ids, deltas and rows are split and put together.

Split by rows, a row lies on shard id mod S: ids are given in the order of admission, so the
frequent words, which come first, are spread evenly. Split by columns, each shard holds a stretch of
every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.kernel.records import FloatArray, HalfArray, IntArray


@dataclass(frozen=True)
class Layout:
    """How tables of `dim` columns lie on shards; `split` is rows or columns."""

    shards: int
    split: str
    dim: int

    def held(self, ids: IntArray, shard: int) -> npt.NDArray[np.bool_]:
        """Whether a shard holds anything of each row."""
        if self.split == "columns":
            return np.ones(len(ids), dtype=np.bool_)
        own: npt.NDArray[np.bool_] = ids % self.shards == shard
        return own

    def columns(self, shard: int) -> slice:
        if self.split == "rows":
            return slice(0, self.dim)
        return slice(shard * self.dim // self.shards, (shard + 1) * self.dim // self.shards)


def places(ids: IntArray, shards: int) -> list[IntArray]:
    """For each shard the places int64 of its ids in `ids`, in order: a row lies on shard id mod S,
    so that the frequent words, whose ids come first, are spread evenly."""
    owner = ids % shards
    return [np.flatnonzero(owner == shard) for shard in range(shards)]


def split_deltas(deltas: Sequence[RowDelta], shards: int) -> list[tuple[RowDelta, ...]]:
    """What of each delta goes to each shard; every shard gets each table, though perhaps empty."""
    parts: list[list[RowDelta]] = [[] for _ in range(shards)]
    for delta in deltas:
        for part, where in zip(parts, places(delta.ids, shards), strict=True):
            part.append(RowDelta(delta.table, delta.ids[where], delta.values[where]))
    return [tuple(part) for part in parts]


def split_push(push: Push, shards: int) -> list[Push]:
    """The rows of a push that each shard gets, also the packed ones, and nothing else of it."""
    return [
        Push(
            push.node,
            push.sequence,
            push.clock,
            deltas,
            packed=tuple(part for part in push.packed if part.shard == shard),
            keeps=push.keeps,
        )
        for shard, deltas in enumerate(split_deltas(push.deltas, shards))
    ]


def joined(
    where: Sequence[IntArray], rows: Sequence[FloatArray | HalfArray]
) -> FloatArray | HalfArray:
    """Rows [n, dim] in the order in which they were asked for.

    where  as `places` gave them; rows  what each shard answered
    """
    kind = np.result_type(*rows)
    ordered = np.empty((sum(map(len, where)), rows[0].shape[1]), dtype=kind)
    for own, part in zip(where, rows, strict=True):
        ordered[own] = part
    return ordered
