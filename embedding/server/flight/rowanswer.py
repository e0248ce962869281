"""The answer to a pull, of a server and of a shard alike.

It has all rows, those that the node does not keep, or what changed of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedding.exchange.changes import Answering, StreamChanges
from embedding.exchange.protocol import NAMES
from embedding.exchange.wire import Array, Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from embedding.server.figures.meters import Meters
from embedding.server.rows.versions import RowVersions
from embedding.server.validation import check_rows


@dataclass(frozen=True)
class CachedRows:
    """What a pull says of the rows that its node keeps.

    epoch     the incarnation of the server that they are of
    sequence  the last push of the node that is in them
    since     by table int64 [n]: the server's clock of each row, -1 where none is kept
    """

    epoch: int
    sequence: int
    since: Mapping[Table, IntArray]

    @classmethod
    def read(cls, message: Message, asked: Mapping[Table, IntArray]) -> CachedRows | None:
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
            ages = message.array(f"{NAMES[name]}.kept", "u1", 1)
            if len(ages) != len(ids) or int(ages.max(initial=0)) > len(clocks):
                raise RefusedError("pull: what is kept does not go with the ids or the clocks.")
            since[name] = table[ages]
        epoch, sequence = facts
        return cls(epoch, sequence, since)


SlotsOf = Callable[[], Mapping[Table, IntArray]]
"""By table, the slots of the rows that are asked for."""


@dataclass(frozen=True)
class SparedRows:
    """What the node has already of the rows that it asks for.

    versions  the clock of the rows that are read; None: the node keeps none
    lacks     by table bool [n]: which rows it has not got as they are; empty: all are sent
    """

    versions: int | None = None
    lacks: Mapping[Table, Array] | None = None


@dataclass(frozen=True)
class RowAnswer:
    """One pull and what its node has of the rows.

    ids      by table int64 [n], as they were asked for
    kept     the rows that the node keeps; None: it says of none
    changed  what answers with changes since its last pull; None: rows are sent
    half     rows are sent as float16
    """

    ids: Mapping[Table, IntArray]
    half: bool
    kept: CachedRows | None = None
    changed: Answering | None = None

    @classmethod
    def to(
        cls,
        message: Message,
        ids: Mapping[Table, IntArray],
        dim: int,
        most_bytes: int,
        changes: StreamChanges | None,
        *,
        local: bool = True,
    ) -> RowAnswer:
        """To a pull; RefusedError for rows that do not fit into one message.

        changes  what the stream does where changes are asked for; None: rows are sent
        local    rows are here; else shards answer for what the node has
        """
        half = message.header.get("rows") == "float16"
        check_rows(sum(map(len, ids.values())), dim, most_bytes, half=half)
        if not local:
            return cls(ids, half)
        changed = None if changes is None else changes.asked(message.header, ids)
        return cls(ids, half and changed is None, CachedRows.read(message, ids), changed)

    def spared(
        self,
        held: RowVersions,
        meters: Meters,
        slots: SlotsOf,
        node: str,
        incarnation: tuple[int, int],
    ) -> SparedRows:
        """Which rows the node lacks (under the lock in which they are read).

        incarnation  of the server, and the last push of the node that is in the rows: a node that
                     keeps rows of another incarnation, or lacks a push of its own, gets all of them
        """
        if self.kept is None:
            return SparedRows()
        versions = held.start()
        if (self.kept.epoch, self.kept.sequence) != incarnation:
            return SparedRows(versions)
        lacks: dict[Table, Array] = {}
        for table, where in slots().items():
            lacks[table] = held.unknown(node, table, where, self.kept.since[table])
            meters.rows_spared += len(where) - int(lacks[table].sum())
        return SparedRows(versions, lacks)

    def message(
        self,
        header: Mapping[str, Any],
        rows: Mapping[Table, FloatArray | HalfArray],
        sequence: int,
        spared: SparedRows,
    ) -> Message:
        """The answer; of rows that are spared, a bit for each id says which.

        rows      by table [n, dim]
        sequence  the last push of the node that is in them
        """
        header = {"status": "ok", **header, "sequence": sequence, "versions": spared.versions}
        changes = None if self.changed is None else self.changed(rows, sequence)
        if changes is not None:
            return Message({**header, **changes[0]}, changes[1])
        arrays: dict[str, Array] = {}
        for table, values in rows.items():
            arrays[NAMES[table]] = values
            if spared.lacks:
                arrays[NAMES[table]] = values[spared.lacks[table]]
                arrays[f"{NAMES[table]}.sent"] = np.packbits(spared.lacks[table])
        return Message(header, arrays)
