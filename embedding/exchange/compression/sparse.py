"""Rows of which only some entries are sent, as bytes: places as gaps, numbers of few bits.

A stream of numbers of 7 bits a byte, lowest first (LEB128). For each row that has an entry

    gap to the id of the row before it (from -1)   number of entries   its entries

and an entry is the gap to the column before it (from -1), less one. All kernels that read or write
the stream are in this file: numba keys its cache by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.exchange.compression.varints import BEFORE_FIRST, READ_ERRORS, get, put
from embedding.exchange.payload import ByteArray
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, IntArray
from embedding.models.jit import kernel

_NOUGHT: Any = 0
_REASONS = {
    **READ_ERRORS,
    3: "a column is out of range",
    4: "the number of entries of a row is out of range",
    6: "there are fewer or more entries than announced",
}


@kernel()
def write_places(ids: Any, values: Any, cut: float, most: int, out: Any, places: Any) -> Any:
    """Write the places of the first `most` entries of magnitude `cut` or more, and not 0.

    places  int64 [most], filled with their flat places in `values`
    Returns (bytes, rows, entries).
    """
    at, rows, entries, before = 0, 0, 0, BEFORE_FIRST
    n, dim = values.shape
    for i in range(n):
        count = 0
        for j in range(dim):
            size = abs(values[i, j])
            count += size >= cut and size > 0
        count = min(count, most - entries)
        if count == 0:
            continue
        at = put(out, at, ids[i] - before)
        at = put(out, at, np.int64(count))
        before, column, left = ids[i], -1, count
        for j in range(dim):
            size = abs(values[i, j])
            if left and size >= cut and size > 0:
                at = put(out, at, np.int64(j - column - 1))
                places[entries] = i * dim + j
                column = j
                entries += 1
                left -= 1
        rows += 1
    return at, rows, entries


@kernel()
def read_places(data: Any, ids: Any, places: Any, dim: int) -> tuple[int, int]:
    """Inverse of `write_places`: (error, entries)."""
    at, before, entries = 0, BEFORE_FIRST, _NOUGHT
    for i in range(len(ids)):
        gap, at = get(data, at)
        count, at = get(data, at) if gap > 0 else (np.int64(-1), at)
        if gap <= 0 or before > np.int64(1) << 62:
            return (1 if gap < 0 else 2), entries
        if count <= 0 or count > dim:
            return (1 if count < 0 else 4), entries
        if entries + count > len(places):
            return 6, entries
        before += gap
        ids[i] = before
        column = np.int64(-1)
        for _ in range(count):
            entry, at = get(data, at)
            if entry < 0:
                return 1, entries
            column += entry + 1
            if column >= dim:
                return 3, entries
            places[entries] = i * dim + column
            entries += 1
    return (5 if at != len(data) else 0), entries


def room(ids: IntArray, entries: int, *, each: int) -> ByteArray:
    """Memory for a stream: at most `each` bytes an entry; untouched pages take none."""
    return np.empty(15 * len(ids) + each * entries + 16, dtype=np.uint8)


def check(error: int, kind: str) -> None:
    """RefusedError for what a reading kernel found wrong."""
    if error:
        raise RefusedError(f"push: rows packed as {kind}: {_REASONS[error]}.")


def zeros(rows: int, dim: int) -> tuple[IntArray, FloatArray]:
    """Ids and values to read into."""
    return np.empty(rows, dtype=np.int64), np.zeros((rows, dim), dtype=np.float32)
