"""Index arithmetic: positions of ids among sorted ones, and ranges put one behind the other."""

from __future__ import annotations

import numpy as np

from embedding.kernel.records import IntArray

_SPREAD = 4
"""Numbers for each that is wanted, up to which all between the ids get a place in a table."""


def positions(ids: IntArray, wanted: IntArray) -> IntArray:
    """Places of `wanted`, int64 of any shape, in `ids` (increasing); -1 for one not among them."""
    if not len(ids):
        return np.full(wanted.shape, -1, dtype=np.int64)
    first = int(ids[0])
    if int(ids[-1]) - first == len(ids) - 1:  # no gaps: nothing has to be looked for
        away = wanted - first
        return np.where((away >= 0) & (away < len(ids)), away, -1)
    if int(ids[-1]) - first < _SPREAD * wanted.size:
        # Looked up in a table: a binary search misses the cache at each of its steps.
        places = np.full(int(ids[-1]) - first + 2, -1, dtype=np.int64)
        places[ids - first] = np.arange(len(ids))
        away = wanted - first
        return places[np.where((away >= 0) & (away < len(places)), away, -1)]
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, -1)


def ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """Concatenation of arange(start, start + length) over all pairs, int64, without a loop."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    flat: IntArray = np.repeat(starts - (ends - lengths), lengths) + np.arange(total)
    return flat
