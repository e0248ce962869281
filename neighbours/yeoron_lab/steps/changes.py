"""What a node has of the server's rows, kept alike by both, so that a pull brings changes alone.

A pull names rows; the answer has, for each, how far the server's row is from what the node has of
it, in steps (`threshold.py`). What is below a step stays in that difference and comes
with a later pull: error feedback on the server's side (Tang et al. 2019, "DoubleSqueeze", section
3), with the rows themselves in place of a sum of errors. What a node pushes, both add.

Both sides do the same steps in the same order, on one stream. A new stream begins with what rows
are before anything is learnt, which the seed says, so that a new word costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from embedding.exchange.changes import CHANGES
from embedding.exchange.codec import record_of, to_message, with_record
from embedding.exchange.compression.base import unpack, unpacked
from embedding.exchange.compression.halves import widen
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.ownrows import check_rows_came
from embedding.exchange.payload import PackedDelta, RowDelta
from embedding.exchange.protocol import PulledRows, Push
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.fields import Entries, RealNumber, WholeNumber
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from embedding.kernel.registry import NoTraits
from embedding.models.starting import first_vectors
from yeoron_lab.keeping.residuals import Residuals
from yeoron_lab.steps.threshold import Threshold

MOST_MEMORY = 256 * 1024 * 1024
"""Bytes that what one node has of the rows may take at a server."""


@dataclass(frozen=True)
class Wanted:
    """What a pull says that is to bring changes.

    pulls     pulls of changes that the node has had on this stream
    memory    bytes that it keeps rows in
    least, relative, directions  how the changes are written (`Threshold`)
    """

    pulls: int
    memory: Annotated[int, WholeNumber(1)]
    least: Annotated[float, RealNumber(0, above=0)]
    relative: Annotated[float, RealNumber(0)]
    directions: int


@dataclass(frozen=True)
class ChangesOfRows:
    """The answer to it.

    memory  bytes that the server keeps what the node has in
    start   seed of the first vectors
    """

    packed: Annotated[tuple[PackedDelta, ...], Entries(len(Table))]
    memory: Annotated[int, WholeNumber(1)]
    start: int


class Mirror:
    """Rows by table and id, those used last in at most `memory` bytes. Not thread-safe.

    pulls  how many brought changes so far
    seed   of the first vectors
    """

    def __init__(self, memory: int, seed: int = 0) -> None:
        self.memory = memory
        self.seed = seed
        self.pulls = 0
        self._held: dict[Table, Residuals] = {}

    @property
    def nbytes(self) -> int:
        return sum(cached.nbytes for cached in list(self._held.values()))

    def differences(
        self, asked: Mapping[Table, IntArray], rows: Mapping[Table, FloatArray], wanted: Wanted
    ) -> list[PackedDelta]:
        """The server's side: what is sent of `rows`, float32 [n, dim] of increasing ids [n].

        The ids of each answer are the places of rows in the request.
        """
        found = []
        threshold = Threshold(wanted.least, wanted.relative, wanted.directions)
        for table, ids in asked.items():
            had, known = self._rows(table, ids, rows[table].shape[1])
            left = rows[table] - had
            places = np.arange(len(ids), dtype=np.int64)
            found.append(threshold.pack(table, places, left, first=~known))
            self._put(table, ids, rows[table] - left)
        self.pulls += 1
        return found

    def changed(
        self, asked: Mapping[Table, IntArray], packed: Sequence[PackedDelta], most_bytes: int
    ) -> dict[Table, FloatArray]:
        """The node's side: the rows that it has now, float32 [n, dim]; RefusedError: malformed."""
        deltas = {}
        for each in packed:
            deltas[each.table] = unpack(each, dim=each.dim, most_bytes=most_bytes)
        if deltas.keys() != asked.keys():
            raise RefusedError("pull: the answer has other tables than were asked for.")
        rows = {}
        for table, ids in asked.items():
            places, values = deltas[table].ids, widen(deltas[table].values)
            if len(places) and int(places[-1]) >= len(ids):
                raise RefusedError("pull: the answer has more rows than were asked for.")
            rows[table], _ = self._rows(table, ids, values.shape[1])
            rows[table][places] += values
        for table, ids in asked.items():
            self._put(table, ids, rows[table])
        self.pulls += 1
        return rows

    def learnt(self, deltas: Sequence[RowDelta]) -> None:
        for delta in deltas:
            cached = self._held.get(delta.table)
            if cached is not None and len(delta.ids):
                cached.move(delta.ids, widen(delta.values))

    def _rows(self, table: Table, ids: IntArray, dim: int) -> tuple[FloatArray, Any]:
        """float32 [n, dim], first values for rows that are not held; bool [n], which are."""
        cached = self._held.get(table)
        if cached is None:
            # Each row also takes its id, place, last use and, while free, its place again.
            limit = max(1, self.memory // (len(Table) * (4 * dim + 32)))
            cached = self._held[table] = Residuals(dim, limit)
        elif cached.dim != dim:
            raise RefusedError(f"pull: rows of {dim} columns; those before had {cached.dim}.")
        rows, known = np.zeros((len(ids), dim), dtype=np.float32), cached.used(ids) >= 0
        cached.add_to(ids, rows)
        if table is Table.IN and not known.all():
            rows[~known] = first_vectors(ids[~known], dim, self.seed)
        return rows, known

    def _put(self, table: Table, ids: IntArray, rows: FloatArray) -> None:
        cached = self._held[table]
        chosen = ids[: cached.limit]
        cached.make_room(chosen)
        cached.put(chosen, rows[: cached.limit], clock=self.pulls)


class NodeMirror:
    """What this node has; see KeptRows."""

    asked = spared = 0

    def __init__(self, config: ExchangeConfig) -> None:
        self._config = config
        self.mirror = Mirror(config.cache_bytes)
        self._order: dict[Table, IntArray] = {}

    @property
    def nbytes(self) -> int:
        return self.mirror.nbytes

    def greeted(self, epoch: int, sequence: int, *, first: bool) -> None:
        """Pulls of changes begin again."""
        del epoch, sequence, first
        self.forget()

    def refused(self) -> None:
        """What a shard believes this node has may be wrong: the next pull brings all."""
        self.forget()

    def alive(self, ids: IntArray) -> None:
        """What is not asked for any more goes by itself."""

    def forget(self) -> None:
        self.mirror = Mirror(self._config.cache_bytes)

    def asking(self, message: Message, asked: Mapping[Table, IntArray]) -> Message:
        """Ids in order, in which they take few bytes, and the answer can name rows by place."""
        if not any(map(len, asked.values())):
            self._order = {}
            return message
        self._order = {table: np.argsort(ids, kind="stable") for table, ids in asked.items()}
        parts = {f"ids.{table}.i8": asked[table][order] for table, order in self._order.items()}
        config = self._config
        wanted = Wanted(
            self.mirror.pulls,
            config.cache_bytes,
            config.threshold,
            config.relative_threshold,
            config.directions,
        )
        message = Message(message.header, {**message.arrays, **parts})
        return with_record(message, "changes", wanted)

    def came(
        self, answer: Message, pulled: PulledRows, asked: Mapping[Table, IntArray]
    ) -> dict[Table, FloatArray | HalfArray]:
        """See KeptRows."""
        changed = record_of(ChangesOfRows, answer, "changes")
        if changed is None or not self._order:
            self.forget()  # the server has none of this pull
            found = dict(pulled.rows)
        else:
            if not self.mirror.pulls:
                self.mirror = Mirror(changed.memory, changed.start)
            inorder = {table: asked[table][order] for table, order in self._order.items()}
            most = self._config.max_message_bytes
            found = {**self.mirror.changed(inorder, changed.packed, most)}
        check_rows_came(asked, found)
        for table, order in self._order.items():
            rows = np.empty_like(found[table])
            rows[order] = found[table]
            found[table] = rows
        return found

    def learnt(self, push: Push) -> None:
        self.mirror.learnt(unpacked(push))


class StreamMirror:
    """What the node at the other end has; the stream's thread alone uses it.

    seed  of the tables' first vectors
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed % 2**32
        self._mirror: Mirror | None = None
        self._pushed = 0

    def asked(self, message: Message, ids: Mapping[Table, IntArray]) -> ChangesWanted | None:
        """See KeptByNode."""
        wanted = record_of(Wanted, message, "changes")
        return None if wanted is None else ChangesWanted(self, wanted, ids)

    def changes(
        self,
        wanted: Wanted,
        asked: Mapping[Table, IntArray],
        rows: Mapping[Table, FloatArray | HalfArray],
        sequence: int,
    ) -> ChangesOfRows | None:
        """The answer to a pull; None: whole rows are to be sent, from which the node begins again.

        That is so when the node has had other pulls than the server knows of, and when a push of
        it is in what it has but not yet in these rows, where `sequence` is the last one.
        """
        if not wanted.pulls:
            self._mirror, self._pushed = Mirror(min(wanted.memory, MOST_MEMORY), self._seed), 0
        mirror = self._mirror
        if mirror is None or mirror.pulls != wanted.pulls or sequence < self._pushed:
            self._mirror = None
            return None
        for ids in asked.values():
            if bool((np.diff(ids) <= 0).any()):
                raise RefusedError("pull: the ids of a pull of changes must increase.")
        floats = {table: widen(each) for table, each in rows.items()}
        packed = mirror.differences(asked, floats, wanted)
        return ChangesOfRows(tuple(packed), mirror.memory, self._seed)

    def learnt(self, push: Push) -> None:
        if self._mirror is not None and push.keeps and push.sequence > self._pushed:
            self._mirror.learnt(unpacked(push))
            self._pushed = push.sequence


@dataclass(frozen=True)
class ChangesWanted:
    """See Answering: the answer to a pull that is to bring changes of these ids."""

    mirror: StreamMirror
    wanted: Wanted
    ids: Mapping[Table, IntArray]
    whole = False

    def read(self, *about: object) -> int:
        """Every row that is asked for travels, as what changed of it."""
        del about
        return 0

    def message(self, rows: PulledRows) -> Message | None:
        found = self.mirror.changes(self.wanted, self.ids, rows.rows, rows.sequence)
        if found is None:
            return None
        return with_record(to_message(replace(rows, rows={}), status="ok"), "changes", found)


@CHANGES.register("steps", NoTraits())
class ChangesInSteps:
    """Both sides of pulls that bring changes in steps."""

    compression = Threshold.kind
    of_node = NodeMirror
    of_stream = StreamMirror
