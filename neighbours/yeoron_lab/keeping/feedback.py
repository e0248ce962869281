"""Error feedback: what a compressor leaves out of one push is added to the next of the same rows.

    sent = C(delta + residual)      residual = delta + residual - sent
    (Seide 2014, section 3; Strom 2015, section 3; Karimireddy 2019, algorithm 2)

A node also adds its residual to the rows that it pulls, so that it sees all that it learnt itself
(read my writes), sent or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from embedding.exchange.codec import check
from embedding.exchange.compression.base import Compressor, Halves, compressor
from embedding.exchange.compression.halves import widen
from embedding.exchange.compression.sending import FEEDBACKS, Sending
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import PackedDelta, RowDelta
from embedding.exchange.protocol import Push
from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.kernel.registry import NoTraits
from yeoron_lab.keeping.boundedrows import BoundedRows, RowsById
from yeoron_lab.shards.client.split import places


@FEEDBACKS.register("residuals", NoTraits())
class Feedback(Sending):
    """See Sending; by a compressor, of which this keeps what it leaves out. Not thread-safe.

    Residuals take at most `residual_bytes`; rows that were used longest ago are sent whole
    (float16) when they would take more.
    """

    leaves = True

    def __init__(self, config: ExchangeConfig) -> None:
        super().__init__(Halves)
        kind = compressor(config.compression)
        self._compressor, self._finest = kind.of(config), kind.finest(config)
        self._left = BoundedRows(config.residual_bytes)
        self._last, self._offset = 0, ""
        self._before: dict[Table, RowsById] = {}
        self._flushed: dict[Table, RowsById] = {}

    @property
    def nbytes(self) -> int:
        return self._left.nbytes

    @property
    def rows(self) -> int:
        """Rows of which something was not sent yet."""
        return len(self._left)

    def encode(self, push: Push, *, rest: bool = False) -> Push:
        """The push as it is sent, and sent again; RefusedError when training has diverged."""
        if rest:
            return self._whole_rest(push)
        entries = sum(delta.values.size for delta in push.deltas)
        for delta in push.deltas:
            check(delta, f"push {push.sequence} of node {push.node}: table {delta.table}")
        left, plain, packed = self._left, list[RowDelta](), list[PackedDelta]()
        before, flushed = {}, {}
        for delta in push.deltas:
            table, ids, values = delta.table, delta.ids, widen(delta.values)
            dim = values.shape[1]
            if not bool((ids[1:] > ids[:-1]).all()):
                order = np.argsort(ids, kind="stable")
                ids, values = ids[order], values[order]
            room = min(len(ids), left.limit(dim))
            # More rows at once than may be kept: the rest goes whole, with what is kept of it.
            over_ids, over = left.take(table, ids[room:])
            if len(over_ids):
                values[np.searchsorted(ids, over_ids)] += over
            whole = RowDelta(table, ids[room:], values[room:])
            ids, values = ids[:room], values[:room]
            old_ids, old = left.make_room(table, ids, dim)
            plain += [Halves.write(each) for each in (whole, RowDelta(table, old_ids, old))]
            flushed[table] = _joined((over_ids, over.reshape(-1, dim)), (old_ids, old))
            residual = np.zeros_like(values)
            left.add_to(table, ids, residual)
            before[table] = (ids, residual)
            values += residual
            packed += self._packed(self._compressor, table, ids, values)
            left.put(table, ids, values)
        self._offset = push.offset
        self._last, self._before, self._flushed = push.sequence, before, flushed
        return replace(push, deltas=_merged(plain), packed=tuple(packed), entries=entries)

    def _whole_rest(self, push: Push) -> Push:
        (delta,) = push.deltas
        values = widen(delta.values)
        self._last, self._before = push.sequence, {}
        self._flushed = {delta.table: (delta.ids, values.copy())}
        push = replace(push, offset=self._offset)
        if self._finest is None:
            return replace(push, deltas=(Halves.write(delta),))
        packed = self._packed(self._finest, delta.table, delta.ids, values)
        return replace(push, deltas=(), packed=tuple(packed))

    def undo(self, sent: Push) -> None:
        """The server refused this push, the last one: nothing of it was taken."""
        if sent.sequence != self._last:
            return
        for table, (ids, residual) in self._before.items():
            self._left.take(table, ids)
            some = residual.any(axis=1)
            self._left.put(table, ids[some], residual[some])
        for table, (ids, rows) in self._flushed.items():
            self._left.put(table, ids, rows)
        self._before, self._flushed = {}, {}

    def add_to(self, table: Table, ids: IntArray, values: FloatArray, sequence: int) -> None:
        """Add to rows float32 [n, dim] what they lack of what this node learnt up to `sequence`.

        sequence  the last push of this node that is in the rows. When the newest is not in them,
                  the node adds that push's delta itself, and what was left before it is added here.
        """
        if sequence >= self._last or table not in self._before:
            self._left.add_to(table, ids, values)
            return
        left = np.zeros_like(values)
        self._left.add_to(table, ids, left)
        last, residual = self._before[table]
        at = positions(last, ids)
        left[at >= 0] = residual[at[at >= 0]]
        values += left

    def keep(self, alive: IntArray) -> None:
        """Words with a row, increasing: what is left of others will never be asked for."""
        self._left.keep(alive)

    def rest(self, most_bytes: int) -> RowDelta | None:
        while tables := self._left.tables:
            ids, rows = self._left.take_some(tables[0], most_bytes)
            some = rows.any(axis=1)
            if some.any():
                return RowDelta(tables[0], ids[some], rows[some])
        return None

    def _packed(
        self, by: Compressor, table: Table, ids: IntArray, values: FloatArray
    ) -> list[PackedDelta]:
        """For each shard its rows; what is left out stays in `values`."""
        if self.shards == 1:
            return [by.pack(table, ids, values)]
        packed = []
        for shard, own in enumerate(places(ids, self.shards)):
            part = values[own]
            if len(own):
                packed.append(replace(by.pack(table, ids[own], part), shard=shard))
                values[own] = part
        return packed


def _joined(*taken: RowsById) -> RowsById:
    """Rows of ids that do not overlap, by increasing id."""
    ids = np.concatenate([ids for ids, _ in taken])
    order = np.argsort(ids, kind="stable")
    return ids[order], np.concatenate([rows for _, rows in taken])[order]


def _merged(deltas: Sequence[RowDelta]) -> tuple[RowDelta, ...]:
    """One delta for each table that has rows; the ids of several do not overlap."""
    merged = []
    for table in dict.fromkeys(delta.table for delta in deltas if len(delta.ids)):
        parts = [delta for delta in deltas if delta.table is table and len(delta.ids)]
        ids = np.concatenate([part.ids for part in parts])
        values = np.concatenate([part.values for part in parts])
        merged.append(RowDelta(table, ids, values))
    return tuple(merged)
