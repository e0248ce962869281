"""Memory of tables on the CPU: pages exist once they are written, and are large where they can be.

Tables grow by doubling. An allocator writes zeros into all of a new table, so that the half that
is still empty takes memory as well; pages of the system are zeros anyway and come when they are
needed. Rows lie at random places of gigabytes, and with pages of 4 KB nearly each of them misses
the processor's address cache; with pages of 2 MB it holds five hundred times as much
(`python -m benchmarks shards` measures what that is worth).
"""

from __future__ import annotations

import math
import mmap

import numpy as np

from embedding.kernel.records import FloatArray

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
