"""Rows that a node keeps, so that the server sends only those that others have changed since.

Each pull names the rows and, for those that are kept, of which pull they are; the server answers
which of them somebody else has changed, and sends these and the ones that are not kept
(`versions.py`). What the node pushes itself it adds to the rows that it keeps, as the
server does; so a kept row is the server's to within the rounding of the one pull that brought it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from embedding.exchange.codec import to_message
from embedding.exchange.compression.base import unpacked
from embedding.exchange.compression.halves import widen
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import ByteArray
from embedding.exchange.protocol import PulledRows, Push
from embedding.exchange.rows import CACHES, Asked, KeptByNode, KeptRows
from embedding.exchange.wire import Array, Message
from embedding.kernel.config import part_of
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from embedding.kernel.registry import NoTraits
from embedding.server.rows.tables import Tables
from yeoron_lab.keeping.boundedrows import BoundedRows
from yeoron_lab.keeping.versions import versions_of
from yeoron_lab.settings import KeepingSettings

MOST_PULLS = 200
"""Rows that were not pulled again in so many pulls are asked for again."""


@dataclass
class CachedRows:
    """What a pull says of the rows that its node keeps; see Answering.

    epoch     the incarnation of the server that they are of
    sequence  the last push of the node that is in them
    asked     ids by table
    since     by table int64 [n]: the server's clock of each row, -1 where none is kept
    clock     of the rows that are read now
    lacks     by table bool [n]: which rows the node has not got as they are; empty: all are sent
    """

    epoch: int
    sequence: int
    asked: Asked
    since: Mapping[Table, IntArray]
    clock: int = 0
    lacks: dict[Table, Array] = field(default_factory=dict)
    whole = True

    @classmethod
    def of(cls, message: Message, asked: Asked) -> CachedRows:
        """From a pull; RefusedError when it is malformed."""
        facts = message.header["kept"]
        if not (isinstance(facts, list) and [type(n) for n in facts] == [int, int]):
            raise RefusedError("pull: `kept` is [epoch, sequence].")
        clocks = message.array("clocks", "i8", 1)
        by_age = np.concatenate([np.array([-1], dtype=np.int64), clocks])
        since = {}
        for table, ids in asked.items():
            ages = message.array(f"{table}.kept", "u1", 1)
            if len(ages) != len(ids) or int(ages.max(initial=0)) > len(clocks):
                raise RefusedError("pull: what is kept does not go with the ids or the clocks.")
            since[table] = by_age[ages]
        epoch, sequence = facts
        return cls(epoch, sequence, asked, since)

    def read(
        self,
        tables: Tables,
        slots: Callable[[Table, IntArray, str], IntArray],
        node: str,
        incarnation: tuple[int, int],
    ) -> int:
        """See Answering: a node that keeps rows of another incarnation, or lacks a push of its own,
        gets all of them."""
        versions = versions_of(tables)
        self.clock = versions.clock
        if (self.epoch, self.sequence) != incarnation:
            return 0
        for table, ids in self.asked.items():
            where = slots(table, ids, "pull")
            self.lacks[table] = versions.unknown(node, table, where, self.since[table])
        return sum(len(lacks) - int(lacks.sum()) for lacks in self.lacks.values())

    def message(self, rows: PulledRows) -> Message:
        """Of rows that do not travel, a bit for each id says which."""
        bits = {f"{table}.sent": np.packbits(lacks) for table, lacks in self.lacks.items()}
        if self.lacks:
            lacking = {table: values[self.lacks[table]] for table, values in rows.rows.items()}
            rows = replace(rows, rows=lacking)
        answer = to_message(rows, status="ok", versions=self.clock)
        return Message(answer.header, {**answer.arrays, **bits})


class StreamCache(KeptByNode):
    """Each pull says what the node keeps, so that nothing is remembered here."""

    header = "kept"

    def asked(self, message: Message, ids: Asked) -> CachedRows:
        return CachedRows.of(message, ids)


@CACHES.register("rows", NoTraits())
class RowCache(KeptRows):
    """See KeptRows: what others have changed since comes whole.

    epoch     the incarnation of the server that the rows are of
    sequence  the last push that was added to them
    """

    compression, keeps = "", True

    @staticmethod
    def wanted(config: ExchangeConfig) -> bool:
        settings = part_of(config, KeepingSettings)
        return settings.pulls == "rows" and settings.cache_bytes > 0

    def __init__(self, config: ExchangeConfig) -> None:
        self.epoch = self.sequence = self.asked = self.spared = 0
        self._rows = BoundedRows(part_of(config, KeepingSettings).cache_bytes)
        self._clocks: list[int] = []
        self._asking = False

    @staticmethod
    def of_stream(seed: int) -> StreamCache:
        del seed
        return StreamCache()

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes

    def greeted(self, epoch: int, sequence: int, *, first: bool) -> None:
        """Rows of an earlier incarnation are of no use."""
        if first:
            self.sequence = sequence
        if epoch != self.epoch:
            self._forget()
            self.epoch = epoch

    def alive(self, ids: IntArray) -> None:
        self._rows.keep(ids)

    def asking(self, message: Message, asked: Asked) -> Message:
        """For each row the age of the pull that it is of, 0 where it is not kept."""
        self._asking = any(map(len, asked.values()))
        if not self._asking:
            return message
        parts: dict[str, Array] = {"clocks": np.array(self._clocks[::-1], dtype=np.int64)}
        for table, ids in asked.items():
            used = self._rows.used(table, ids)
            # Rows are marked with the pull that they were last of: the last one is of age 1.
            ages = self._rows.clock - used + 1
            known = (used >= 0) & (ages >= 1) & (ages <= len(self._clocks))
            parts[f"{table}.kept"] = np.where(known, ages, 0).astype(np.uint8)
        header = {**message.header, "kept": [self.epoch, self.sequence]}
        return Message(header, {**message.arrays, **parts})

    def came(self, answer: Message, pulled: PulledRows, asked: Asked) -> dict[Table, Any]:
        """Every row that was asked for, float32; keeps them."""
        if not self._asking:
            return super().came(answer, pulled, asked)
        clock, sent = answer.header.get("versions"), None
        if any(name.endswith(".sent") for name in answer.arrays):
            sent = {table: answer.array(f"{table}.sent", "u1", 1) for table in asked}
        rows = {t: self._merged(t, ids, pulled.rows[t], sent) for t, ids in asked.items()}
        if pulled.sequence != self.sequence or type(clock) is not int:
            self._forget()
            return rows
        self._clocks = [*self._clocks, clock][-MOST_PULLS:]
        self._rows.clock += 1
        for table, ids in asked.items():
            dim = rows[table].shape[1]
            order = np.argsort(ids, kind="stable")[: self._rows.limit(dim)]
            self._rows.make_room(table, ids[order], dim)
            self._rows.put(table, ids[order], rows[table][order], self._rows.clock)
        return rows

    def learnt(self, push: Push) -> None:
        """The kept rows move as the server's own."""
        self._rows.move(unpacked(push))
        self.sequence = push.sequence

    def _forget(self) -> None:
        self._rows.clear()
        self._clocks.clear()

    def _merged(
        self,
        table: Table,
        ids: IntArray,
        sent: FloatArray | HalfArray,
        bits: Mapping[Table, ByteArray] | None,
    ) -> FloatArray:
        """Rows that were sent, and of the others those that are kept."""
        came = np.ones(len(ids), dtype=np.bool_)
        if bits is not None:
            if bits[table].nbytes != (len(ids) + 7) // 8:
                raise RefusedError("pull: the answer does not say of each row whether it came.")
            came = np.unpackbits(bits[table], count=len(ids)).astype(np.bool_)
        if int(came.sum()) != len(sent):
            raise RefusedError("pull: the answer has another number of rows than it says.")
        self.asked += len(ids)
        self.spared += len(ids) - len(sent)
        if came.all():
            return widen(sent)
        rows = np.zeros((len(ids), sent.shape[1]), dtype=np.float32)
        rows[came] = sent
        unsent = np.zeros((int((~came).sum()), sent.shape[1]), dtype=np.float32)
        self._rows.add_to(table, ids[~came], unsent)
        rows[~came] = unsent
        return rows
