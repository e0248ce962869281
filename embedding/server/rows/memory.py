"""Memory of tables on the CPU: pages exist once they are written, and are large where they can be.

Tables grow by doubling. An allocator writes zeros into all of a new table, so that the half that
is still empty takes memory as well; pages of the system are zeros anyway and come when they are
needed. Rows lie at random places of gigabytes, and with pages of 4 KB nearly each of them misses
the processor's address cache; with pages of 2 MB it holds five hundred times as much
(`python -m benchmarks shards` measures what that is worth).

Other processes of this host map shared tables too (Hogwild, Recht 2011). Their memory is anonymous
(memfd): it needs no room in /dev/shm or on a disk, takes pages only for rows that are used, and is
gone with the last process that maps it.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import FloatArray

T = TypeVar("T", bound=np.generic)

OWN = 128 * 1024
"""Bytes from which on a table has pages of its own: once it has grown, the old ones are gone."""
LARGE = 32 * 1024 * 1024
"""Bytes from which on they are large: of a smaller one the last, half empty page would count."""


def zeros(*shape: int) -> FloatArray:
    """float32 zeros."""
    size = 4 * math.prod(shape)
    if size < OWN or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(shape, dtype=np.float32)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype=np.float32).reshape(shape)


class SharedMemory:
    """See SharedRows."""

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


def grown(array: npt.NDArray[T], size: int) -> npt.NDArray[T]:
    """The array with room for so many rows; if it grows it has at least twice as many as before."""
    if size <= len(array):
        return array
    fresh = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
    fresh[: len(array)] = array
    return fresh
