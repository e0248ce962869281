"""A node's own copies of rows, against a model of what they should be."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from generated import examples
from yeoron_lab.paced.paced import CopiedRows

DIM, WORDS = 3, 12
ids = st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=WORDS, unique=True)
events = st.lists(st.tuples(st.sampled_from(["learn", "serve", "drain", "refresh"]), ids))


def rows(which: list[int], value: float) -> np.ndarray:
    return np.full((len(which), DIM), value, dtype=np.float32) + np.arange(DIM, dtype=np.float32)


@settings(max_examples=examples(200))
@given(events)
def test_what_moved_is_pushed_once_and_others_work_is_seen_after_a_refresh(events):
    """The server's rows move by others' work and by what is drained; nothing else is lost."""
    server = np.zeros((WORDS, DIM), dtype=np.float64)
    others, mine = np.zeros(WORDS), np.zeros(WORDS)
    local = CopiedRows(DIM)
    steps = np.zeros((WORDS, 2))
    for n, (event, chosen) in enumerate(events, 1):
        which = np.array(chosen, dtype=np.int64)
        if event == "serve":
            server[which] += n
            others[which] += n
        elif event == "learn":
            missing = local.missing(which)
            local.put(missing, server[missing].astype(np.float32))
            before = local.take(which)
            local.learn(which, before + np.float32(0.5), np.full((len(which), 2), (2.0, 1.0)))
            mine[which] += 0.5
            steps[which] += (2.0, 1.0)
        elif event == "refresh":
            local.refresh()
            assert len(local.missing(np.arange(WORDS))) == WORDS
        else:
            moved = local.drain()
            assert np.array_equal(np.sort(moved.ids), np.flatnonzero(steps[:, 0]))
            assert np.allclose(moved.steps, steps[moved.ids])
            server[moved.ids] += moved.delta
            steps[:] = 0
    moved = local.drain()
    server[moved.ids] += moved.delta
    assert np.allclose(server, (others + mine)[:, None], atol=1e-3)


def test_copies_that_are_kept_stay_and_the_others_go():
    local = CopiedRows(DIM)
    every = np.arange(5, dtype=np.int64)
    local.put(every, rows(list(every), 1.0))
    local.keep(every[:2], rows([0, 1], 7.0))
    assert local.missing(every).tolist() == [2, 3, 4]
    assert np.array_equal(local.take(every[:2]), rows([0, 1], 7.0))
    assert not len(local.drain().ids)


def test_many_rows_fit():
    local = CopiedRows(DIM)
    every = np.arange(5_000, dtype=np.int64)[::-1].copy()
    values = np.random.default_rng(1).random((len(every), DIM), dtype=np.float32)
    for at in range(0, len(every), 700):
        local.put(every[at : at + 700], values[at : at + 700])
    assert len(local) == len(every)
    assert np.array_equal(local.take(every), values)
