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

from embedding.exchange.codec import record_of, to_message, with_record
from embedding.exchange.compression.base import unpack, unpacked
from embedding.exchange.compression.halves import widen
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import PackedDelta
from embedding.exchange.protocol import PulledRows, Push
from embedding.exchange.rows import CHANGES, Asked, KeptByNode, KeptRows
from embedding.exchange.wire import Message
from embedding.kernel.config import part_of
from embedding.kernel.errors import RefusedError
from embedding.kernel.fields import Entries, RealNumber, WholeNumber
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from embedding.kernel.registry import NoTraits
from embedding.models.starting import first_vectors
from yeoron_lab.keeping.boundedrows import BoundedRows
from yeoron_lab.settings import KeepingSettings, StepSettings
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

    seed   of the first vectors
    pulls  how many brought changes so far
    """

    def __init__(self, memory: int, seed: int = 0) -> None:
        self.rows = BoundedRows(memory)
        self.seed = seed
        self.pulls = 0

    def differences(
        self, asked: Asked, rows: Mapping[Table, FloatArray], wanted: Wanted
    ) -> list[PackedDelta]:
        """The server's side: what is sent of `rows`, float32 [n, dim] of increasing ids [n].

        The ids of each answer are the places of rows in the request.
        """
        packed = []
        threshold = Threshold(wanted.least, wanted.relative, wanted.directions)
        for table, ids in asked.items():
            known, known_ids = self._known(table, ids, rows[table].shape[1])
            left = rows[table] - known
            offsets = np.arange(len(ids), dtype=np.int64)
            packed.append(threshold.pack(table, offsets, left, first=~known_ids))
            self._put(table, ids, rows[table] - left)
        self.pulls += 1
        return packed

    def changed(
        self, asked: Asked, packed: Sequence[PackedDelta], most_bytes: int
    ) -> dict[Table, FloatArray]:
        """The node's side: the rows that it has now, float32 [n, dim]; RefusedError: malformed."""
        deltas = {part.table: unpack(part, dim=part.dim, most_bytes=most_bytes) for part in packed}
        if deltas.keys() != asked.keys():
            raise RefusedError("pull: the answer has other tables than were asked for.")
        rows = {}
        for table, ids in asked.items():
            offsets, values = deltas[table].ids, widen(deltas[table].values)
            if len(offsets) and int(offsets[-1]) >= len(ids):
                raise RefusedError("pull: the answer has more rows than were asked for.")
            rows[table], _ = self._known(table, ids, values.shape[1])
            rows[table][offsets] += values
        for table, ids in asked.items():
            self._put(table, ids, rows[table])
        self.pulls += 1
        return rows

    def _known(self, table: Table, ids: IntArray, dim: int) -> tuple[FloatArray, Any]:
        """float32 [n, dim], first values for rows that are not here; bool [n], which are."""
        rows, known = np.zeros((len(ids), dim), dtype=np.float32), self.rows.used(table, ids) >= 0
        self.rows.add_to(table, ids, rows)
        if table is Table.IN and not known.all():
            rows[~known] = first_vectors(ids[~known], dim, self.seed)
        return rows, known

    def _put(self, table: Table, ids: IntArray, rows: FloatArray) -> None:
        dim = rows.shape[1]
        chosen = ids[: self.rows.limit(dim)]
        self.rows.make_room(table, chosen, dim)
        self.rows.put(table, chosen, rows[: len(chosen)], self.pulls)


class StreamMirror(KeptByNode):
    """What the node at the other end has.

    seed  of the tables' first vectors
    """

    header = "changes"

    def __init__(self, seed: int) -> None:
        self._seed = seed % 2**32
        self._mirror: Mirror | None = None
        self._pushed = 0

    def asked(self, message: Message, ids: Asked) -> ChangesWanted:
        """See KeptByNode."""
        wanted = record_of(Wanted, message, self.header)
        if wanted is None:
            raise RefusedError("pull: `changes` says what a pull of changes wants.")
        return ChangesWanted(self, wanted, ids)

    def changes(
        self,
        wanted: Wanted,
        asked: Asked,
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
        floats = {table: widen(values) for table, values in rows.items()}
        packed = mirror.differences(asked, floats, wanted)
        return ChangesOfRows(tuple(packed), mirror.rows.memory, self._seed)

    def learnt(self, push: Push) -> None:
        if self._mirror is not None and push.keeps and push.sequence > self._pushed:
            self._mirror.rows.move(unpacked(push))
            self._pushed = push.sequence


@dataclass(frozen=True)
class ChangesWanted:
    """See Answering: the answer to a pull that is to bring changes of these ids."""

    mirror: StreamMirror
    wanted: Wanted
    ids: Asked
    whole = False

    def read(self, *about: object) -> int:
        """Every row that is asked for travels, as what changed of it."""
        del about
        return 0

    def message(self, rows: PulledRows) -> Message | None:
        changes = self.mirror.changes(self.wanted, self.ids, rows.rows, rows.sequence)
        if changes is None:
            return None
        return with_record(to_message(replace(rows, rows={}), status="ok"), "changes", changes)


@CHANGES.register("steps", NoTraits())
class NodeMirror(KeptRows):
    """What this node has."""

    compression, kind, keeps = Threshold.kind, "changes", True
    of_stream = StreamMirror

    @staticmethod
    def wanted(config: ExchangeConfig) -> bool:
        return part_of(config, KeepingSettings).pulls == "changes"

    def __init__(self, config: ExchangeConfig) -> None:
        self._config = config
        self._order: dict[Table, IntArray] = {}
        self.forget()

    @property
    def nbytes(self) -> int:
        return self.mirror.rows.nbytes

    def greeted(self, epoch: int, sequence: int, *, first: bool) -> None:
        """Pulls of changes begin again."""
        del epoch, sequence, first
        self.forget()

    def refused(self) -> None:
        """What a shard believes this node has may be wrong: the next pull brings all."""
        self.forget()

    def forget(self) -> None:
        self.mirror = Mirror(part_of(self._config, KeepingSettings).cache_bytes)

    def asking(self, message: Message, asked: Asked) -> Message:
        """Ids in order, in which they take few bytes, and the answer can name rows by place."""
        if not any(map(len, asked.values())):
            self._order = {}
            return message
        self._order = {table: np.argsort(ids, kind="stable") for table, ids in asked.items()}
        parts = {f"ids.{table}.i8": asked[table][order] for table, order in self._order.items()}
        config = self._config
        steps = part_of(config, StepSettings)
        wanted = Wanted(
            self.mirror.pulls,
            part_of(config, KeepingSettings).cache_bytes,
            steps.threshold,
            steps.relative_threshold,
            steps.directions,
        )
        message = Message(message.header, {**message.arrays, **parts})
        return with_record(message, "changes", wanted)

    def came(self, answer: Message, pulled: PulledRows, asked: Asked) -> dict[Table, Any]:
        """See KeptRows: what the node has, with the changes in the answer."""
        changes = record_of(ChangesOfRows, answer, "changes")
        if changes is None or not self._order:
            self.forget()  # the server has none of this pull
            rows = super().came(answer, pulled, asked)
        else:
            if not self.mirror.pulls:
                self.mirror = Mirror(changes.memory, changes.start)
            ordered = {table: asked[table][order] for table, order in self._order.items()}
            most = self._config.max_message_bytes
            rows = {**self.mirror.changed(ordered, changes.packed, most)}
        for table, order in self._order.items():
            unordered = np.empty_like(rows[table])
            unordered[order] = rows[table]
            rows[table] = unordered
        return rows

    def learnt(self, push: Push) -> None:
        self.mirror.rows.move(unpacked(push))
