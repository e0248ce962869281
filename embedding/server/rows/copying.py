"""A consistent copy of the tables that is taken while they go on changing.

Copy on write, by row: whoever is about to change a row that was not copied yet copies it first;
a background thread copies the rest in small steps. So training is held up by single steps only,
not by the whole copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
import numpy.typing as npt

from embedding.kernel.devices import DeviceArray
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.rows.devices import RowDevice

_STEP_BYTES = 4 * 1024 * 1024
_BREATH_S = 0.0002


class RowsCopy(Protocol):
    """All rows at one moment, wherever they lie; they are copied while training goes on."""

    def finish(self, lock: AbstractContextManager[object]) -> float:
        """Complete the copy; the longest time in seconds for which `lock` was held."""

    def pick(self, table: Table, slots: IntArray) -> FloatArray:
        """float32 [n, dim] of some slots."""

    def rows(self, table: Table) -> FloatArray:
        """float32 [n, dim], a whole table."""

    def release(self) -> None:
        """The copy is needed no longer."""


class RowCopy:
    """One array [n, …] as it was when this was made. `save` and `step` need the server's lock.

    source  the array, on `device`
    """

    def __init__(self, source: Callable[[], DeviceArray], n: int, device: RowDevice) -> None:
        self._source, self._device = source, device
        self.n = n
        shape = (n, *source().shape[1:])
        self.rows: FloatArray = np.empty(shape, dtype=np.float32)
        self._done: npt.NDArray[np.bool_] = np.zeros(n, dtype=np.bool_)
        self._at = 0
        width = max(1, int(np.prod(shape[1:], dtype=np.int64)))
        self._stride = max(1, _STEP_BYTES // (4 * width))

    def save(self, slots: IntArray) -> None:
        if self._at >= self.n:
            return
        inside = slots[(slots >= self._at) & (slots < self.n)]
        fresh = inside[~self._done[inside]]
        if len(fresh):
            self.rows[fresh] = self._device.host(self._source()[self._device.place(fresh)])
            self._done[fresh] = True

    def step(self) -> bool:
        """Copy the next few rows; False when all are copied."""
        low, high = self._at, min(self._at + self._stride, self.n)
        part = self._device.host(self._source()[low:high])
        done = self._done[low:high]
        if done.any():
            self.rows[low:high][~done] = part[~done]
        else:
            self.rows[low:high] = part
        self._at = high
        return high < self.n

    def finish(self, lock: AbstractContextManager[object]) -> float:
        """Copy what is left, taking `lock` for each step; returns the longest step in seconds."""
        longest, more = 0.0, self.n > 0
        while more:
            with lock:
                began = time.perf_counter()
                more = self.step()
                longest = max(longest, time.perf_counter() - began)
            # Locks are not fair: without a breath the pushes that wait would starve.
            time.sleep(_BREATH_S)
        return longest
