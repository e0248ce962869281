"""Which slot an id has, and which id a slot: memory goes with the slots, not with ids ever given.

A hash table with open addressing, looked up for many ids at once. An id is first looked for at
id mod size: ids are given in order, so most are found there at once, side by side in memory. Then
come places of a multiplicative hash in triangular steps (Knuth, TAOCP 3, 6.4), so that old ids
that are left over from earlier rounds do not pile up against the run of new ones.
"""

from __future__ import annotations

import numpy as np

from embedding.kernel.records import CodeArray, IntArray
from embedding.server.rows.fetching import find_slots

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LEAST = 4096


class SlotMap:
    """Ids that are alive ↔ slots. Memory: 8 to 16 bytes a slot and 20 to 32 bytes an id.

    An entry whose slot has got another id is left where it is: it no longer matches. Such leftovers
    count as used places and go when the table is built again.
    """

    def __init__(self) -> None:
        self._ids: IntArray = np.full(1025, -1, dtype=np.int64)  # the last one stands for slot -1
        self._used: IntArray | None = None
        self._build(0)

    @property
    def nbytes(self) -> int:
        """Bytes of the table, the ids and their order."""
        order = 0 if self._used is None else self._used.nbytes
        return self._ids.nbytes + self._table.nbytes + order

    @property
    def capacity(self) -> int:
        """Slots that there is room for."""
        return len(self._ids) - 1

    def ids(self, slots: IntArray) -> IntArray:
        """Ids int64 [n] of slots; -1 for a free one."""
        found: IntArray = self._ids[slots]
        return found

    def slots(self, ids: IntArray) -> IntArray:
        """Slots int64 [n] of ids (none negative); -1 for an id that is not alive."""
        found: IntArray = np.empty(len(ids), dtype=np.int64)
        find_slots(ids, self._table, self._ids, self._shift, _GOLDEN, found)
        return found

    def used(self) -> IntArray:
        """Slots int64 that hold an id, in order of the ids; not to be written to."""
        if self._used is None:
            slots = np.flatnonzero(self._ids >= 0)
            self._used = slots[np.argsort(self._ids[slots], kind="stable")].astype(np.int64)
        return self._used

    def put(self, slots: IntArray, ids: IntArray) -> None:
        """Give free slots their ids (distinct, not alive)."""
        self._reserve(int(slots.max(initial=-1)) + 1)
        self._used = None
        self._ids[slots] = ids
        if 2 * (self._taken + len(slots)) > len(self._table):
            self._build(int((self._ids >= 0).sum()))
        else:
            self._insert(slots)

    def free(self, slots: IntArray) -> None:
        """Take the ids of slots away."""
        self._used = None
        self._ids[slots] = -1

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
            places = self._places(self._ids[slots], step)
            free = self._table[places] < 0
            # Of several that want the same place the last one stays; the others go on.
            self._table[places[free]] = slots[free]
            slots = slots[self._table[places] != slots]
            step += 1

    def _places(self, ids: IntArray, step: int) -> IntArray:
        if step == 0:
            return ids & self._mask
        hashed = (ids.astype(np.uint64) * _GOLDEN) >> self._shift
        found: IntArray = (hashed.astype(np.int64) + step * (step - 1) // 2) & self._mask
        return found

    def _reserve(self, slots: int) -> None:
        if slots <= self.capacity:
            return
        grown = np.full(max(slots, self.capacity + self.capacity // 4) + 1, -1, dtype=np.int64)
        grown[: self.capacity] = self._ids[:-1]
        self._ids = grown
