"""Row-wise AdaGrad accumulators that outlive a block (Duchi et al. 2011; one scalar a row)."""

from __future__ import annotations

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray, IntArray

_LIMIT = 1 << 31


class RowState:
    """Accumulators by stable id, grown as ids appear: 4 bytes a row."""

    def __init__(self) -> None:
        self._values = np.zeros(0, np.float32)

    def __len__(self) -> int:
        return len(self._values)

    def gather(self, ids: IntArray | None, rows: int) -> FloatArray:
        """float32 [rows] for local rows 0..rows-1; zeros where nothing is known."""
        if ids is None:
            return np.zeros(rows, np.float32)
        if len(ids) < rows:
            raise InputError(f"{len(ids)} ids were given for {rows} rows: each row needs its own.")
        self._reserve(ids[:rows])
        local: FloatArray = self._values[ids[:rows]]
        return local

    def scatter(self, ids: IntArray | None, values: FloatArray) -> None:
        """Keep what `gather` gave and the kernel moved on."""
        if ids is not None and len(values):
            self._values[ids[: len(values)]] = values

    def _reserve(self, ids: IntArray) -> None:
        if not len(ids):
            return
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= _LIMIT:
            raise InputError(f"row ids {low} to {high}: ids from 0 to {_LIMIT - 1} are accepted.")
        if high >= len(self._values):
            grown = np.zeros(max(high + 1, 2 * len(self._values)), np.float32)
            grown[: len(self._values)] = self._values
            self._values = grown
