"""Whole multiples of a step: Strom 2015, "Scalable distributed DNN training using commodity GPU
cloud computing", section 3.

Strom sends ±τ once for an entry that has gone beyond it. A push here is the sum of a block's
updates, in which a frequent word goes many τ; so an entry is sent as the whole number of steps in
it, mostly one. The rest, less than a step, stays with the node. Most entries take one byte.
"""

from __future__ import annotations

import math

import numpy as np

from embedding.errors import RefusedError
from embedding.exchange.compression.base import Compressor
from embedding.exchange.compression.sparse import check, read_steps, room, write_steps, zeros
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import PackedDelta, RowDelta
from embedding.records import FloatArray, IntArray, Table

_EACH = 9


class Threshold(Compressor):
    """Layout: step float32, then the stream of `sparse.py` with two bits (sign, more than one)."""

    kind = "threshold"

    def __init__(self, step: float) -> None:
        self.step = np.float32(step)

    @classmethod
    def of(cls, config: ExchangeConfig) -> Threshold:
        """With `threshold` as step."""
        return cls(config.threshold)

    def pack(self, table: Table, ids: IntArray, values: FloatArray) -> PackedDelta:
        """See Compressor."""
        out = room(ids, values.size, each=_EACH)
        out[:4] = np.frombuffer(self.step.tobytes(), dtype=np.uint8)
        size, rows, entries = write_steps(ids, values, self.step, out[4:])
        return PackedDelta(table, self.kind, rows, values.shape[1], entries, out[: 4 + size].copy())

    @classmethod
    def unpack(cls, packed: PackedDelta) -> RowDelta:
        """See Compressor."""
        if packed.data.nbytes < 4:
            raise RefusedError("push: rows packed as threshold: the step is missing.")
        step = np.frombuffer(packed.data[:4].tobytes(), dtype="<f4")[0]
        if not (math.isfinite(step) and step > 0):
            raise RefusedError(
                "push: rows packed as threshold: a step that is not finite or not above 0."
            )
        ids, values = zeros(packed.rows, packed.dim)
        error, entries = read_steps(packed.data[4:], step, ids, values)
        check(error, cls.kind)
        check(6 if entries != packed.entries else 0, cls.kind)
        return RowDelta(packed.table, ids, values)
