"""Where ids lie among others that are in order."""

from __future__ import annotations

import numpy as np

from embedding.kernel.records import IntArray


def positions(ids: IntArray, wanted: IntArray) -> IntArray:
    """Places of `wanted`, int64 of any shape, in `ids` (increasing); -1 for one not among them."""
    if not len(ids):
        return np.full(wanted.shape, -1, dtype=np.int64)
    first = int(ids[0])
    if int(ids[-1]) - first == len(ids) - 1:  # no gaps: nothing has to be looked for
        away = wanted - first
        return np.where((away >= 0) & (away < len(ids)), away, -1)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    found: IntArray = np.where(ids[at] == wanted, at, -1)
    return found
