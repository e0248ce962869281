"""A message that is larger than one may be, as bytes that travel in pieces, and whole again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from embedding.exchange.wire import (
    MESSAGE_SCHEMA,
    SLOTS,
    Array,
    Message,
    contents,
    decode,
    encode,
    slot,
)
from embedding.kernel.errors import RefusedError


def cut(message: Message, most_bytes: int) -> tuple[list[int], list[Array]] | None:
    """Bytes of its header and of each slot, and all of them in pieces uint8 of `most_bytes`.

    None where it fits as it is.
    """
    batch, header = encode(message)
    if batch.nbytes + len(header) <= most_bytes:
        return None
    parts = [memoryview(header), *contents(batch)]
    data = np.concatenate([np.frombuffer(part, dtype=np.uint8) for part in parts])
    pieces = [data[at : at + most_bytes] for at in range(0, len(data), most_bytes)]
    return [part.nbytes for part in parts], pieces


def whole_again(sizes: object, pieces: Sequence[Array]) -> Message:
    """Inverse of `cut`; RefusedError when the pieces do not make up a message."""
    if not isinstance(sizes, list) or len(sizes) != SLOTS + 1:
        raise RefusedError(f"message: `held` must be a list of {SLOTS + 1} sizes.")
    if any(type(size) is not int or size < 0 for size in sizes):
        raise RefusedError("message: a size in `held` is no whole number.")
    data = np.concatenate([np.empty(0, dtype=np.uint8), *pieces])
    if sum(sizes) != len(data):
        raise RefusedError(f"message: {len(data)} bytes in pieces, not {sum(sizes)}.")
    header, *slots = (pa.py_buffer(part) for part in _split(data, sizes))
    columns = [slot(part, part.size) for part in slots]
    return decode(pa.RecordBatch.from_arrays(columns, schema=MESSAGE_SCHEMA), header)


def _split(data: Array, sizes: Sequence[int]) -> Iterator[Array]:
    at = 0
    for size in sizes:
        yield data[at : at + size]
        at += size
