"""Rows of which only some entries are sent, as bytes: places as gaps, numbers of few bits.

A stream of numbers of 7 bits a byte, lowest first (LEB128). For each row that has an entry

    gap to the id of the row before it (from -1)   number of entries   its entries

(with steps, a byte for the row's step before its entries)

and an entry is the gap to the column before it (from -1), less one, shifted left by `bits`, with
the lowest bits for the caller. All kernels that read or write the stream are in this file: numba
keys its cache by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from embedding.errors import RefusedError
from embedding.exchange.payload import ByteArray
from embedding.models.jit import kernel
from embedding.records import FloatArray, IntArray

_FIRST: Any = np.int64(-1)
_ONE: Any = np.int64(1)
_NOUGHT: Any = 0
_HALF: Any = np.float32(0.5)
LEVEL: Any = 64
"""What is written for the least step; one more is the root of 2 times as large a step."""
SOME: Any = 0.8
"""A row's step as a part of its largest entry, at most: what is left of a row always shrinks."""
FIRST: Any = 0.4
"""Step of a row of which the receiver has nothing, as a part of its root mean square."""
MOST_STEPS = 1 << 20
"""Steps of the threshold that one entry may be sent at once; more stay in the residual."""
_REASONS = {
    1: "the bytes end within a row",
    2: "a row id is out of range",
    3: "a column is out of range",
    4: "the number of entries of a row is out of range",
    5: "there are bytes after the last row",
    6: "there are fewer or more entries than announced",
    7: "an entry is out of range",
    8: "the step of a row is out of range",
}


@kernel(inline="always")
def _put(out: Any, at: int, number: Any) -> int:
    """Write a number; returns where to go on."""
    while number >= 128:
        out[at] = number & 127 | 128
        number >>= 7
        at += 1
    out[at] = number
    return at + 1


@kernel(inline="always")
def _get(data: Any, at: int) -> tuple[Any, int]:
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
def write_steps(
    ids: Any, values: Any, first: Any, least: float, relative: float, out: Any
) -> tuple[int, int, int]:
    """Write whole multiples of each row's step and take them off `values`: (bytes, rows, entries).

    A row's step is the power of the root of 2, times `least`, that is nearest to `relative` times
    the root mean square of the row, so that its largest entry is sent in any case, and at least
    `least`. An entry below the step is left out.

    ids     int64 [n], increasing; values float32 [n, dim], finite
    first   bool [n]: rows of which the receiver has nothing: their step is FIRST times their root
            mean square, however small; or empty, for none
    out     uint8, room for `room`
    """
    at, rows, entries, before = 0, 0, 0, _FIRST
    n, dim = values.shape
    for i in range(n):
        level = LEVEL
        whole = len(first) > 0 and first[i]
        if relative > 0 or whole:
            square, largest = np.float32(0), np.float32(0)
            for j in range(dim):
                square += values[i, j] * values[i, j]
                largest = max(largest, abs(values[i, j]))
            ratio = (FIRST if whole else relative) * np.sqrt(square / dim) / least
            ratio = min(ratio, SOME * largest / least)
            if ratio > 1 or (whole and ratio > 0):
                level += int(np.floor(np.log2(ratio) * 2 + 0.5))
                level = max(min(level, 2 * LEVEL - 1), 0)
        step = np.float32(least * 2.0 ** (0.5 * (level - LEVEL)))
        count = 0
        for j in range(dim):
            count += abs(values[i, j]) >= step
        if count == 0:
            continue
        at = _put(out, at, ids[i] - before)
        at = _put(out, at, np.int64(count))
        out[at] = level
        at += 1
        before, column = ids[i], -1
        for j in range(dim):
            value = values[i, j]
            if abs(value) >= step:
                many = np.int64(min(abs(value) / step, np.float32(MOST_STEPS - 1)) + _HALF)
                many = max(many, np.int64(1))
                more = np.int64(many > 1)
                at = _put(out, at, np.int64(j - column - 1) << 2 | more << 1 | np.int64(value < 0))
                if more:
                    at = _put(out, at, many - 2)
                sent = np.float32(many) * step
                values[i, j] = value + sent if value < 0 else value - sent
                column = j
        rows += 1
        entries += count
    return at, rows, entries


