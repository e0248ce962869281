"""Tables that a server and the nodes of its host have together.

On the CPU their memory is anonymous (memfd): it needs no room in /dev/shm or on a disk, takes pages
only for rows that are used, and is gone with the last process that maps it.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from embedding.kernel.devices import DeviceArray, lend
from embedding.kernel.errors import ConfigError
from embedding.kernel.records import FloatArray
from embedding.server.rows.devices import HostDevice, RowDevice, SharedRows


def shared_rows(device: RowDevice, rows: Sequence[int], dim: int) -> SharedRows:
    """float32 [rows[i], dim] for each of some tables on a device."""
    if isinstance(device, HostDevice):
        return SharedMemory(rows, dim)
    return SharedOnGpu(rows, dim, device)


class SharedMemory:
    """See SharedRows."""

    on_gpu = False

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
        return f"/proc/{os.getpid()}/fd/{self._file}"

    def table(self, at: int) -> FloatArray:
        """One table, float32 [rows[at], dim]; zeros at first."""
        offset, size = 4 * sum(self.rows[:at]) * self.dim, self.rows[at] * self.dim
        flat: FloatArray = np.frombuffer(self._map, np.float32, count=size, offset=offset)
        return flat.reshape(self.rows[at], self.dim)


class SharedOnGpu:
    """See SharedRows; all rows take memory from the start."""

    on_gpu = True

    def __init__(self, rows: Sequence[int], dim: int, device: RowDevice) -> None:
        import torch

        try:
            self._whole: Any = device.zeros(sum(rows), dim)
        except torch.OutOfMemoryError as error:
            raise ConfigError(
                f"device cuda: tables of {rows[0]:,} words and {dim} numbers each take "
                f"{4e-9 * sum(rows) * dim:.1f} GB, and the GPU has not so much left; set a smaller "
                "max_words or dim, end what else runs on it, or use --device cpu."
            ) from error
        self._tables = torch.split(self._whole, list(rows))

    @property
    def path(self) -> str:
        return lend(self._whole)

    def table(self, at: int) -> DeviceArray:
        return self._tables[at]
