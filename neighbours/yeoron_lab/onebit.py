"""A bit an entry: Seide, Fu, Droppo, Li and Yu 2014, "1-bit stochastic gradient descent and its
application to data-parallel distributed training of speech DNNs", section 3 (CNTK).

An entry is sent as its sign. A row comes with two values, the mean of its entries that are not
negative and the mean of the others, which make the squared error least; the error is fed back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.exchange.compression.base import Compressor
from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.compression.traits import COMPRESSIONS, CompressionTraits
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import PackedDelta, RowDelta
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.models.jit import kernel
from yeoron_lab.steps.threshold import Threshold
from yeoron_lab.steps.varints import check, read_ids, write_ids


@kernel()
def _means(values: Any, means: Any) -> None:
    """Mean of the negative and of the other entries of each row, 0 where there are none."""
    for i in range(values.shape[0]):
        low, high, lows = np.float32(0), np.float32(0), 0
        for j in range(values.shape[1]):
            value = values[i, j]
            if value < 0:
                low += value
                lows += 1
            else:
                high += value
        means[i, 0] = low / np.float32(max(lows, 1))
        means[i, 1] = high / np.float32(max(values.shape[1] - lows, 1))


@kernel()
def _write(values: Any, means: Any, bits: Any) -> None:
    """Set a bit for each entry that is not negative, and leave the error in `values`."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            positive = not (values[i, j] < 0)
            if positive:
                bits[i, j >> 3] |= np.uint8(1 << (j & 7))
            values[i, j] -= means[i, int(positive)]


@kernel()
def _read(bits: Any, means: Any, values: Any) -> None:
    """Inverse of `_write`."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = means[i, bits[i, j >> 3] >> (j & 7) & 1]


@COMPRESSIONS.register("onebit", CompressionTraits())
class OneBit(Compressor):
    """Layout: float16 [rows, 2] values, uint8 [rows, dim / 8 rounded up] bits, ids as gaps."""

    kind = "onebit"

    @classmethod
    def of(cls, config: ExchangeConfig) -> OneBit:
        """It has no settings."""
        del config
        return cls()

    @classmethod
    def finest(cls, config: ExchangeConfig) -> Compressor:
        return Threshold.finest(config)

    def pack(self, table: Table, ids: IntArray, values: FloatArray) -> PackedDelta:
        rows, dim = values.shape
        means = np.empty((rows, 2), dtype=np.float32)
        _means(values, means)
        sent = narrow(means)
        bits = np.zeros((rows, (dim + 7) // 8), dtype=np.uint8)
        _write(values, widen(sent), bits)
        names = np.empty(10 * rows, dtype=np.uint8)
        size = write_ids(ids, names)
        parts = (sent.view(np.uint8).reshape(-1), bits.reshape(-1), names[:size])
        return PackedDelta(table, self.kind, rows, dim, values.size, np.concatenate(parts))

    @classmethod
    def unpack(cls, packed: PackedDelta) -> RowDelta:
        rows, dim = packed.rows, packed.dim
        wide = (dim + 7) // 8
        first, second = 4 * rows, (4 + wide) * rows
        check(1 if second > packed.data.nbytes else 0, cls.kind)
        check(6 if packed.entries != rows * dim else 0, cls.kind)
        means = widen(np.frombuffer(packed.data[:first].tobytes(), dtype="<f2").reshape(rows, 2))
        if not bool(np.isfinite(means).all()):
            raise RefusedError("push: rows packed as onebit: a value that is not finite.")
        ids = np.empty(rows, dtype=np.int64)
        check(read_ids(packed.data[second:], ids), cls.kind)
        values = np.empty((rows, dim), dtype=np.float32)
        _read(packed.data[first:second].reshape(rows, wide), means, values)
        return RowDelta(packed.table, ids, values)
