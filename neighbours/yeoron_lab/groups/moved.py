"""Rows of a shard that is part of a replica: how far they have moved, and what the leader has."""

from __future__ import annotations

import numpy as np

from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.shards.heldrows import HeldRows
from yeoron_lab.groups.drift import Drift, Moved


class MovedRows:
    """The shard's lock guards it."""

    def __init__(self, held: HeldRows) -> None:
        self._held = held
        self._drift = Drift(held.tables)
        self._aside: tuple[int, dict[Table, Moved]] = (-1, {})

    def __len__(self) -> int:
        return len(self._drift)

    def set_aside(self, position: int) -> None:
        """Keep what has moved until this position of the log, until the group has fetched it."""
        taken, ids = self._drift.take(), self._held.ids
        self._aside = (
            position,
            {table: Moved(ids(table, m.slots), m.bases, m.now) for table, m in taken.items()},
        )

    def fetched(self, table: Table, position: int, first: int, most: int) -> Moved:
        """Some of the rows that had moved at a position, by id."""
        number, found = self._aside
        if number != position:
            raise RefusedError(
                f"moves: shard {self._held.spec.index} has those of entry {number}, not {position}."
            )
        held = found.get(table)
        if held is None:
            none = np.empty((0, self._held.tables.dim), dtype=np.float32)
            return Moved(np.empty(0, dtype=np.int64), none, none)
        part = slice(first, first + most)
        return Moved(held.slots[part], held.bases[part], held.now[part])

    def adopt(self, table: Table, ids: IntArray, rows: FloatArray, *, give: bool) -> int:
        """The leader has these rows; how many of their words have a row here.

        give  words without a row here get one
        """
        held = self._held
        if rows.shape != (len(ids), held.tables.dim):
            raise RefusedError(f"adopt: rows of shape {rows.shape} for {len(ids)} ids.")
        if table is Table.SUB:
            self._drift.adopt(table, held.gram_places(ids, "adopt"), rows)
            return len(ids)
        held.own(ids, "adopt")
        if give:
            held.give(ids[held.map.slots(ids) < 0])
        slots = held.map.slots(ids)
        alive = slots >= 0
        self._drift.adopt(table, slots[alive], rows[alive])
        return int(alive.sum())
