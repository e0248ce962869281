"""Which slot an id has, which id a slot, and what is known of each by column: memory goes with the
slots, not with ids ever given.

A hash table with open addressing, looked up for many ids at once. An id is first looked for at
id mod size: ids are given in order, so most are found there at once, side by side in memory. Then
come places of a multiplicative hash in triangular steps (Knuth, TAOCP 3, 6.4), so that old ids
that are left over from earlier rounds do not pile up against the run of new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embedding.kernel.positions import positions
from embedding.kernel.records import CodeArray, IntArray
from embedding.server.rows.devices import find_slots

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LEAST = 64


class RowMap:
    """Ids that are alive ↔ slots. Memory: 8 to 10 bytes a slot and 12 to 32 bytes an id, besides
    the columns. Not thread-safe.

    An entry whose slot has got another id is left where it is: it no longer matches. Such leftovers
    count as used places and go when the table is built again.

    columns  by name, the dtype of an entry, which is 0 at first: map["name"] is [capacity + 1, …],
             until the next ids are put. The last entry is that of slot -1
    limit    ids that there are at most, as far as `oldest` is asked; None: as many as come
    end      slots ever used: what is kept beside by slot has to hold so many
    """

    def __init__(
        self, columns: Mapping[str, Any] | None = None, *, limit: int | None = None
    ) -> None:
        self.limit = limit
        self.end = 0
        self._ids: IntArray = np.full(17, -1, dtype=np.int64)
        self._kinds = columns or {}
        self._columns: dict[str, Any] = {
            name: np.zeros(17, dtype=kind) for name, kind in self._kinds.items()
        }
        self._free: list[int] = []
        self._used: IntArray | None = None
        self._build(0)

    def __len__(self) -> int:
        return self.end - len(self._free)

    def __getitem__(self, column: str) -> Any:
        return self._columns[column]

    @property
    def nbytes(self) -> int:
        """Bytes of the table, the ids, their order and the columns."""
        order = 0 if self._used is None else self._used.nbytes
        columns = sum(column.nbytes for column in self._columns.values())
        return int(self._ids.nbytes + self._table.nbytes + order + columns)

    @property
    def capacity(self) -> int:
        """Slots that there is room for."""
        return len(self._ids) - 1

    def ids(self, slots: IntArray) -> IntArray:
        """Ids int64 [n] of slots; -1 for a free one."""
        ids: IntArray = self._ids[slots]
        return ids

    def slots(self, ids: IntArray) -> IntArray:
        """Slots int64 [n] of ids (none negative); -1 for an id that is not alive."""
        slots: IntArray = np.empty(len(ids), dtype=np.int64)
        find_slots(ids, self._table, self._ids, self._shift, _GOLDEN, slots)
        return slots

    def used(self) -> IntArray:
        """Slots int64 that hold an id, in order of the ids; not to be written to."""
        if self._used is None:
            slots = np.flatnonzero(self._ids >= 0)
            self._used = slots[np.argsort(self._ids[slots], kind="stable")].astype(np.int64)
        return self._used

    def fresh(self, n: int) -> IntArray:
        """Slots int64 [n] for so many new ids, which `put` takes; those freed last come first."""
        reused = self._free[: -n - 1 : -1] if n else []
        more = np.arange(self.end, self.end + n - len(reused), dtype=np.int64)
        return np.concatenate([np.array(reused, dtype=np.int64), more])

    def put(self, slots: IntArray, ids: IntArray) -> None:
        """Give slots that `fresh` named their ids (distinct, not alive)."""
        self._reserve(int(slots.max(initial=-1)) + 1)
        reused = int((slots < self.end).sum())
        del self._free[len(self._free) - reused :]
        self.end += len(slots) - reused
        self._used = None
        self._ids[slots] = ids
        if 2 * (self._taken + len(slots)) > len(self._table):
            self._build(len(self))
        else:
            self._insert(slots)

    def give(self, ids: IntArray) -> IntArray:
        """Slots int64 [n] of ids (distinct); those that have none get one."""
        slots = self.slots(ids)
        new = slots < 0
        if new.any():
            slots[new] = self.fresh(int(new.sum()))
            self.put(slots[new], ids[new])
        return slots

    def free(self, slots: IntArray) -> None:
        """Take the ids of slots (distinct, used) away."""
        if len(slots):
            self._used = None
            self._ids[slots] = -1
            self._free.extend(slots.tolist())

    def keep(self, ids: IntArray) -> None:
        """Free the slots of all ids but these (increasing)."""
        used = np.flatnonzero(self._ids >= 0)
        self.free(used[positions(ids, self._ids[used]) < 0])

    def oldest(self, ids: IntArray) -> IntArray:
        """Slots whose column `used` is lowest, as many as `ids` (distinct, at most `limit`) need
        room; none of `ids` itself."""
        slots = self.slots(ids)
        known = slots[slots >= 0]
        excess = 0 if self.limit is None else len(self) + len(ids) - len(known) - self.limit
        if excess <= 0:
            return known[:0]
        used = np.where(self._ids >= 0, self["used"], np.iinfo(np.int64).max)
        used[known] = np.iinfo(np.int64).max
        return np.argpartition(used, excess - 1)[:excess]

    def fill(self, ids: IntArray) -> None:
        """Become a map, until now empty, of these ids by slot, int64 [n]; -1 for a free slot."""
        self._reserve(len(ids))
        self.end = len(ids)
        self._ids[: len(ids)] = ids
        self._free = np.flatnonzero(ids < 0).tolist()
        self._build(len(self))

    def _build(self, alive: int) -> None:
        size = max(_LEAST, 1 << (3 * alive).bit_length())
        self._table: CodeArray = np.full(size, -1, dtype=np.int32)
        self._mask = size - 1
        self._shift = np.uint64(64 - size.bit_length() + 1)
        self._taken = 0
        self._insert(np.flatnonzero(self._ids >= 0))

    def _insert(self, slots: IntArray) -> None:
        self._taken += len(slots)
        step = 0
        while len(slots):
            offsets = self._offsets(self._ids[slots], step)
            free = self._table[offsets] < 0
            # Of several that want the same place the last one stays; the others go on.
            self._table[offsets[free]] = slots[free]
            slots = slots[self._table[offsets] != slots]
            step += 1

    def _offsets(self, ids: IntArray, step: int) -> IntArray:
        if step == 0:
            return ids & self._mask
        hashed = (ids.astype(np.uint64) * _GOLDEN) >> self._shift
        offsets: IntArray = (hashed.astype(np.int64) + step * (step - 1) // 2) & self._mask
        return offsets

    def _reserve(self, slots: int) -> None:
        if slots <= self.capacity:
            return
        ahead = self.capacity + self.capacity // 4
        size = max(slots, ahead if self.limit is None else min(ahead, self.limit)) + 1
        ids = np.full(size, -1, dtype=np.int64)
        ids[: self.capacity] = self._ids[:-1]
        columns = {name: np.zeros(size, dtype=kind) for name, kind in self._kinds.items()}
        for name, column in columns.items():
            column[: self.capacity] = self._columns[name][:-1]
        self._ids, self._columns = ids, columns
