"""Turning Python objects into columns in small pieces, so that requests get the interpreter.

Arrow reads a list of strings without letting go of the interpreter: a million of them at once
would hold every request up as a lock would.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import numpy as np
import pyarrow as pa

from embedding.kernel.records import IntArray, TimeArray

T = TypeVar("T")

_PIECE = 20_000
_BREATH_S = 0.0005


def pieces(values: Iterable[T]) -> Iterator[list[T]]:
    """The values in pieces, with a pause after each."""
    source = iter(values)
    while piece := list(islice(source, _PIECE)):
        yield piece
        time.sleep(_BREATH_S)


def string_column(values: Iterable[str]) -> pa.ChunkedArray:
    """Strings as a column."""
    chunks = [pa.array(piece, pa.string()) for piece in pieces(values)]
    return pa.chunked_array(chunks, pa.string())


def digest_column(values: Iterable[bytes], width: int) -> pa.ChunkedArray:
    """Digests of `width` bytes as a column."""
    kind = pa.binary(width)
    return pa.chunked_array([pa.array(piece, kind) for piece in pieces(values)], kind)


def float_column(values: Iterable[float], n: int) -> TimeArray:
    """float64 [n]."""
    found = np.empty(n, dtype=np.float64)
    source = iter(values)
    for at in range(0, n, _PIECE):
        size = min(_PIECE, n - at)
        found[at : at + size] = np.fromiter(source, np.float64, count=size)
        time.sleep(_BREATH_S)
    return found


def names_of(ids: IntArray, words: pa.ChunkedArray) -> Callable[[IntArray], pa.Array]:
    """The words of some of `ids` (int64, increasing), whose words are `words`."""

    def named(some: IntArray) -> pa.Array:
        taken = words.take(pa.array(np.searchsorted(ids, some)))
        return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken

    return named
