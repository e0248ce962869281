"""Hangul while it is typed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.ask.search import SearchVocabulary, fold, initials, is_initials, typed

hangul = st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=1, max_size=6)
WORDS = ["코로나", "콜라", "코끼리", "신천지", "과자", "고자질", "닭갈비", "달걀", "Covid"]


@given(hangul, hangul)
def test_a_word_begins_with_everything_typed_on_the_way_to_it(head, tail):
    assert typed(head + tail).startswith(typed(head))
    assert len(initials(head)) == len(head)
    assert is_initials(initials(head))


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("콜", ["콜라", "코로나"]),
        ("코ㄹ", ["코로나", "콜라"]),
        ("ㅋㄹㄴ", ["코로나"]),
        ("ㅅㅊ", ["신천지"]),
        ("고", ["과자", "고자질"]),
        ("달", ["닭갈비", "달걀"]),
        ("쀍", []),
        ("로나", ["코로나"]),
        ("COV", ["Covid"]),
    ],
)
def test_half_typed_syllables_and_first_letters_find_words(query, first):
    vocabulary = SearchVocabulary(WORDS, np.arange(len(WORDS), 0, -1))
    found = vocabulary.suggest(query)
    assert sorted(found) == sorted(first) if len(query) == 1 else found == first


def test_a_whole_word_is_known_from_a_part_and_by_case_only_where_one_word_is_meant():
    vocabulary = SearchVocabulary([*WORDS, "who", "WHO"], np.arange(len(WORDS) + 2, 0, -1))
    meant = {"코로나": "코로나", "covid": "Covid", "WHO": "WHO"}
    assert {query: vocabulary.exact(query) for query in meant} == meant
    assert [vocabulary.exact(query) for query in ("Who", "코로", "")] == [None] * 3


def test_the_word_itself_comes_first():
    vocabulary = SearchVocabulary(["코로나19", "코로나"], np.array([9, 1]))
    assert vocabulary.suggest("코로나") == ["코로나", "코로나19"]
    assert fold("  COVID ") == "covid"