@kernel()
def read_steps(data: Any, least: float, ids: Any, values: Any) -> tuple[int, int]:
    """Inverse of `write_steps` into ids int64 [rows] and zeroed values: (error, entries)."""
    at, before, entries = 0, _FIRST, _NOUGHT
    dim = values.shape[1]
    for i in range(len(ids)):
        gap, at = _get(data, at)
        count, at = _get(data, at) if gap > 0 else (np.int64(-1), at)
        if gap <= 0 or before > np.int64(1) << 62:
            return (1 if gap < 0 else 2), entries
        if count <= 0 or count > dim:
            return (1 if count < 0 else 4), entries
        if at >= len(data) or data[at] >= 2 * LEVEL:
            return (1 if at >= len(data) else 8), entries
        step = np.float32(least * 2.0 ** (0.5 * (data[at] - LEVEL)))
        at += 1
        before += gap
        ids[i] = before
        column = np.int64(-1)
        for _ in range(count):
            entry, at = _get(data, at)
            if entry < 0:
                return 1, entries
            column += (entry >> 2) + 1
            if column >= dim:
                return 3, entries
            many = _ONE
            if entry & 2:
                many, at = _get(data, at)
                many += 2
                if many < 2:
                    return 1, entries
                if many > MOST_STEPS:
                    return 7, entries
            sent = np.float32(many) * step
            values[i, column] = -sent if entry & 1 else sent
        entries += count
    return (5 if at != len(data) else 0), entries


@kernel()
def write_places(ids: Any, values: Any, cut: float, most: int, out: Any, places: Any) -> Any:
    """Write the places of the first `most` entries of magnitude `cut` or more, and not 0.

    places  int64 [most], filled with their flat places in `values`
    Returns (bytes, rows, entries).
    """
    at, rows, entries, before = 0, 0, 0, _FIRST
    n, dim = values.shape
    for i in range(n):
        count = 0
        for j in range(dim):
            size = abs(values[i, j])
            count += size >= cut and size > 0
        count = min(count, most - entries)
        if count == 0:
            continue
        at = _put(out, at, ids[i] - before)
        at = _put(out, at, np.int64(count))
        before, column, left = ids[i], -1, count
        for j in range(dim):
            size = abs(values[i, j])
            if left and size >= cut and size > 0:
                at = _put(out, at, np.int64(j - column - 1))
                places[entries] = i * dim + j
                column = j
                entries += 1
                left -= 1
        rows += 1
    return at, rows, entries


@kernel()
def read_places(data: Any, ids: Any, places: Any, dim: int) -> tuple[int, int]:
    """Inverse of `write_places`: (error, entries)."""
    at, before, entries = 0, _FIRST, _NOUGHT
    for i in range(len(ids)):
        gap, at = _get(data, at)
        count, at = _get(data, at) if gap > 0 else (np.int64(-1), at)
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
            entry, at = _get(data, at)
            if entry < 0:
                return 1, entries
            column += entry + 1
            if column >= dim:
                return 3, entries
            places[entries] = i * dim + column
            entries += 1
    return (5 if at != len(data) else 0), entries


@kernel()
def write_ids(ids: Any, out: Any) -> int:
    """Write increasing ids as gaps; the number of bytes."""
    at, before = 0, _FIRST
    for i in range(len(ids)):
        at = _put(out, at, ids[i] - before)
        before = ids[i]
    return at


@kernel()
def read_ids(data: Any, ids: Any) -> int:
    """Inverse of `write_ids`; the error."""
    at, before = 0, _FIRST
    for i in range(len(ids)):
        gap, at = _get(data, at)
        if gap <= 0 or before > np.int64(1) << 62:
            return 1 if gap < 0 else 2
        before += gap
        ids[i] = before
    return 5 if at != len(data) else 0


def squeezed(stream: ByteArray) -> ByteArray:
    """Its length (8 bytes), then the stream by zstd, whose Huffman codes fit its few symbols."""
    length = np.array([len(stream)], dtype="<i8").view(np.uint8)
    if not len(stream):
        return length
    packed = pa.Codec("zstd", compression_level=1).compress(pa.py_buffer(stream))
    return np.concatenate([length, np.frombuffer(packed, dtype=np.uint8)])


def expanded(data: ByteArray, kind: str, *, most: int) -> ByteArray:
    """Inverse of `squeezed`; RefusedError for what is none, or would be longer than `most`."""
    check(1 if data.nbytes < 8 else 0, kind)
    length = int(np.frombuffer(data[:8].tobytes(), dtype="<i8")[0])
    if not 0 <= length <= most:
        raise RefusedError(f"push: rows packed as {kind}: {length} bytes cannot be so many rows.")
    if not length:
        check(5 if data.nbytes > 8 else 0, kind)
        return data[8:]
    try:
        stream = pa.Codec("zstd").decompress(pa.py_buffer(data[8:]), decompressed_size=length)
    except (OSError, pa.ArrowException) as error:
        raise RefusedError(f"push: rows packed as {kind}: the bytes are not zstd's.") from error
    return np.frombuffer(stream, dtype=np.uint8)


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
