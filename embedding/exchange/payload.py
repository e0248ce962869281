"""What a push carries: how far rows moved, and what was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.records import FloatArray, HalfArray, IntArray, Table

ByteArray = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class RowDelta:
    """Sum of a node's local updates to some rows of one table.

    ids     int64 [n], distinct row ids given by the server; of `sub` bucket numbers
    values  float32 or float16 [n, dim]
    """

    table: Table
    ids: IntArray
    values: FloatArray | HalfArray


@dataclass(frozen=True)
class PackedDelta:
    """A delta as a compressor wrote it (`compression.py`).

    kind     which compressor
    rows     rows that are in it, distinct
    dim      columns of a row
    entries  entries that are in it; the others of these rows did not move
    data     uint8 [bytes]: ids, places and values as the compressor lays them out
    """

    table: Table
    kind: str
    rows: int
    dim: int
    entries: int
    data: ByteArray


@dataclass(frozen=True)
class CountGroup:
    """Rows of `BlockCounts` up to `stop` that are of one source and one window (Unix seconds)."""

    source: str
    window: int
    stop: int


@dataclass(frozen=True)
class BlockCounts:
    """What a push read, as it travels: known words by row id, only the others by name.

    groups     rows in order of their group; (source, window) occurs once
    ids        int64 [n] row ids, -1 for a word without a row; a word occurs once a group
    words      str [number of -1], the words without a row, in order
    counts     int64 [n] occurrences; documents int64 [n] documents that hold the word
    """

    groups: tuple[CountGroup, ...]
    ids: IntArray
    words: Sequence[str]
    counts: IntArray
    documents: IntArray
