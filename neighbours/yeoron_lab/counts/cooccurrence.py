"""A streaming table of weighted word co-occurrences with a bound on its memory.

Counts follow Pennington et al. 2014 (GloVe): two words at distance d within a window add 1/d, in
both orders. The table is one open-addressing hash of 16 bytes a slot. When it is full, the
rarer half of the cells is dropped, so that it keeps what is frequent, as lossy counting does
(Manku and Motwani 2002): a dropped cell that comes back starts from zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embedding.kernel.errors import ConfigError, InputError
from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.models.base import LocalBlock, Track
from embedding.models.jit import kernel

_SMALLEST = 1 << 10
_LOAD = 0.75
_EMPTY = -1
_IDS = 1 << 31


def refuse_weights(block: LocalBlock, model: str) -> None:
    """Raise ConfigError when the block asks for what only negative sampling can give."""
    if block.weights is not None or block.track is not Track.NONE:
        raise ConfigError(
            f"{model} learns cells of a running table, not sentences: it takes no sentence "
            "weights and measures no sentence; use replay = uniform, or another model."
        )


@kernel()
def find(keys: Any, key: int) -> Any:
    """Slot of `key`, or of the empty slot where it belongs (linear probing)."""
    mask = np.uint64(len(keys) - 1)
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = (mixed ^ (mixed >> np.uint64(32))) & mask
    while keys[slot] != _EMPTY and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@kernel()
def cell_key(row: int, column: int) -> Any:
    """Key of the cell of two ids below 2**31."""
    return np.int64(row) << 32 | np.int64(column)


@kernel()
def _add_from(
    words: Any,
    ends: Any,
    ids: Any,
    window: int,
    slots: Any,
    block: int,
    touched: Any,
    state: Any,
    limit: int,
) -> None:
    """Add the cells of each word with those before it; stops when `limit` slots are used.

    state  int64 [4]: sentence and word to go on from, slots used, cells touched
    """
    keys, counts, stamps = slots
    for s in range(state[0], len(ends) - 1):
        low = ends[s]
        for at in range(max(low, state[1]), ends[s + 1]):
            state[0], state[1] = s, at
            if state[2] + 2 * window > limit:
                return
            for before in range(max(low, at - window), at):
                for row, column in ((words[at], words[before]), (words[before], words[at])):
                    key = cell_key(ids[row], ids[column])
                    slot = find(keys, key)
                    if keys[slot] == _EMPTY:
                        keys[slot] = key
                        state[2] += 1
                    counts[slot] += np.float32(1.0) / np.float32(at - before)
                    if stamps[slot] != block and state[3] < len(touched):
                        stamps[slot] = block
                        touched[state[3], 0], touched[state[3], 1] = row, column
                        state[3] += 1
    state[0] = len(ends) - 1


@kernel()
def _insert(keys: Any, counts: Any, stamps: Any, old: Any) -> None:
    for at in range(len(old[0])):
        slot = find(keys, old[0][at])
        keys[slot], counts[slot], stamps[slot] = old[0][at], old[1][at], old[2][at]


class CooccurrenceTable:
    """Co-occurrence counts by pairs of stable ids, in at most 16 · 2**⌈log₂ cells⌉ bytes."""

    def __init__(self, cells: int) -> None:
        if cells < _SMALLEST:
            raise ConfigError(
                f"a co-occurrence table of {cells} cells: at least {_SMALLEST} are needed, or "
                "it would drop what it has just counted."
            )
        self._bound = 1 << (cells - 1).bit_length()
        self._block = 0
        self._used = 0
        self._make(min(self._bound, 1 << 16))

    def _make(self, slots: int) -> None:
        self.keys: IntArray = np.full(slots, _EMPTY, np.int64)
        self.counts: FloatArray = np.zeros(slots, np.float32)
        self._stamps: CodeArray = np.zeros(slots, np.int32)

    def __len__(self) -> int:
        return self._used

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.counts.nbytes + self._stamps.nbytes

    def add(self, words: CodeArray, ends: CodeArray, ids: IntArray, window: int) -> CodeArray:
        """Count the words int32 [n] of sentences `ends` int32 [m + 1]; `ids` by word row.

        Returns int32 [t, 2]: the distinct cells that were touched, as rows. Raises InputError
        for ids outside 0 … 2**31 - 1.
        """
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < _IDS:
            raise InputError(
                f"row ids {int(ids.min())} to {int(ids.max())}: 0 to {_IDS - 1} are accepted."
            )
        self._block += 1
        reach = min(window, max(int(np.diff(ends).max(initial=1)), 1), self._bound // 8)
        touched = np.empty((min(2 * len(words) * reach, self._bound), 2), np.int32)
        state = np.array([0, 0, self._used, 0], np.int64)
        while True:
            slots = (self.keys, self.counts, self._stamps)
            limit = int(_LOAD * len(self.keys))
            _add_from(words, ends, ids, reach, slots, self._block, touched, state, limit)
            self._used = int(state[2])
            if int(state[0]) >= len(ends) - 1:
                return touched[: int(state[3])]
            self._make_room()
            state[2] = self._used

    def _make_room(self) -> None:
        used = np.flatnonzero(self.keys != _EMPTY)
        slots = len(self.keys)
        if slots < self._bound:
            slots *= 2
        else:
            half = len(used) // 2
            order = np.argpartition(self.counts[used], half)
            used = np.sort(used[order[half:]])
        old = (self.keys[used], self.counts[used], self._stamps[used])
        self._make(slots)
        _insert(self.keys, self.counts, self._stamps, old)
        self._used = len(used)

    def cells(self) -> tuple[IntArray, IntArray, FloatArray]:
        """(row ids int64 [c], column ids int64 [c], counts float32 [c]), by row, then column."""
        used = np.flatnonzero(self.keys != _EMPTY)
        used = used[np.argsort(self.keys[used])]
        keys = self.keys[used]
        return keys >> 32, keys & (_IDS - 1), self.counts[used]

    def decay(self, factor: float) -> None:
        """Multiply all counts by `factor` (0 to 1), so that the old weighs less than the new."""
        if not 0 <= factor <= 1:
            raise ConfigError(f"decay by {factor}: a factor from 0 to 1 is accepted.")
        self.counts *= np.float32(factor)
