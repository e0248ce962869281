"""The entries that moved farthest: Aji and Heafield 2017, "Sparse communication for distributed
gradient descent", section 3 (with the residual of Strom 2015).

The largest share of a block's entries is sent as float16, by table, not by row: a row that hardly
moved sends nothing. Their places are a stream of numbers of 7 bits a byte, lowest first (LEB128).
For each row that has an entry

    gap to the id of the row before it (from -1)   number of entries   its entries

and an entry is the gap to the column before it (from -1), less one. All kernels that read or write
the stream are in this file: numba keys its cache by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.exchange.compression.base import Compressor
from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.compression.traits import COMPRESSIONS, CompressionTraits
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import PackedDelta, RowDelta
from embedding.kernel.config import part_of
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.models.jit import kernel
from yeoron_lab.settings import TopShareSettings
from yeoron_lab.steps.threshold import Threshold
from yeoron_lab.steps.varints import BEFORE_FIRST, check, get, put

_NOUGHT: Any = 0


@kernel()
def write_places(ids: Any, values: Any, cut: float, most: int, out: Any, offsets: Any) -> Any:
    """Write the places of the first `most` entries of magnitude `cut` or more, and not 0.

    offsets  int64 [most], filled with their places in `values`, counted row by row
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
                offsets[entries] = i * dim + j
                column = j
                entries += 1
                left -= 1
        rows += 1
    return at, rows, entries


@kernel()
def read_places(data: Any, ids: Any, offsets: Any, dim: int) -> tuple[int, int]:
    """Inverse of `write_places`: (error, entries)."""
    at, before, entries = 0, BEFORE_FIRST, _NOUGHT
    for i in range(len(ids)):
        gap, at = get(data, at)
        count, at = get(data, at) if gap > 0 else (np.int64(-1), at)
        if gap <= 0 or before > np.int64(1) << 62:
            return (1 if gap < 0 else 2), entries
        if count <= 0 or count > dim:
            return (1 if count < 0 else 4), entries
        if entries + count > len(offsets):
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
            offsets[entries] = i * dim + column
            entries += 1
    return (5 if at != len(data) else 0), entries


@COMPRESSIONS.register("topk", CompressionTraits())
class TopK(Compressor):
    """Layout: float16 [entries], then the stream of their places."""

    kind = "topk"

    def __init__(self, share: float) -> None:
        self.share = share

    @classmethod
    def of(cls, config: ExchangeConfig) -> TopK:
        return cls(part_of(config, TopShareSettings).top_share)

    @classmethod
    def finest(cls, config: ExchangeConfig) -> Compressor:
        """In steps, whatever was left."""
        return Threshold.finest(config)

    def pack(self, table: Table, ids: IntArray, values: FloatArray) -> PackedDelta:
        flat = values.reshape(-1)
        most = int(np.ceil(len(flat) * self.share))
        cut = 0.0
        if 0 < most < len(flat):
            cut = float(np.partition(np.abs(flat), len(flat) - most)[len(flat) - most])
        offsets = np.empty(most, dtype=np.int64)
        stream = np.empty(15 * len(ids) + 3 * most + 16, dtype=np.uint8)
        size, rows, entries = write_places(ids, values, np.float32(cut), most, stream, offsets)
        chosen = offsets[:entries]
        sent = narrow(flat[chosen])
        flat[chosen] -= widen(sent)
        data = np.concatenate([sent.view(np.uint8), stream[:size]])
        return PackedDelta(table, self.kind, rows, values.shape[1], entries, data)

    @classmethod
    def unpack(cls, packed: PackedDelta) -> RowDelta:
        ids = np.empty(packed.rows, dtype=np.int64)
        values = np.zeros((packed.rows, packed.dim), dtype=np.float32)
        split = 2 * packed.entries
        check(1 if split > packed.data.nbytes else 0, cls.kind)
        offsets = np.empty(packed.entries, dtype=np.int64)
        error, entries = read_places(packed.data[split:], ids, offsets, packed.dim)
        check(error, cls.kind)
        check(6 if entries != packed.entries else 0, cls.kind)
        halves = np.frombuffer(packed.data[:split].tobytes(), dtype="<f2")
        values.reshape(-1)[offsets] = widen(halves)
        return RowDelta(packed.table, ids, values)
