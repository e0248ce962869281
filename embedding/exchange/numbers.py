"""Whole numbers in few bytes: each as its difference from the one before it, 7 bits a byte.

Ids that lie near each other take a byte or two of their eight, and so do counts. A difference
(modulo 2^64) is written with its sign as the lowest bit (zigzag), the lowest 7 bits first (LEB128).
Many of them are then coded by zstd, whose Huffman codes give a difference that is frequent a few
bits: `squeezed`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from embedding.exchange.payload import ByteArray
from embedding.kernel.records import IntArray
from embedding.models.jit import kernel

MOST_BYTES = 10
"""Bytes that one number takes at most."""
MOST_GROWTH, FREE = 200, 1 << 20
"""Bytes that one byte may stand for, and that any part may be: few bytes must not claim much."""
_WORTH = 128
_LENGTH = np.dtype("<u4")
_REASONS = {
    1: "the bytes end within a number",
    2: "a number has more than 64 bits",
    3: "there are bytes after the last number",
}
_SEVEN: Any = np.uint64(7)
_ONE: Any = np.uint64(1)
_LOW: Any = np.uint64(127)


@kernel()
def _write(values: Any, out: Any) -> int:
    """Write int64 [n] to uint8 of room enough; the number of bytes."""
    at, before = 0, np.int64(0)
    for i in range(len(values)):
        step = values[i] - before
        before = values[i]
        rest = np.uint64((step << 1) ^ (step >> 63))
        while rest > _LOW:
            out[at] = np.uint8((rest & _LOW) | np.uint64(128))
            rest >>= _SEVEN
            at += 1
        out[at] = np.uint8(rest)
        at += 1
    return at


@kernel()
def _read(data: Any, values: Any) -> int:
    """Inverse of `_write`; the error."""
    at, before = 0, np.int64(0)
    for i in range(len(values)):
        rest, shift = np.uint64(0), np.uint64(0)
        while True:
            if at >= len(data):
                return 1
            byte = np.uint64(data[at])
            at += 1
            if shift == np.uint64(63) and byte > _ONE:
                return 2
            rest |= (byte & _LOW) << shift
            if byte <= _LOW:
                break
            shift += _SEVEN
        before += np.int64(rest >> _ONE) ^ -np.int64(rest & _ONE)
        values[i] = before
    return 0 if at == len(data) else 3


def written(values: IntArray) -> ByteArray:
    """int64 [n] as bytes."""
    out = np.empty(MOST_BYTES * len(values), dtype=np.uint8)
    return out[: _write(values, out)].copy()


def read(data: ByteArray, values: IntArray) -> str | None:
    """Fill int64 [n]; what is wrong with the bytes, or None."""
    return _REASONS.get(_read(data, values))


def squeezed(data: ByteArray) -> ByteArray | None:
    """The length of `data` (uint32), then its bytes by zstd; None where that is not worth it."""
    if not _WORTH <= data.nbytes < 2**32:
        return None
    short = pa.Codec("zstd", compression_level=1).compress(pa.py_buffer(data))
    if not data.nbytes <= max(FREE, MOST_GROWTH * short.size) or short.size > 0.9 * data.nbytes:
        return None
    length = np.array([data.nbytes], dtype=_LENGTH).view(np.uint8)
    return np.concatenate([length, np.frombuffer(short, dtype=np.uint8)])


def expanded(data: ByteArray) -> ByteArray | None:
    """Inverse of `squeezed`; None for bytes that are none."""
    if data.nbytes < _LENGTH.itemsize:
        return None
    length = int(data[: _LENGTH.itemsize].view(_LENGTH)[0])
    rest = data[_LENGTH.itemsize :]
    if length > max(FREE, MOST_GROWTH * rest.nbytes):
        return None
    try:
        found = pa.Codec("zstd").decompress(pa.py_buffer(rest), decompressed_size=length)
    except (OSError, pa.ArrowException):
        return None
    return np.frombuffer(found, dtype=np.uint8)
