"""Rows that a node keeps copies of from one block to the next, as some policies want it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import FloatArray, IntArray
from embedding.server.rows.slotmap import SlotMap
from embedding.worker.learning.combining import Steps

_LEAST = 1024


@dataclass(frozen=True)
class ChangedRows:
    """Rows that were trained since they were last pushed.

    ids    int64 [n]
    rows   float32 [n, dim], as they are here
    delta  float32 [n, dim], how far they moved
    steps  float64 [n, 2], as `combining.share` takes them, over all blocks since
    """

    ids: IntArray
    rows: FloatArray
    delta: FloatArray
    steps: Steps


class NodeRows:
    """A node's own copies of some rows of one table.

    base     float32 [n, dim]: what the server is known to hold, this node's pushes included
    rows     float32 [n, dim]: the node's copies
    steps    float64 [n, 2]: how much they were trained since the last push
    Memory: 8·dim + about 40 bytes a row, for rows that were touched since the last `refresh`.
    """

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self.clear()

    def __len__(self) -> int:
        return self._n

    def clear(self) -> None:
        """Forget every copy."""
        self._places = SlotMap()
        self._n = 0
        self._ids: IntArray = np.empty(_LEAST, dtype=np.int64)
        self._base: FloatArray = np.empty((_LEAST, self._dim), dtype=np.float32)
        self._rows: FloatArray = np.empty((_LEAST, self._dim), dtype=np.float32)
        self._steps: Steps = np.zeros((_LEAST, 2))
        self._trained: npt.NDArray[np.bool_] = np.zeros(_LEAST, dtype=np.bool_)
        self._fresh: npt.NDArray[np.bool_] = np.zeros(_LEAST, dtype=np.bool_)

    def missing(self, ids: IntArray) -> IntArray:
        """Those of `ids` (distinct) that have to be pulled."""
        at = self._places.slots(ids)
        held = (at >= 0) & self._fresh[at]
        return ids[~held]

    def put(self, ids: IntArray, values: FloatArray) -> None:
        """Rows as the server holds them; what a copy moved by and was not pushed stays on top."""
        at = self._places.slots(ids)
        new = at < 0
        if new.any():
            at[new] = self._append(ids[new], values[new])
        old = at[~new]
        if len(old):
            self._rows[old] += values[~new] - self._base[old]
            self._base[old] = values[~new]
        self._fresh[at] = True

    def take(self, ids: IntArray) -> FloatArray:
        """float32 [n, dim], to train on: the copies of ids that were put."""
        found: FloatArray = self._rows[self._places.slots(ids)]
        return found

    def learn(self, ids: IntArray, after: FloatArray, steps: Steps) -> None:
        """Rows (distinct ids that were put) were trained: they are `after` now."""
        at = self._places.slots(ids)
        self._rows[at] = after
        self._steps[at] += steps
        self._trained[at] = True

    def drain(self) -> ChangedRows:
        """What was trained since the last time; it counts as pushed from now on."""
        at = np.flatnonzero(self._trained[: self._n])
        rows = self._rows[at]
        moved = ChangedRows(self._ids[at], rows, rows - self._base[at], self._steps[at])
        self._base[at] = rows
        self._steps[at] = 0.0
        self._trained[at] = False
        return moved

    def refresh(self) -> None:
        """Every row has to be pulled again before it is used."""
        if self._trained[: self._n].any():
            self._fresh[:] = False
        else:
            self.clear()

    def keep(self, ids: IntArray, rows: FloatArray) -> None:
        """Keep copies of these alone, as `rows` (float32 [n, dim])."""
        self.clear()
        self.put(ids, rows)

    def _append(self, ids: IntArray, values: FloatArray) -> IntArray:
        at = np.arange(self._n, self._n + len(ids), dtype=np.int64)
        self._reserve(self._n + len(ids))
        self._places.put(at, ids)
        self._ids[at] = ids
        self._base[at] = self._rows[at] = values
        self._n += len(ids)
        return at

    def _reserve(self, rows: int) -> None:
        held = len(self._ids)
        if rows <= held:
            return
        more = max(rows, 2 * held) - held
        self._ids = np.concatenate([self._ids, np.empty(more, dtype=np.int64)])
        empty = np.empty((more, self._dim), dtype=np.float32)
        self._base = np.concatenate([self._base, empty])
        self._rows = np.concatenate([self._rows, empty])
        self._steps = np.concatenate([self._steps, np.zeros((more, 2))])
        self._trained = np.concatenate([self._trained, np.zeros(more, dtype=np.bool_)])
        self._fresh = np.concatenate([self._fresh, np.zeros(more, dtype=np.bool_)])
