"""Rows on each device: growth, first values, deltas, optimisers, consistent copies."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import Table
from embedding.models.starting import first_vectors
from embedding.server.rows.devices import pick_device
from embedding.server.rows.tables import Optimizer, Tables
from generated import examples


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def make(device: str = "cpu", *, dim: int = 3, capacity: int = 4, optimizer=None) -> Tables:
    return Tables(
        dim,
        device=pick_device(device),
        capacity=capacity,
        seed=7,
        optimizer=optimizer or Optimizer(),
    )


def test_growing_keeps_what_is_there(device):
    tables = make(device)
    tables.start(ints(0, 3), ints(10, 11))
    before = tables.read(Table.IN, ints(0, 3))
    tables.ensure(100)
    assert tables.capacity == 100
    tables.ensure(101)
    assert tables.capacity == 200
    assert np.array_equal(tables.read(Table.IN, ints(0, 3)), before)


def test_first_values_are_those_of_word2vec_and_a_function_of_seed_and_id(device):
    rows = first_vectors(np.arange(2000), 50, seed=1)
    assert np.abs(rows).max() <= 0.5 / 50
    assert abs(rows.mean()) < 1e-4
    assert rows.std() == pytest.approx(1 / 50 / np.sqrt(12), rel=0.02)
    assert np.array_equal(first_vectors(ints(7, 3), 50, 1), rows[[7, 3]])
    assert not np.array_equal(first_vectors(ints(7), 50, 2), rows[[7]])
    tables = make(device)
    tables.start(ints(2), ints(5))
    assert np.array_equal(tables.read(Table.IN, ints(2)), first_vectors(ints(5), 3, 7))
    assert not tables.read(Table.OUT, ints(2)).any()


def test_deltas_are_added(device):
    tables = make(device)
    tables.add(Table.OUT, ints(1, 3), np.full((2, 3), 2.0, dtype=np.float32))
    tables.add(Table.OUT, ints(1), np.full((1, 3), 2.0, dtype=np.float32), scale=0.5)
    assert tables.read(Table.OUT, ints(0, 1, 3)).tolist() == [[0] * 3, [3] * 3, [2] * 3]
    assert not tables.read(Table.IN, ints(1)).any()


def test_an_evicted_row_reads_as_zero(device):
    tables = make(device)
    tables.start(ints(0), ints(0))
    rows = tables.read(Table.IN, ints(-1, 0))
    assert not rows[0].any()
    assert rows[1].any()


def test_adagrad_shrinks_deltas_of_rows_that_moved_far(device):
    tables = make(device, optimizer=Optimizer("adagrad", rate=1.0))
    one = np.ones((1, 3), dtype=np.float32)
    expected, moved = 0.0, 0.0
    for _ in range(4):
        tables.add(Table.IN, ints(2), one)
        moved += 1.0
        expected += min(1.0, 1.0 / np.sqrt(moved))
        assert tables.read(Table.IN, ints(2))[0] == pytest.approx([expected] * 3)
    tables.add(Table.IN, ints(0), np.zeros((1, 3), dtype=np.float32))
    assert np.isfinite(tables.read(Table.IN, ints(0))).all()


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ConfigError, match="dim 0"):
        make(dim=0)


changes = st.lists(
    st.tuples(st.sampled_from(["add", "step", "grow", "start"]), st.integers(0, 7)), max_size=40
)


@settings(max_examples=examples(100))
@given(changes, st.booleans())
def test_a_copy_is_the_tables_as_they_were_whatever_changes_meanwhile(changes, adagrad):
    optimizer = Optimizer("adagrad" if adagrad else "sum")
    tables = make(capacity=8, optimizer=optimizer)
    every = np.arange(8)
    tables.start(every, every)
    tables.add(Table.OUT, every, np.ones((8, 3), dtype=np.float32))
    wanted = {table: tables.read(table, every) for table in tables.kinds}
    copy = tables.copy(8, accumulators=adagrad)
    for part in copy._parts.values():
        part._stride = 1
    steps = iter(list(copy._parts.values()) * 8)
    for kind, at in changes:
        if kind == "add":
            tables.add(Table.OUT, ints(at), np.full((1, 3), 5.0, dtype=np.float32))
        elif kind == "start":
            tables.start(ints(at), ints(100 + at))
        elif kind == "grow":
            tables.ensure(tables.capacity + 1)
        else:
            part = next(steps, None)
            if part is not None and part._at < part.n:
                part.step()
    copy.finish(threading.RLock())
    for table in tables.kinds:
        assert np.array_equal(copy.rows(table), wanted[table])
    assert tables.watchers == []


def test_a_copy_of_nothing_is_empty():
    copy = make().copy(0, accumulators=False)
    assert copy.finish(threading.RLock()) == 0.0
    assert copy.rows(Table.IN).shape == (0, 3)


def test_rows_that_start_together_start_as_each_would_alone():
    ids = np.arange(0, 60_000, 3, dtype=np.int64)
    tables = make(dim=64, capacity=len(ids))
    slots = np.random.default_rng(1).permutation(len(ids)).astype(np.int64)
    tables.start(slots, ids)
    assert np.array_equal(tables.read(Table.IN, slots), first_vectors(ids, 64, tables.seed))
