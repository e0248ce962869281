"""Rows as they travel, and as they are trained on: what was pulled, what moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import RowDelta
from embedding.kernel.records import FloatArray, HalfArray, IntArray
from embedding.models.jit import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(24)


@kernel()
def _match(own: Any, ids: Any, slots: Any) -> Any:
    """Where each of `ids` lies in `own`, int32 [n], -1 where it does not.

    slots  int32 [a power of two, above len(own)], all -1: a hash table with linear probing
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(len(own)):
        at = (np.uint64(own[i]) * _GOLDEN) >> _HIGH & mask
        while slots[at] >= 0:
            at = at + np.uint64(1) & mask
        slots[at] = i
    found = np.empty(len(ids), dtype=np.int32)
    for i in range(len(ids)):
        at = (np.uint64(ids[i]) * _GOLDEN) >> _HIGH & mask
        while slots[at] >= 0 and own[slots[at]] != ids[i]:
            at = at + np.uint64(1) & mask
        found[i] = slots[at]
    return found


@kernel()
def _add(rows: Any, at: Any, values: Any) -> None:
    """rows[i] += values[at[i]], wherever at[i] is not -1."""
    for i in range(len(rows)):
        if at[i] >= 0:
            for j in range(rows.shape[1]):
                rows[i, j] += values[at[i], j]


def with_own(pulled: FloatArray | HalfArray, ids: IntArray, own: RowDelta | None) -> FloatArray:
    """Pulled rows as float32 [n, dim] of their own, with a delta that they do not hold yet."""
    rows = widen(pulled)
    if own is None or not len(own.ids):
        return rows
    slots = np.full(1 << (2 * len(own.ids)).bit_length(), -1, dtype=np.int32)
    _add(rows, _match(own.ids, ids, slots), widen(own.values))
    return rows


def moved(
    after: FloatArray, before: FloatArray, shares: FloatArray | None, dtype: npt.DTypeLike
) -> FloatArray | HalfArray:
    """The shares of how far rows moved, in the type in which rows travel; uses `after` up."""
    after -= before
    if shares is not None:
        after *= shares[:, None]
    return narrow(after) if dtype == np.float16 else after
