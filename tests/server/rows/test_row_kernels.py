"""Kernels of rows are there once tables are: nobody's first pull waits for a compiler."""

import numpy as np

from embedding.kernel.records import Table
from embedding.server.rows import devices
from embedding.server.rows.devices import HostDevice
from embedding.server.rows.rowmap import RowMap
from embedding.server.rows.tables import Optimizer, Tables


def test_reading_and_adding_compile_nothing_that_the_tables_did_not():
    tables = Tables(8, device=HostDevice(), capacity=16, seed=1, optimizer=Optimizer())
    places, slots = RowMap(), np.arange(10)
    before = compiled()
    assert all(before.values())
    places.put(slots, slots)
    sent = np.frombuffer(slots.tobytes(), dtype=np.int64)
    for ids in (slots, sent):
        assert places.slots(ids).tolist() == slots.tolist()
        for kind in (np.float32, np.float16):
            tables.add(Table.OUT, ids, np.ones((10, 8), dtype=kind))
        tables.gather(Table.OUT, ids)
        tables.read(Table.IN, ids)
    assert compiled() == before


def compiled() -> dict[str, int]:
    """How many kinds of arguments each kernel was compiled for."""
    kernels = (devices.add_rows, devices.gather_rows, devices.find_slots)
    return {each.__name__: len(each.nopython_signatures) for each in kernels}
