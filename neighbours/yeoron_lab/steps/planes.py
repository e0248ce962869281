"""Rows of whole numbers of steps as bytes: what is alike lies together, and is coded by zstd.

Six parts, each with Huffman codes of its own (zstd; where it does not help, as they are):

    ids       gap to the id of the row before it (from -1), for each row of which anything is sent
    levels    a byte a row: its step
    leading   the first columns, one after the other: steps with their sign (zigzag)
    signs     the other columns, row by row: nothing, + or -, five entries in a byte
    sizes     half a byte for each of those that is sent: steps less one, 15: 15 or more
    large     and how many more than 15

Numbers that are no byte or half a byte are written 7 bits a byte, lowest first (LEB128). All
kernels that read or write the parts are in this file: numba keys its cache by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from embedding.exchange.payload import ByteArray
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, IntArray
from embedding.models.jit import kernel
from yeoron_lab.steps.varints import check, get, put, read_ids, write_ids

_PARTS = 6
LEVEL: Any = 64
"""What is written for the least step; one more is the root of 2 times as large a step."""
SOME: Any = 0.8
"""A row's step as a part of its largest entry, at most: what is left of a row always shrinks."""
_FIRST: Any = 0.4
"""Step of a row of which the receiver has nothing, as a part of its root mean square."""
MOST_STEPS = 1 << 20
"""Steps that one entry may be sent at once; more stay with the sender."""
_DIGITS = np.arange(243)[:, None] // 3 ** np.arange(5) % 3
"""Of each byte of signs its five entries: 0, 1 for +, 2 for -."""
_SOME_OF: Any = np.count_nonzero(_DIGITS, axis=1)
_PLACE_OF: Any = np.argsort(_DIGITS == 0, axis=1, kind="stable")
_SIGN_OF: Any = np.take_along_axis(np.array([0, 1, -1])[_DIGITS], _PLACE_OF, axis=1)
_HALF: Any = np.float32(0.5)


@kernel(inline="always")
def _step(least: float, level: Any) -> Any:
    return np.float32(least * 2.0 ** (0.5 * (np.int64(level) - LEVEL)))


@kernel()
def choose(values: Any, first: Any, least: float, relative: float, levels: Any, chosen: Any) -> Any:
    """Give each row its level, and keep those that have an entry of a step: (rows, entries).

    A row's step is the power of the root of 2, times `least`, that is nearest to `relative` times
    the root mean square of the row, so that its largest entry is sent in any case, and at least
    `least`. An entry below the step is left out.

    values  float32 [n, dim], finite
    first   bool [n]: rows of which the receiver has nothing: their step is FIRST times their root
            mean square, however small; or empty, for none
    levels  uint8 [n]; chosen int64 [n]: the rows, in order, as many as are returned
    """
    rows, entries = 0, 0
    n, dim = values.shape
    for i in range(n):
        level = LEVEL
        whole = len(first) > 0 and first[i]
        if relative > 0 or whole:
            square, largest = np.float32(0), np.float32(0)
            for j in range(dim):
                square += values[i, j] * values[i, j]
                largest = max(largest, abs(values[i, j]))
            ratio = (_FIRST if whole else relative) * np.sqrt(square / dim) / least
            ratio = min(ratio, SOME * largest / least)
            if ratio > 1 or (whole and ratio > 0):
                level += int(np.floor(np.log2(ratio) * 2 + 0.5))
                level = max(min(level, 2 * LEVEL - 1), 0)
        step, count = _step(least, level), 0
        for j in range(dim):
            count += abs(values[i, j]) >= step
        levels[i] = level
        if count:
            chosen[rows] = i
            rows += 1
            entries += count
    return rows, entries


@kernel(inline="always")
def _steps(value: Any, step: Any) -> Any:
    """How many steps of it are sent, with its sign."""
    size = abs(value)
    if not size >= step:
        return np.int64(0)
    many = np.int64(min(size / step, np.float32(MOST_STEPS - 1)) + _HALF)
    many = max(many, np.int64(1))
    return -many if value < 0 else many


@kernel()
def write_leading(values: Any, k: int, levels: Any, chosen: Any, least: float, out: Any) -> int:
    """Columns 0 to k of the chosen rows of float32 [n, dim]; takes them off. Bytes written."""
    at, rows = 0, len(chosen)
    numbers = np.empty((k, rows), dtype=np.int64)
    for i in range(rows):
        row = chosen[i]
        step = _step(least, levels[row])
        for j in range(k):
            many = _steps(values[row, j], step)
            numbers[j, i] = (many << 1) ^ (many >> 63)
            values[row, j] -= np.float32(many) * step
    for j in range(k):
        for i in range(rows):
            at = put(out, at, numbers[j, i])
    return at


