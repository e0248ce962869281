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
    shard    which shard its rows lie on, where there are several; it does not travel
    """

    table: Table
    kind: str
    rows: int
    dim: int
    entries: int
    data: ByteArray
    shard: int = 0


@dataclass(frozen=True)
class Surroundings:
    """What stood around young words and a sample of known ones, added up (`models/inference.py`).

    ids       int64 [n], distinct row ids given by the server
    sums      float32 or float16 [n, dim], Σ w u/|u|; weights float32 [n], Σ w
    mentions  int64 [n], occurrences that are in the sums
    """

    ids: IntArray
    sums: FloatArray | HalfArray
    weights: FloatArray
    mentions: IntArray

    @property
    def nbytes(self) -> int:
        """Bytes as they are sent."""
        return sum(part.nbytes for part in (self.ids, self.sums, self.weights, self.mentions))


def summed(parts: Sequence[Surroundings]) -> Surroundings | None:
    """The sums of all parts, as float16 when all of them are; None of nothing."""
    parts = [part for part in parts if len(part.ids)]
    if len(parts) < 2:
        return parts[0] if parts else None
    ids, at = np.unique(np.concatenate([part.ids for part in parts]), return_inverse=True)
    sums = np.zeros((len(ids), parts[0].sums.shape[1]), dtype=np.float32)
    weights = np.zeros(len(ids), dtype=np.float32)
    mentions = np.zeros(len(ids), dtype=np.int64)
    for part, own in zip(parts, np.split(at, np.cumsum([len(p.ids) for p in parts])), strict=False):
        sums[own] += part.sums
        weights[own] += part.weights
        mentions[own] += part.mentions
    half = all(part.sums.dtype == np.float16 for part in parts)
    largest = np.finfo(np.float16).max
    kept = np.clip(sums, -largest, largest).astype(np.float16) if half else sums
    return Surroundings(ids, kept, weights, mentions)


@dataclass(frozen=True)
class Usage:
    """What stood around the words of a push, added up by word, source and window.

    at      int64 [n], increasing: rows of the push's `BlockCounts`, all of words with a row
    slopes  float32 or float16 [n, dim], g of `worker/usage.py`; pairs float32 [n], N
    """

    at: IntArray
    slopes: FloatArray | HalfArray
    pairs: FloatArray

    @property
    def nbytes(self) -> int:
        """Bytes as they are sent."""
        return self.at.nbytes + self.slopes.nbytes + self.pairs.nbytes


@dataclass(frozen=True)
class Reread:
    """What stood around words in texts of windows before, by the tables that a window began with.

    window  start of the window (Unix seconds) that is compared with them
    part    which part of the documents, from 0 on; the parts of a source hold different ones
    ids     int64 [n], distinct row ids
    slopes  float32 or float16 [n, dim], g of `worker/usage.py`; pairs float32 [n], N
    """

    window: int
    source: str
    part: int
    ids: IntArray
    slopes: FloatArray | HalfArray
    pairs: FloatArray

    @property
    def nbytes(self) -> int:
        """Bytes as they are sent."""
        return self.ids.nbytes + self.slopes.nbytes + self.pairs.nbytes


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
