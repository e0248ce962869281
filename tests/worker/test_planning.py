"""Planning a block: which rows, and tokens in local row numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from embedding.worker.planning import join, plan

ids_of = st.lists(st.integers(-1, 50), max_size=60)


@given(ids_of, st.lists(st.integers(0, 50), max_size=20))
def test_local_rows_name_the_same_words_as_the_ids(ids: list[int], pool: list[int]) -> None:
    tokens = np.asarray(ids, dtype=np.int64)
    noise = np.asarray(pool, dtype=np.int64)
    planned = plan(tokens, np.asarray([0, len(ids)], dtype=np.int32), noise)
    local = planned.contexts[planned.order]
    known = planned.block.tokens >= 0
    assert np.array_equal(known, tokens >= 0)
    assert np.array_equal(planned.vectors[planned.block.tokens[known]], tokens[known])
    assert np.array_equal(local[planned.block.tokens[known]], tokens[known])
    assert np.array_equal(local[planned.block.pool], noise)


@given(ids_of, st.lists(st.integers(0, 50), max_size=20))
def test_rows_to_pull_are_strictly_increasing(ids: list[int], pool: list[int]) -> None:
    planned = plan(
        np.asarray(ids, dtype=np.int64),
        np.asarray([0, len(ids)], dtype=np.int32),
        np.asarray(pool, dtype=np.int64),
    )
    assert (np.diff(planned.vectors) > 0).all()
    assert (np.diff(planned.contexts) > 0).all()
    assert len(planned.block.keep) == len(planned.vectors)


def test_join_shifts_sentence_offsets() -> None:
    first = (np.asarray([5, 6, 7]), np.asarray([0, 1, 3], dtype=np.int32))
    second = (np.asarray([8]), np.asarray([0, 1], dtype=np.int32))
    ids, sentences = join([first, second])
    assert ids.tolist() == [5, 6, 7, 8]
    assert sentences.tolist() == [0, 1, 3, 4]


def test_join_of_nothing_is_an_empty_block() -> None:
    ids, sentences = join([])
    assert len(ids) == 0
    assert sentences.tolist() == [0]