@kernel()
def write_others(
    values: Any, k: int, levels: Any, chosen: Any, least: float, signs: Any, sizes: Any, large: Any
) -> tuple[int, int, int]:
    """Columns k to dim of the chosen rows of float32 [n, dim]; takes them off. Bytes of each part.

    First which entries are sent, then those alone: a branch at each entry would be guessed wrong
    at every third.
    """
    sized, grown, columns = 0, 0, values.shape[1] - k
    entries = len(chosen) * columns
    codes, sent = np.zeros(entries + 4, dtype=np.uint8), np.empty(entries + 2, dtype=np.uint8)
    sent_columns = np.empty(columns + 1, dtype=np.int32)
    for i in range(len(chosen)):
        row, first = chosen[i], i * columns
        step, some = _step(least, levels[row]), 0
        for j in range(columns):
            sign = np.uint8(2) if values[row, k + j] < 0 else np.uint8(1)
            codes[first + j] = sign if abs(values[row, k + j]) >= step else np.uint8(0)
        for j in range(columns):
            sent_columns[some] = j
            some += codes[first + j] > 0
        for at in range(some):
            j = k + sent_columns[at]
            many = _steps(values[row, j], step)
            values[row, j] -= np.float32(many) * step
            more = abs(many) - 1
            if more >= 15:
                grown = put(large, grown, more - 15)
                more = np.int64(15)
            sent[sized] = more
            sized += 1
    sent[sized] = 0
    for at in range((sized + 1) >> 1):
        sizes[at] = sent[2 * at] | sent[2 * at + 1] << 4
    packed = (entries + 4) // 5
    for at in range(packed):
        low = codes[5 * at] + 3 * codes[5 * at + 1] + 9 * codes[5 * at + 2]
        signs[at] = low + 27 * codes[5 * at + 3] + 81 * codes[5 * at + 4]
    return packed, (sized + 1) >> 1, grown


@kernel()
def read_leading(data: Any, levels: Any, least: float, values: Any, k: int) -> tuple[int, int]:
    """Inverse of `write_leading` into float32 [rows, dim]: (error, entries)."""
    at, entries = 0, 0
    for j in range(k):
        for i in range(len(values)):
            many, at = get(data, at)
            if many < 0:
                return 1, entries
            if many > 2 * MOST_STEPS:
                return 9, entries
            entries += many > 0
            steps = (many >> 1) ^ -(many & 1)
            values[i, j] = np.float32(steps) * _step(least, levels[i])
    return (5 if at != len(data) else 0), entries


@kernel()
def read_others(
    signs: Any, sizes: Any, large: Any, levels: Any, least: float, values: Any, k: int
) -> tuple[int, int]:
    """Inverse of `write_others` into float32 [rows, dim], where they are 0; (error, entries).

    `signs` is as long as it has to be.
    """
    sized, grown = 0, 0
    rows, dim = values.shape
    row, column = 0, k
    step = _step(least, levels[0]) if rows else np.float32(0)
    for at in range(len(signs)):
        packed = np.int64(signs[at])
        if packed >= 243:
            return 9, sized
        done = 0
        for t in range(_SOME_OF[packed] + 1):
            # Behind the last of a byte's entries: to the next byte's first.
            ahead = _PLACE_OF[packed, t] - done if t < _SOME_OF[packed] else 5 - done
            done, column = done + ahead, column + ahead
            while column >= dim:
                row, column = row + 1, column - (dim - k)
                step = _step(least, levels[row]) if row < rows else step
            if t == _SOME_OF[packed]:
                break
            if row >= rows:
                return 5, sized
            if sized >> 1 >= len(sizes):
                return 1, sized
            many = np.int64(sizes[sized >> 1] >> 4 * (sized & 1) & 15) + 1
            sized += 1
            if many == 16:
                more, grown = get(large, grown)
                if more < 0 or more > MOST_STEPS:
                    return (1 if more < 0 else 9), sized
                many += more
            sent = np.float32(many) * step
            values[row, column] = sent if _SIGN_OF[packed, t] > 0 else -sent
    if (sized + 1) >> 1 != len(sizes) or grown != len(large):
        return 5, sized
    return 0, sized


