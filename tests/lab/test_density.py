"""Which rows go by all-reduce."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yeoron_lab.allreduce.density import DENSE_SHARE, STAYS, Touches, choose, threshold


@pytest.mark.parametrize(
    ("nodes", "row_bytes", "expected"),
    [
        (1, 2, DENSE_SHARE),
        (2, 2, DENSE_SHARE),
        (2, 4, 0.5),
        (4, 2, 0.75),
        (4, 4, 0.375),
        (8, 2, 0.4375),
    ],
)
def test_the_threshold_is_where_both_connections_carry_the_same(
    nodes: int, row_bytes: int, expected: float
) -> None:
    assert threshold(nodes, row_bytes) == pytest.approx(expected)
    if expected < DENSE_SHARE:
        server = nodes * expected * row_bytes
        ring = 2 * (nodes - 1) / nodes * 4
        assert server == pytest.approx(ring)


@given(
    st.lists(st.integers(0, 20), max_size=30),
    st.floats(0.05, 1.0),
    st.sets(st.integers(0, 29), max_size=10),
)
def test_rows_are_dense_from_the_threshold_on_and_stay_so_a_little_below(
    counts: list[int], least: float, before: set[int]
) -> None:
    touched = np.asarray(counts, dtype=np.int64)
    dense = np.asarray(sorted(row for row in before if row < len(counts)), dtype=np.int64)
    chosen = choose(touched, 20, least, dense)
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    for row, count in enumerate(counts):
        need = least * 20 * (STAYS if row in dense else 1.0)
        assert (row in chosen) == (count >= max(need, 1.0))


def test_without_a_block_nothing_is_chosen_anew() -> None:
    dense = np.asarray([3], dtype=np.int64)
    assert choose(np.zeros(5, dtype=np.int64), 0, 0.5, dense) is dense


def test_touches_grow_with_the_ids_and_begin_anew() -> None:
    touches = Touches()
    touches.note(np.asarray([2, 0], dtype=np.int64))
    touches.note(np.asarray([5, 2], dtype=np.int64))
    assert touches.counts[:6].tolist() == [1, 0, 2, 0, 0, 1]
    touches.forget()
    assert not touches.counts.any()
