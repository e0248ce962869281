"""Planning a block: which rows, and tokens in local row numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.records import FloatArray, IntArray
from embedding.worker.learning.planning import CodedText, plan


class Even:
    """A lexicon whose ids are the even numbers: places are not the ids."""

    ids = np.arange(0, 102, 2, dtype=np.int64)

    def places(self, ids: IntArray) -> IntArray:
        assert (ids >= 0).all()
        assert (ids % 2 == 0).all()
        return ids // 2


LEXICON = Even()
ids_of = st.lists(st.integers(0, 50).map(lambda n: 2 * n) | st.just(-1), max_size=60)
pools = st.lists(st.integers(0, 50).map(lambda n: 2 * n), max_size=20)


def part(ids: list[int]) -> CodedText:
    """One sentence."""
    return CodedText.of_ids(
        np.asarray(ids, dtype=np.int64), np.asarray([0, len(ids)], dtype=np.int32)
    )


def noise(pool: list[int]) -> IntArray:
    return np.asarray(pool, dtype=np.int64)


@given(st.lists(ids_of, max_size=4), pools)
def test_local_rows_name_the_same_words_as_the_ids(texts: list[list[int]], pool: list[int]) -> None:
    planned = plan([part(ids) for ids in texts], noise(pool), LEXICON)
    ids = np.asarray([id_ for text in texts for id_ in text], dtype=np.int64)
    tokens = planned.block.tokens
    known = tokens >= 0
    assert np.array_equal(known, ids >= 0)
    assert np.array_equal(planned.words[tokens[known]], ids[known])
    assert np.array_equal(planned.contexts[tokens[known]], ids[known])
    assert np.array_equal(planned.contexts[planned.block.pool], noise(pool))
    assert np.array_equal(planned.block.ids, planned.contexts)
    ends = np.cumsum([0, *(len(text) for text in texts)])
    assert planned.block.sentences.tolist() == ends.tolist()


@given(st.lists(ids_of, max_size=4), pools)
def test_each_row_is_asked_for_once_and_only_when_it_is_needed(
    texts: list[list[int]], pool: list[int]
) -> None:
    planned = plan([part(ids) for ids in texts], noise(pool), LEXICON)
    words = {id_ for text in texts for id_ in text if id_ >= 0}
    assert len(set(planned.contexts.tolist())) == len(planned.contexts)
    assert set(planned.words.tolist()) == words
    assert set(planned.extras.tolist()) == set(pool) - words


@given(st.lists(ids_of, max_size=4), pools)
def test_a_word_is_kept_as_its_own_probability_says(
    texts: list[list[int]], pool: list[int]
) -> None:
    def keep(ids: IntArray) -> FloatArray:
        return (ids / 100).astype(np.float32)

    planned = plan([part(ids) for ids in texts], noise(pool), LEXICON, keep)
    assert np.array_equal(planned.block.keep, keep(planned.words))
    unasked = plan([part(ids) for ids in texts], noise(pool), LEXICON).block.keep
    assert np.array_equal(unasked, np.ones(len(planned.words), dtype=np.float32))


def test_sentences_of_parts_follow_one_another() -> None:
    first = CodedText.of_ids(np.asarray([10, 12, 14]), np.asarray([0, 1, 3], dtype=np.int32))
    planned = plan([first, part([16])], noise([]), LEXICON)
    assert planned.block.sentences.tolist() == [0, 1, 3, 4]


def test_no_part_is_an_empty_block() -> None:
    planned = plan([], noise([]), LEXICON)
    assert len(planned.block.tokens) == 0
    assert planned.block.sentences.tolist() == [0]
    assert len(planned.contexts) == 0


@given(ids_of)
def test_a_part_made_of_ids_holds_them(ids: list[int]) -> None:
    assert part(ids).ids.tolist() == ids