def written(
    ids: IntArray, values: FloatArray, levels: ByteArray, chosen: IntArray, least: Any, leading: int
) -> list[ByteArray]:
    """The parts of the chosen rows; what is sent is taken off `values`, float32 [n, dim].

    leading  columns that are written one after the other
    """
    rows, dim = len(chosen), values.shape[1]
    entries = rows * (dim - leading)
    room = (10 * rows, 4 * rows * leading, entries // 5 + 1, entries // 2 + 1, 4 * entries)
    names, lead, signs, sizes, large = (np.empty(size, dtype=np.uint8) for size in room)
    n_names = write_ids(ids[chosen], names)
    n_lead = write_leading(values, leading, levels, chosen, least, lead)
    ends = write_others(values, leading, levels, chosen, least, signs, sizes, large)
    return [
        names[:n_names],
        levels[chosen],
        lead[:n_lead],
        signs[: ends[0]],
        sizes[: ends[1]],
        large[: ends[2]],
    ]


def read(
    parts: Sequence[ByteArray], rows: int, dim: int, least: Any, leading: int, kind: str
) -> tuple[IntArray, FloatArray, int]:
    """Inverse of `written`: ids, rows float32 [rows, dim], entries; RefusedError: malformed."""
    names, levels, lead, signs, sizes, large = parts
    check(1 if len(levels) != rows else 0, kind)
    check(8 if len(levels) and int(levels.max()) >= 2 * LEVEL else 0, kind)
    check(1 if len(signs) != (rows * (dim - leading) + 4) // 5 else 0, kind)
    ids, values = np.empty(rows, dtype=np.int64), np.zeros((rows, dim), dtype=np.float32)
    check(read_ids(names, ids), kind)
    error, few = read_leading(lead, levels, least, values, leading)
    check(error, kind)
    error, many = read_others(signs, sizes, large, levels, least, values, leading)
    check(error, kind)
    check(7 if bool((~values.any(axis=1)).any()) else 0, kind)
    return ids, values, few + many


def squeezed(parts: Sequence[ByteArray]) -> ByteArray:
    """All parts behind their lengths, as they are and as they are sent (uint32 each)."""
    codec = pa.Codec("zstd", compression_level=1)
    sent = [np.frombuffer(codec.compress(pa.py_buffer(part)), dtype=np.uint8) for part in parts]
    sent = [
        short if len(short) < len(part) else part for part, short in zip(parts, sent, strict=True)
    ]
    lengths = np.array([(len(a), len(b)) for a, b in zip(parts, sent, strict=True)], dtype="<u4")
    return np.concatenate([lengths.reshape(-1).view(np.uint8), *sent])


def expanded(data: ByteArray, kind: str, *, most: Sequence[int]) -> list[ByteArray]:
    """Inverse of `squeezed`; RefusedError for what is none, or a part longer than `most`."""
    size = 8 * _PARTS
    check(1 if data.nbytes < size else 0, kind)
    lengths = np.frombuffer(data[:size].tobytes(), dtype="<u4").astype(np.int64).reshape(-1, 2)
    check(1 if int(lengths[:, 1].sum()) > data.nbytes - size else 0, kind)
    check(5 if int(lengths[:, 1].sum()) < data.nbytes - size else 0, kind)
    parts, at = [], size
    for (length, sent), room in zip(lengths.tolist(), most, strict=True):
        if length > room:
            raise RefusedError(
                f"push: rows packed as {kind}: {length} bytes cannot be so many rows."
            )
        parts.append(_expanded(data[at : at + sent], length, kind))
        at += sent
    return parts


def _expanded(part: ByteArray, length: int, kind: str) -> ByteArray:
    if len(part) == length:
        return part
    try:
        whole = pa.Codec("zstd").decompress(pa.py_buffer(part), decompressed_size=length)
    except (OSError, pa.ArrowException) as error:
        raise RefusedError(f"push: rows packed as {kind}: the bytes are not zstd's.") from error
    return np.frombuffer(whole, dtype=np.uint8)


def most(rows: int, dim: int, leading: int) -> npt.NDArray[np.int64]:
    """The longest that each part may be."""
    entries = rows * (dim - leading)
    sizes = (10 * rows, rows, 4 * rows * leading, entries // 5 + 1, entries // 2 + 1, 4 * entries)
    return np.array(sizes, dtype=np.int64)
