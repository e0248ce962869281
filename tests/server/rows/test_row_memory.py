"""What tables take beside their rows, while they grow and afterwards."""

import mmap
import tracemalloc

import numpy as np
import pytest

from embedding.server.rows.devices import HostDevice
from embedding.server.rows.tables import Optimizer, Tables


def test_first_vectors_of_many_rows_need_little_memory_beside_them():
    tables = Tables(32, device=HostDevice(), capacity=100_000, seed=1, optimizer=Optimizer())
    slots = np.arange(100_000)
    tracemalloc.start()
    tables.start(slots, slots)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="pages have one size here")
@pytest.mark.parametrize(("rows", "own", "large"), [(100, 0, 0), (50_000, 1, 0), (300_000, 1, 1)])
def test_small_tables_give_their_pages_back_and_large_ones_have_large_pages(
    rows, own, large, monkeypatch
):
    made = []

    class Pages(mmap.mmap):
        def __init__(self, *_, **__):
            made.append([])

        def madvise(self, *advice):
            made[-1].append(advice[0])
            super().madvise(*advice)

    monkeypatch.setattr(mmap, "mmap", Pages)
    table = HostDevice().zeros(rows, 32)
    assert table.shape == (rows, 32)
    assert not table.any()
    assert made == [[mmap.MADV_HUGEPAGE] * large] * own
