"""What a node has of the server's rows, kept alike by both, so that a pull brings changes alone.

A pull names rows; the answer has, for each, how far the server's row is from what the node has of
it, in steps (`compression/threshold.py`). What is below a step stays in that difference and comes
with a later pull: error feedback on the server's side (Tang et al. 2019, "DoubleSqueeze", section
3), with the rows themselves in place of a sum of errors. What a node pushes, both add.

Both sides do the same steps in the same order, on one stream. A new stream begins with what rows
are before anything is learnt, which the seed says, so that a new word costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedding.exchange.compression.base import unpack
from embedding.exchange.compression.halves import widen
from embedding.exchange.compression.residuals import Residuals
from embedding.exchange.compression.threshold import Threshold
from embedding.exchange.headers import positive, whole
from embedding.exchange.payload import PackedDelta, RowDelta
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.models.starting import first_vectors


@dataclass(frozen=True)
class Wanted:
    """What a pull says that is to bring changes.

    pulls     pulls of changes that the node has had on this stream
    memory    bytes that it keeps rows in
    least, relative, directions  how the changes are written (`Threshold`)
    """

    pulls: int
    memory: int
    least: float
    relative: float
    directions: int

    def header(self) -> dict[str, Any]:
        return {"changes": vars(self)}

    @classmethod
    def read(cls, header: Mapping[str, Any]) -> Wanted | None:
        """From the header of a pull; None when it asks for rows. RefusedError: malformed."""
        facts = header.get("changes")
        if facts is None:
            return None
        if not isinstance(facts, dict):
            raise RefusedError("pull: `changes` must be an object.")
        relative = facts.get("relative")
        return cls(
            whole(facts, "pulls"),
            whole(facts, "memory", least=1),
            positive(facts.get("least"), "least"),
            0.0 if relative == 0 else positive(relative, "relative"),
            whole(facts, "directions"),
        )


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
        """A push of the node was taken: what is held moves by it."""
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
