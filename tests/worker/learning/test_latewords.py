"""Words that get their row after their text was remembered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from embedding.kernel.records import TokenBlock
from embedding.stream.replay import UniformReplay
from embedding.worker.learning.planning import CodedText
from embedding.worker.learning.rehearsal import Mixing, Rehearsal
from embedding.worker.words.latewords import LateWords

NO_ROW = -1

WORDS = "abcdefghij"


def part(text: str, rows: dict[str, int]) -> tuple[TokenBlock, CodedText]:
    """A block of one document of one-letter words, and its words' rows."""
    block = TokenBlock.build("s", [[list(text)]], published=[0.0], keys=["k"])
    table = np.array([rows.get(word, NO_ROW) for word in block.words], dtype=np.int64)
    return block, CodedText(table, block.codes, block.sentences)


def coded(late: LateWords, text: str, rows: dict[str, int]) -> np.ndarray:
    block, known = part(text, rows)
    return late.coded(block.words, known.table)[known.codes]


def test_a_word_is_read_as_its_row_from_then_on():
    late = LateWords()
    first = coded(late, "abca", {"b": 7})
    assert late.rows(first).tolist() == [NO_ROW, 7, NO_ROW, NO_ROW]
    again = coded(late, "ab", {"a": 3, "b": 7})
    assert again.tolist() == [3, 7]
    assert late.rows(first).tolist() == [3, 7, NO_ROW, 3]
    assert len(late) == 1, "only c has no row still"


def test_a_word_that_lost_its_row_gets_another():
    late = LateWords()
    first = coded(late, "a", {})
    coded(late, "a", {"a": 1})
    second = coded(late, "a", {})
    coded(late, "a", {"a": 9})
    assert late.rows(np.concatenate([first, second])).tolist() == [1, 9]


@example([("abc", 0), ("a", 3), ("e", 0), ("dc", 0)], 2)
@given(
    st.lists(st.tuples(st.text(WORDS, min_size=1, max_size=6), st.integers(0, 10)), max_size=40),
    st.integers(1, 8),
)
def test_rows_are_right_or_unknown_however_few_are_remembered(steps, most):
    late, rows, texts = LateWords(most), {}, []
    for text, known in steps:
        rows |= {word: at for at, word in enumerate(WORDS) if at < known}
        texts.append((text, coded(late, text, rows)))
        assert len(late) <= most
        for before, ids in texts:
            for word, row in zip(before, late.rows(ids).tolist(), strict=True):
                assert row == NO_ROW or row == rows[word]


def test_words_that_got_their_row_take_no_room_from_those_that_wait():
    late, rows = LateWords(10), {word: at for at, word in enumerate("bcdefgh")}

    def row_of(words: Sequence[str]) -> np.ndarray:
        return np.array([rows.get(word, NO_ROW) for word in words], dtype=np.int64)

    first = coded(late, "abcdefgh", {}).astype(np.int32)
    read = late.find(row_of)
    assert read is not None
    first = read(first)
    assert first[1:].tolist() == list(range(7))
    second = coded(late, "ijkl", {}).astype(np.int32)
    assert late.find(row_of) is None, "nobody has to look at the text again"
    rows |= {"a": 100, "k": 7}
    read = late.find(row_of)
    assert read is not None
    assert read(first).tolist() == [100, *range(7)]
    assert read(second)[2] == 7
    assert len(late) == 3
    assert coded(late, "ji", {}).tolist() == read(second)[[1, 0]].tolist()


def test_what_is_rehearsed_holds_words_that_had_no_row_when_they_were_read():
    rehearsal = Rehearsal(UniformReplay(1_000), Mixing({}))
    for text, rows in (("abc", {}), ("abc", {"a": 0, "b": 1, "c": 2})):
        block, fresh = part(text, rows)
        rehearsal.draw([block], [fresh], 0)
    past, _ = rehearsal.draw_again(60, evenly=False)
    ids = np.concatenate([each.ids for each in past])
    assert set(ids.tolist()) == {0, 1, 2}
