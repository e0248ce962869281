"""Whole multiples of a step: Strom 2015, "Scalable distributed DNN training using commodity GPU
cloud computing", section 3.

Strom sends ±τ once for an entry that has gone beyond it. A push here is the sum of a block's
updates, in which a frequent word goes many τ; so an entry is sent as the nearest whole number of
steps, mostly one. The rest, less than a step, stays with the node.

One τ for all rows would hold the slow ones back until they are far from what others know of them:
rare words, whose vectors the nodes then learn twice. So the step of a row follows how far it moved,
as the values of one bit do (`onebit.py`); Strom's τ is the least step.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from embedding.errors import RefusedError
from embedding.exchange.compression.base import Compressor
from embedding.exchange.compression.sparse import (
    check,
    expanded,
    read_steps,
    room,
    squeezed,
    write_steps,
    zeros,
)
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import PackedDelta, RowDelta
from embedding.records import FloatArray, IntArray, Table

_EACH = 9
_NONE = np.empty(0, dtype=np.bool_)


class Threshold(Compressor):
    """Layout: least step float32, then the squeezed stream of `sparse.py`, two bits an entry.

    step      the least step
    relative  a row's step as a multiple of the root mean square of its entries; 0: `step` for all
    """

    kind = "threshold"

    def __init__(self, step: float, relative: float = 0.0) -> None:
        self.step = np.float32(step)
        self.relative = np.float32(relative)

    @classmethod
    def of(cls, config: ExchangeConfig) -> Threshold:
        """With `threshold` and `relative_threshold`."""
        return cls(config.threshold, config.relative_threshold)

    def pack(
        self,
        table: Table,
        ids: IntArray,
        values: FloatArray,
        first: npt.NDArray[np.bool_] = _NONE,
    ) -> PackedDelta:
        """See Compressor.

        first  bool [n], rows of which the receiver has nothing: in steps finer than any other's
        """
        out = room(ids, values.size, each=_EACH)
        size, rows, entries = write_steps(ids, values, first, self.step, self.relative, out)
        step = np.frombuffer(self.step.tobytes(), dtype=np.uint8)
        data = np.concatenate([step, squeezed(out[:size])])
        return PackedDelta(table, self.kind, rows, values.shape[1], entries, data)

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
        most = room(np.empty(packed.rows, dtype=np.int64), packed.entries, each=_EACH).nbytes
        stream = expanded(packed.data[4:], cls.kind, most=most)
        ids, values = zeros(packed.rows, packed.dim)
        error, entries = read_steps(stream, step, ids, values)
        check(error, cls.kind)
        check(6 if entries != packed.entries else 0, cls.kind)
        return RowDelta(packed.table, ids, values)
