"""Rows that a node keeps, so that the server sends only those that others have changed since.

Each pull names the rows and, for those that are kept, of which pull they are; the server answers
which of them somebody else has changed, and sends these and the ones that are not kept
(`versions.py`). What the node pushes itself it adds to the rows that it keeps, as the
server does; so a kept row is the server's to within the rounding of the one pull that brought it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from embedding.exchange.changes import CACHES
from embedding.exchange.codec import to_message
from embedding.exchange.compression.base import unpacked
from embedding.exchange.compression.halves import widen
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.ownrows import check_rows_came
from embedding.exchange.payload import ByteArray, RowDelta
from embedding.exchange.protocol import PulledRows, Push
from embedding.exchange.wire import Array, Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from embedding.kernel.registry import NoTraits
from embedding.server.rows.tables import Tables
from yeoron_lab.keeping.residuals import Residuals
from yeoron_lab.keeping.versions import versions_of

MOST_PULLS = 200
"""Rows that were not pulled again in so many pulls are asked for again."""


class RowCache:
    """Rows by table and id, at most `memory` bytes; those not pulled longest go. Not thread-safe.

    epoch     the incarnation of the server that the rows are of
    sequence  the last push that was added to them
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.epoch = 0
        self.sequence = 0
        self.asked = self.spared = 0
        self._clocks: list[int] = []
        self._held: dict[Table, Residuals] = {}

    @property
    def nbytes(self) -> int:
        return sum(cached.nbytes for cached in list(self._held.values()))

    def follow(self, epoch: int) -> None:
        """The server greeted: rows of an earlier incarnation are of no use."""
        if epoch != self.epoch:
            self.clear()
            self.epoch = epoch

    def clear(self) -> None:
        self._held.clear()
        self._clocks.clear()

    def ask(self, asked: Mapping[Table, IntArray]) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and parts that a pull of these ids has besides."""
        parts: dict[str, Array] = {"clocks": np.array(self._clocks[::-1], dtype=np.int64)}
        for table, ids in asked.items():
            ages: ByteArray = np.zeros(len(ids), dtype=np.uint8)
            cached = self._held.get(table)
            if cached is not None:
                used = cached.used(ids)
                age = self._pull - used + 1
                known = (used >= 0) & (age >= 1) & (age <= len(self._clocks))
                ages[known] = age[known]
            parts[f"{table}.kept"] = ages
        return {"kept": [self.epoch, self.sequence]}, parts

    def filled(
        self,
        asked: Mapping[Table, IntArray],
        got: Mapping[Table, FloatArray | HalfArray],
        answer: Message,
        *,
        sequence: int,
    ) -> dict[Table, FloatArray]:
        """Every row that was asked for, float32; keeps them.

        got       the rows that came with the answer
        sequence  the node's last push that is in them
        """
        clock, sent = answer.header.get("versions"), None
        if any(name.endswith(".sent") for name in answer.arrays):
            sent = {table: answer.array(f"{table}.sent", "u1", 1) for table in asked}
        rows = {table: self._merge(table, ids, got[table], sent) for table, ids in asked.items()}
        if sequence != self.sequence or type(clock) is not int:
            self.clear()
            return rows
        self._clocks.append(clock)
        self._pull += 1
        for table, ids in asked.items():
            self._keep(table, ids, rows[table])
        if len(self._clocks) > MOST_PULLS:
            del self._clocks[0]
        return rows

    def learnt(self, deltas: Sequence[RowDelta], sequence: int) -> None:
        """The server has taken this push: the kept rows move as its own."""
        for delta in deltas:
            cached = self._held.get(delta.table)
            if cached is not None and len(delta.ids):
                cached.move(delta.ids, widen(delta.values))
        self.sequence = sequence

    def keep(self, alive: IntArray) -> None:
        """Forget rows of evicted words."""
        for table in (Table.IN, Table.OUT):
            if table in self._held:
                self._held[table].keep(alive)

    _pull = 0
    """Pulls so far; rows are marked with the one that they were last of."""

    def _merge(
        self,
        table: Table,
        ids: IntArray,
        got: FloatArray | HalfArray,
        sent: Mapping[Table, ByteArray] | None,
    ) -> FloatArray:
        came = np.ones(len(ids), dtype=np.bool_)
        if sent is not None:
            if sent[table].nbytes != (len(ids) + 7) // 8:
                raise RefusedError("pull: the answer does not say of each row whether it came.")
            came = np.unpackbits(sent[table], count=len(ids)).astype(np.bool_)
        if int(came.sum()) != len(got):
            raise RefusedError("pull: the answer has another number of rows than it says.")
        self.asked += len(ids)
        self.spared += len(ids) - len(got)
        if came.all():
            return widen(got)
        rows = np.zeros((len(ids), got.shape[1]), dtype=np.float32)
        rows[came] = got
        left = np.zeros((int((~came).sum()), got.shape[1]), dtype=np.float32)
        self._held[table].add_to(ids[~came], left)
        rows[~came] = left
        return rows

    def _keep(self, table: Table, ids: IntArray, rows: FloatArray) -> None:
        cached = self._held.get(table)
        if cached is None:
            dim = rows.shape[1]
            limit = max(1, self.memory // (len(Table) * (4 * dim + 32)))
            cached = self._held[table] = Residuals(dim, limit)
        order = np.argsort(ids, kind="stable")[: cached.limit]
        chosen = ids[order]
        cached.make_room(chosen)
        cached.put(chosen, rows[order], clock=self._pull)


class NodeCache:
    """See KeptRows: what others have changed since comes whole."""

    def __init__(self, config: ExchangeConfig) -> None:
        self.cache = RowCache(config.cache_bytes)
        self._asking = False

    @property
    def nbytes(self) -> int:
        return self.cache.nbytes

    @property
    def asked(self) -> int:
        return self.cache.asked

    @property
    def spared(self) -> int:
        return self.cache.spared

    def greeted(self, epoch: int, sequence: int, *, first: bool) -> None:
        if first:
            self.cache.sequence = sequence
        self.cache.follow(epoch)

    def refused(self) -> None:
        """It has changed nothing that is kept."""

    def alive(self, ids: IntArray) -> None:
        self.cache.keep(ids)

    def asking(self, message: Message, asked: Mapping[Table, IntArray]) -> Message:
        self._asking = any(map(len, asked.values()))
        if not self._asking:
            return message
        header, parts = self.cache.ask(asked)
        return Message({**message.header, **header}, {**message.arrays, **parts})

    def came(
        self, answer: Message, pulled: PulledRows, asked: Mapping[Table, IntArray]
    ) -> dict[Table, Any]:
        if not self._asking:
            check_rows_came(asked, pulled.rows)
            return dict(pulled.rows)
        found = pulled.rows
        return {**self.cache.filled(asked, found, answer, sequence=pulled.sequence)}

    def learnt(self, push: Push) -> None:
        self.cache.learnt(unpacked(push), push.sequence)


@dataclass
class CachedRows:
    """What a pull says of the rows that its node keeps; see Answering.

    epoch     the incarnation of the server that they are of
    sequence  the last push of the node that is in them
    since     by table int64 [n]: the server's clock of each row, -1 where none is kept
    clock     of the rows that are read now
    lacks     by table bool [n]: which rows the node has not got as they are; empty: all are sent
    """

    epoch: int
    sequence: int
    since: Mapping[Table, IntArray]
    clock: int = 0
    lacks: dict[Table, Array] = field(default_factory=dict)
    whole = True

    @classmethod
    def of(cls, message: Message, asked: Mapping[Table, IntArray]) -> CachedRows | None:
        """From a pull; None when it says nothing. RefusedError when it is malformed."""
        if "kept" not in message.header:
            return None
        facts = message.header["kept"]
        if not (isinstance(facts, list) and [type(n) for n in facts] == [int, int]):
            raise RefusedError("pull: `kept` is [epoch, sequence].")
        clocks = message.array("clocks", "i8", 1)
        table = np.concatenate([np.array([-1], dtype=np.int64), clocks])
        since = {}
        for name, ids in asked.items():
            ages = message.array(f"{name}.kept", "u1", 1)
            if len(ages) != len(ids) or int(ages.max(initial=0)) > len(clocks):
                raise RefusedError("pull: what is kept does not go with the ids or the clocks.")
            since[name] = table[ages]
        epoch, sequence = facts
        return cls(epoch, sequence, since)

    def read(
        self,
        tables: Tables,
        slots: Callable[[], Mapping[Table, IntArray]],
        node: str,
        incarnation: tuple[int, int],
    ) -> int:
        """See Answering: a node that keeps rows of another incarnation, or lacks a push of its own,
        gets all of them."""
        versions = versions_of(tables)
        self.clock = versions.clock
        if (self.epoch, self.sequence) != incarnation:
            return 0
        for table, where in slots().items():
            self.lacks[table] = versions.unknown(node, table, where, self.since[table])
        return sum(len(each) - int(each.sum()) for each in self.lacks.values())

    def message(self, rows: PulledRows) -> Message:
        """Of rows that do not travel, a bit for each id says which."""
        bits = {f"{table}.sent": np.packbits(lacks) for table, lacks in self.lacks.items()}
        if self.lacks:
            found = {table: values[self.lacks[table]] for table, values in rows.rows.items()}
            rows = replace(rows, rows=found)
        answer = to_message(rows, status="ok", versions=self.clock)
        return Message(answer.header, {**answer.arrays, **bits})


class StreamCache:
    """See KeptByNode: each pull says what the node keeps, so that nothing is remembered here."""

    def asked(self, message: Message, ids: Mapping[Table, IntArray]) -> CachedRows | None:
        return CachedRows.of(message, ids)

    def learnt(self, push: Push) -> None:
        """The node says it with its next pull."""


@CACHES.register("rows", NoTraits())
class RowsAsTheyWere:
    """Both sides of pulls that leave out rows which nobody else has changed."""

    compression = ""
    of_node = NodeCache

    @staticmethod
    def of_stream(seed: int) -> StreamCache:
        del seed
        return StreamCache()
