"""Error feedback: what a compressor leaves out of one push is added to the next of the same rows.

    sent = C(delta + residual)      residual = delta + residual - sent
    (Seide 2014, section 3; Strom 2015, section 3; Karimireddy 2019, algorithm 2)

A node also adds its residual to the rows that it pulls, so that it sees all that it learnt itself
(read my writes), sent or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from embedding.exchange.compression.base import Compressor, Halves, compressor
from embedding.exchange.compression.halves import widen
from embedding.exchange.compression.sending import FEEDBACKS, Sending
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import PackedDelta, RowDelta
from embedding.exchange.protocol import Push
from embedding.kernel.errors import RefusedError
from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.kernel.registry import NoTraits
from yeoron_lab.keeping.residuals import Residuals
from yeoron_lab.shards.client.split import places

_RowArray = tuple[IntArray, FloatArray]
"""Increasing ids int64 [n] and rows float32 [n, dim]."""

MOST_SQUARED_NORM = 1e12
"""As on the server: beyond it training has diverged; NaN and infinity exceed it too."""


@FEEDBACKS.register("residuals", NoTraits())
class Feedback(Sending):
    """See Sending; by a compressor, of which this keeps what it leaves out. Not thread-safe.

    Residuals take at most `residual_bytes`; rows that were used longest ago are sent whole
    (float16) when they would take more.
    """

    leaves = True

    def __init__(self, config: ExchangeConfig) -> None:
        super().__init__(Halves)
        self._memory = config.residual_bytes
        found = compressor(config.compression)
        self._compressor, self._finest = found.of(config), found.finest(config)
        self._held: dict[Table, Residuals] = {}
        self._last, self._offset = 0, ""
        self._before: dict[Table, _RowArray] = {}
        self._flushed: dict[Table, _RowArray] = {}

    @property
    def nbytes(self) -> int:
        return sum(held.nbytes for held in list(self._held.values()))

    @property
    def rows(self) -> int:
        """Rows of which something was not sent yet."""
        return sum(len(held) for held in list(self._held.values()))

    def encode(self, push: Push) -> Push:
        """The push as it is sent, and sent again; RefusedError when training has diverged."""
        entries = sum(delta.values.size for delta in push.deltas)
        self._check(push)
        self._offset = push.offset
        plain: list[RowDelta] = []
        packed: list[PackedDelta] = []
        before, flushed = {}, {}
        for delta in push.deltas:
            held = self._store(delta)
            ids, values = delta.ids, widen(delta.values)
            if not bool((ids[1:] > ids[:-1]).all()):
                order = np.argsort(ids, kind="stable")
                ids, values = ids[order], values[order]
            room = min(len(ids), held.limit)
            # More rows at once than may be held: the rest goes whole, with what is held of it.
            over_ids, over = held.take(ids[room:])
            values[np.searchsorted(ids, over_ids)] += over
            whole = RowDelta(delta.table, ids[room:], values[room:])
            ids, values = ids[:room], values[:room]
            old_ids, old = held.make_room(ids)
            plain += [Halves.write(each) for each in (whole, RowDelta(delta.table, old_ids, old))]
            flushed[delta.table] = _joined((over_ids, over), (old_ids, old))
            residual = np.zeros_like(values)
            held.add_to(ids, residual)
            before[delta.table] = (ids, residual)
            values += residual
            packed += self._packed(self._compressor, delta.table, ids, values)
            held.put(ids, values)
        self._last, self._before, self._flushed = push.sequence, before, flushed
        return replace(push, deltas=_merged(plain), packed=tuple(packed), entries=entries)

    def undo(self, sent: Push) -> None:
        """The server refused this push, the last one: nothing of it was taken."""
        if sent.sequence != self._last:
            return
        for table, (ids, residual) in self._before.items():
            self._held[table].take(ids)
            some = residual.any(axis=1)
            self._held[table].put(ids[some], residual[some])
        for table, (ids, rows) in self._flushed.items():
            self._held[table].put(ids, rows)
        self._before, self._flushed = {}, {}

    def add_to(self, table: Table, ids: IntArray, values: FloatArray, sequence: int) -> None:
        """Add to rows float32 [n, dim] what they lack of what this node learnt up to `sequence`.

        sequence  the last push of this node that is in the rows. When the newest is not in them,
                  the node adds that push's delta itself, and what was left before it is added here.
        """
        held = self._held.get(table)
        if held is None or not len(ids):
            return
        if sequence >= self._last or table not in self._before:
            held.add_to(ids, values)
            return
        left = np.zeros_like(values)
        held.add_to(ids, left)
        last, residual = self._before[table]
        at = positions(last, ids)
        left[at >= 0] = residual[at[at >= 0]]
        values += left

    def keep(self, alive: IntArray) -> None:
        """Words with a row, increasing: what is held of others will never be asked for."""
        for table in (Table.IN, Table.OUT):
            if table in self._held:
                self._held[table].keep(alive)

    def drain(self, most_bytes: int) -> list[RowDelta]:
        """Take out everything: deltas to be sent (`whole`), each of at most so many bytes."""
        found: list[RowDelta] = []
        for table, held in self._held.items():
            ids, rows = held.take_all()
            size = max(1, most_bytes // (2 * held.dim + 8))
            found.extend(
                RowDelta(table, ids[at : at + size], rows[at : at + size])
                for at in range(0, len(ids), size)
            )
        self._before, self._flushed = {}, {}
        return found

    def whole(self, delta: RowDelta, node: str, sequence: int, clock: int) -> Push:
        """A push of what `drain` gave; the reader goes on where it did after the last one."""
        push = Push(node, sequence, clock, offset=self._offset)
        if self._finest is None:
            return replace(push, deltas=(Halves.write(delta),))
        packed = self._packed(self._finest, delta.table, delta.ids, widen(delta.values))
        return replace(push, packed=tuple(packed))

    def restore(self, deltas: Sequence[RowDelta]) -> None:
        """What `drain` gave was not sent."""
        for delta in deltas:
            rows = widen(delta.values)
            self._held[delta.table].add_to(delta.ids, rows)
            self._held[delta.table].put(delta.ids, rows)

    def _packed(
        self, by: Compressor, table: Table, ids: IntArray, values: FloatArray
    ) -> list[PackedDelta]:
        """For each shard its rows; what is left out stays in `values`."""
        if self.shards == 1:
            return [by.pack(table, ids, values)]
        found = []
        for shard, at in enumerate(places(ids, self.shards)):
            part = values[at]
            if len(at):
                found.append(replace(by.pack(table, ids[at], part), shard=shard))
                values[at] = part
        return found

    def _store(self, delta: RowDelta) -> Residuals:
        held = self._held.get(delta.table)
        if held is None:
            dim = delta.values.shape[1]
            # Each row also takes its id, place, last use and, while free, its place again.
            limit = max(1, self._memory // (len(Table) * (4 * dim + 32)))
            held = self._held[delta.table] = Residuals(dim, limit)
        return held

    def _check(self, push: Push) -> None:
        for delta in push.deltas:
            flat = delta.values.reshape(-1)
            flat = widen(flat) if flat.dtype == np.float16 else flat
            with np.errstate(over="ignore", invalid="ignore"):
                norm = float(np.dot(flat, flat))
            if not (math.isfinite(norm) and norm <= MOST_SQUARED_NORM):
                raise RefusedError(
                    f"push {push.sequence} of node {push.node}: table {delta.table} holds values "
                    "that are not finite or are absurdly large: the node's training has diverged."
                )


def _joined(one: _RowArray, other: _RowArray) -> _RowArray:
    """Rows of ids that do not overlap, by increasing id."""
    ids = np.concatenate([one[0], other[0]])
    order = np.argsort(ids, kind="stable")
    return ids[order], np.concatenate([one[1], other[1]])[order]


def _merged(deltas: Sequence[RowDelta]) -> tuple[RowDelta, ...]:
    """One delta for each table that has rows; the ids of several do not overlap."""
    found = []
    for table in dict.fromkeys(delta.table for delta in deltas if len(delta.ids)):
        parts = [delta for delta in deltas if delta.table is table and len(delta.ids)]
        ids = np.concatenate([part.ids for part in parts])
        values = np.concatenate([part.values for part in parts])
        found.append(RowDelta(table, ids, values))
    return tuple(found)
