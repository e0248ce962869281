"""The entries that moved farthest: Aji and Heafield 2017, "Sparse communication for distributed
gradient descent", section 3 (with the residual of Strom 2015).

The largest share of a block's entries is sent as float16, by table, not by row: a row that hardly
moved sends nothing.
"""

from __future__ import annotations

import numpy as np

from embedding.exchange.compression.base import Compressor
from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.compression.sparse import check, read_places, room, write_places, zeros
from embedding.exchange.compression.traits import COMPRESSIONS, CompressionTraits
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import PackedDelta, RowDelta
from embedding.kernel.records import FloatArray, IntArray, Table

_EACH = 3


@COMPRESSIONS.register("topk", CompressionTraits())
class TopK(Compressor):
    """Layout: float16 [entries], then the stream of `sparse.py`."""

    kind = "topk"

    def __init__(self, share: float) -> None:
        self.share = share

    @classmethod
    def of(cls, config: ExchangeConfig) -> TopK:
        """With `top_share` as share."""
        return cls(config.top_share)

    def pack(self, table: Table, ids: IntArray, values: FloatArray) -> PackedDelta:
        flat = values.reshape(-1)
        most = int(np.ceil(len(flat) * self.share))
        cut = 0.0
        if 0 < most < len(flat):
            cut = float(np.partition(np.abs(flat), len(flat) - most)[len(flat) - most])
        places = np.empty(most, dtype=np.int64)
        stream = room(ids, most, each=_EACH)
        size, rows, entries = write_places(ids, values, np.float32(cut), most, stream, places)
        chosen = places[:entries]
        sent = narrow(flat[chosen])
        flat[chosen] -= widen(sent)
        data = np.concatenate([sent.view(np.uint8), stream[:size]])
        return PackedDelta(table, self.kind, rows, values.shape[1], entries, data)

    @classmethod
    def unpack(cls, packed: PackedDelta) -> RowDelta:
        ids, values = zeros(packed.rows, packed.dim)
        split = 2 * packed.entries
        check(1 if split > packed.data.nbytes else 0, cls.kind)
        places = np.empty(packed.entries, dtype=np.int64)
        error, entries = read_places(packed.data[split:], ids, places, packed.dim)
        check(error, cls.kind)
        check(6 if entries != packed.entries else 0, cls.kind)
        halves = np.frombuffer(packed.data[:split].tobytes(), dtype="<f2")
        values.reshape(-1)[places] = widen(halves)
        return RowDelta(packed.table, ids, values)
