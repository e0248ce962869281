"""Memory that was freed goes back to the system."""

from __future__ import annotations

import ctypes
import sys

import psutil
import pytest

from embedding.kernel.processes import give_back

CHUNK, CHUNKS = 50_000, 2_000
"""Below the size from which glibc maps a block of its own, and gives it back at once."""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is on Linux")
def test_freed_memory_below_what_is_in_use_goes_back() -> None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("not glibc")
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    blocks = [libc.malloc(CHUNK) for _ in range(CHUNKS)]
    for block in blocks:
        ctypes.memset(block, 1, CHUNK)
    for block in blocks[:-1]:
        libc.free(block)
    held = psutil.Process().memory_info().rss
    give_back()
    assert psutil.Process().memory_info().rss < held - CHUNK * CHUNKS / 2
    libc.free(blocks[-1])
