"""Rows as they travel, and as they are trained on: what was pulled, what moved."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedding.exchange.halves import narrow, widen
from embedding.exchange.payload import RowDelta
from embedding.records import FloatArray, HalfArray, IntArray


def with_own(pulled: FloatArray | HalfArray, ids: IntArray, own: RowDelta | None) -> FloatArray:
    """Pulled rows as float32 [n, dim] of their own, with a delta that they do not hold yet."""
    rows = widen(pulled)
    if own is None:
        return rows
    order = np.argsort(own.ids, kind="stable")
    at = np.searchsorted(own.ids, ids, sorter=order)
    at[at == len(order)] = 0
    at = order[at]
    both = np.flatnonzero(own.ids[at] == ids)
    rows[both] += own.values[at[both]]
    return rows


def moved(
    after: FloatArray, before: FloatArray, shares: FloatArray | None, dtype: npt.DTypeLike
) -> FloatArray | HalfArray:
    """The shares of how far rows moved, in the type in which rows travel; uses `after` up."""
    after -= before
    if shares is not None:
        after *= shares[:, None]
    return narrow(after) if dtype == np.float16 else after
