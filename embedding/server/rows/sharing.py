"""Tables in memory that other processes of this host map too (Hogwild, Recht 2011).

The memory is anonymous (memfd): it needs no room in /dev/shm or on a disk, takes pages only for
rows that are used, and is gone with the last process that maps it.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Sequence

import numpy as np

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import FloatArray


class SharedMemory:
    """float32 [rows[i], dim] for each of some tables, one after the other."""

    def __init__(self, rows: Sequence[int], dim: int) -> None:
        if sys.platform != "linux":
            raise ConfigError("policy hogwild: it shares memory between processes on Linux only.")
        self.rows, self.dim = tuple(rows), dim
        self._file = os.memfd_create("yeoron-tables")
        os.ftruncate(self._file, self.nbytes)
        self._map = mmap.mmap(self._file, self.nbytes)

    @property
    def nbytes(self) -> int:
        """Bytes that all tables would take if every row were used."""
        return 4 * sum(self.rows) * self.dim

    @property
    def path(self) -> str:
        """Where a process of the same user on this host finds the memory."""
        return f"/proc/{os.getpid()}/fd/{self._file}"

    def table(self, at: int) -> FloatArray:
        """One table, float32 [rows[at], dim]; zeros at first."""
        offset, size = 4 * sum(self.rows[:at]) * self.dim, self.rows[at] * self.dim
        flat: FloatArray = np.frombuffer(self._map, np.float32, count=size, offset=offset)
        return flat.reshape(self.rows[at], self.dim)
