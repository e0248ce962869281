"""Whole numbers as bytes of seven bits each, increasing ids as the gaps between them, and what a
kernel that reads such bytes finds wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.kernel.errors import RefusedError
from embedding.models.jit import kernel

BEFORE_FIRST: Any = np.int64(-1)
"""What the gap of the first id is counted from."""
_REASONS = {
    1: "the bytes end within a row",
    2: "a row id is out of range",
    3: "a column is out of range",
    4: "the number of entries of a row is out of range",
    5: "there are bytes after the last row",
    6: "there are fewer or more entries than announced",
    7: "a row has no entries",
    8: "the step of a row is out of range",
    9: "an entry is out of range",
}
"""Of errors that reading kernels return."""


def check(error: int, kind: str) -> None:
    """RefusedError for what a reading kernel found wrong."""
    if error:
        raise RefusedError(f"push: rows packed as {kind}: {_REASONS[error]}.")


@kernel(inline="always")
def put(out: Any, at: int, number: Any) -> int:
    """Write a number; returns where to go on."""
    while number >= 128:
        out[at] = number & 127 | 128
        number >>= 7
        at += 1
    out[at] = number
    return at + 1


@kernel(inline="always")
def get(data: Any, at: int) -> tuple[Any, int]:
    """Read a number of at most 56 bits: (number, where to go on); -1 when there is none."""
    number, shift = np.int64(0), np.int64(0)
    while True:
        if at >= len(data) or shift > 49:
            return np.int64(-1), at
        byte = np.int64(data[at])
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7


@kernel()
def write_ids(ids: Any, out: Any) -> int:
    """Write increasing ids as gaps; the number of bytes."""
    at, before = 0, BEFORE_FIRST
    for i in range(len(ids)):
        at = put(out, at, ids[i] - before)
        before = ids[i]
    return at


@kernel()
def read_ids(data: Any, ids: Any) -> int:
    """Inverse of `write_ids`; the error."""
    at, before = 0, BEFORE_FIRST
    for i in range(len(ids)):
        gap, at = get(data, at)
        if gap <= 0 or before > np.int64(1) << 62:
            return 1 if gap < 0 else 2
        before += gap
        ids[i] = before
    return 5 if at != len(data) else 0
