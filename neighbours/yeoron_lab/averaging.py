"""Means of what nodes moved rows by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.kernel.records import IntArray, Table


def averaged(pushes: Sequence[Push]) -> list[Push]:
    """The pushes with each row divided by the number of pushes that hold it.

    Their sum then moves a row by the mean over the nodes that touched it: a row that one node
    touched moves by all of that node's delta.
    """
    holders = {table: _held(pushes, table) for table in Table}
    return [
        replace(push, deltas=tuple(_divided(delta, *holders[delta.table]) for delta in push.deltas))
        for push in pushes
    ]


def _held(pushes: Sequence[Push], table: Table) -> tuple[IntArray, IntArray]:
    """Ids of a table's rows, increasing, and how many pushes hold each."""
    ids = [delta.ids for push in pushes for delta in push.deltas if delta.table is table]
    if not ids:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    known, counts = np.unique(np.concatenate(ids), return_counts=True)
    return known, counts.astype(np.int64)


def _divided(delta: RowDelta, ids: IntArray, counts: IntArray) -> RowDelta:
    by = counts[np.searchsorted(ids, delta.ids)].astype(np.float32)
    return RowDelta(delta.table, delta.ids, delta.values / by[:, None])
