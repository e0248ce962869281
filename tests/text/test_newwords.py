"""Words that Kiwi takes to pieces are found in the stream and taken in without a stall."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import kiwipiepy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.records import Document, Phrase
from embedding.text.config import TextConfig
from embedding.text.kiwi import WordFinder
from embedding.text.pipeline import TextPipeline

MENTIONS = 8
VARIETY = 6

WORD = "김밥맛"
"""Kiwi says 김밥 and 맛."""
TAILS = ("", "이", "은", "을", "에", "의", "도", "만", "으로", "과", "까지", "보다")
FRAMES = ("오늘 {} 좋다", "우리는 {} 안다", "그 {} 처음 보다", "요즘 {} 많다")
OTHERS = ("학교", "대통령", "마스크", "국민")


class Piece(NamedTuple):
    form: str
    tag: str
    start: int
    len: int


PARTS = ("김밥", "맛")
PIECES = (Piece("김밥", "NNG", 0, 2), Piece("맛", "NNG", 2, 1))


def heard(finder: WordFinder, tails: tuple[str, ...], *, times: int = 1) -> None:
    for tail in tails * times:
        finder.hear(WORD, tail, PIECES, PARTS)


def test_many_tails_make_a_word() -> None:
    finder = WordFinder(1_000_000)
    finder.when = 86_400.0
    heard(finder, TAILS[:VARIETY])
    finder.when = 172_800.0
    heard(finder, TAILS[:VARIETY])
    assert finder.take(10) == [Phrase(WORD, PARTS, 86_400.0, 172_800.0, 2 * VARIETY)]
    assert finder.take(10) == []


def test_few_tails_do_not() -> None:
    finder = WordFinder(1_000_000)
    heard(finder, TAILS[: VARIETY - 1], times=MENTIONS)
    assert finder.take(10) == []


def test_what_the_analyser_mostly_takes_for_one_word_is_none() -> None:
    finder = WordFinder(1_000_000)
    heard(finder, TAILS)
    for tail in TAILS:
        finder.hear(WORD, tail, PIECES[:1], (WORD,))
    assert finder.take(10) == []


def test_derivations_and_compounds_of_whole_words_are_none() -> None:
    finder = WordFinder(1_000_000)
    for pieces in (
        (Piece("가해", "NNG", 0, 2), Piece("자", "XSN", 2, 1)),
        (Piece("국민", "NNG", 0, 2), Piece("청원", "NNG", 2, 2)),
        (Piece("국민청원", "NNG", 0, 4),),
    ):
        word = "".join(piece.form for piece in pieces)
        for tail in TAILS:
            finder.hear(word, tail, pieces, tuple(piece.form for piece in pieces))
    assert finder.take(10) == []


@given(st.lists(st.tuples(st.text("가나다라", min_size=1, max_size=9), st.sampled_from(TAILS))))
def test_memory_is_bounded(read: list[tuple[str, str]]) -> None:
    finder = WordFinder(10_000)
    for head, tail in read:
        finder.hear(head, tail, PIECES, PARTS)
        assert finder.memory <= 10_000 + 1_000
    assert len(finder._heard) <= 12


def texts() -> list[str]:
    nouns = (WORD, *OTHERS)
    made = itertools.product(FRAMES, nouns, TAILS)
    return [frame.format(noun + tail) for frame, noun, tail in made]


def test_a_found_word_is_hot_swapped_and_told_as_a_phrase(
    document: Callable[..., Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TextConfig(tokenizer="kiwi").model_copy(update={"new_words_every": 100})
    pipeline = TextPipeline(config)

    def words(text: str) -> tuple[str, ...]:
        return pipeline.block([document(text)], [0.0]).words

    before = pipeline.digest
    assert words(f"{WORD}까지 좋다")[:2] == ("김밥", "맛")
    for text in texts():
        pipeline.words(text)

    def slow(*_: Any, **__: Any) -> None:
        pytest.fail("Kiwi would take seconds for a word")

    with monkeypatch.context() as patch:
        for name in ("__init__", "add_user_word", "add_pre_analyzed_word", "load_user_dictionary"):
            patch.setattr(kiwipiepy.Kiwi, name, slow)
        swapped = pipeline.block([document("이 말은 다르다")], [0.0])
    assert pipeline.report()["new_words"] == 1
    assert swapped.tokenizer_digest == pipeline.digest == before
    (told,) = swapped.phrases
    assert (told.word, told.parts) == (WORD, PARTS)
    assert told.since <= told.joined == swapped.published[0]
    assert told.earlier >= MENTIONS
    for tail in TAILS:
        assert words(f"{WORD}{tail} 좋다")[0] == WORD
    assert words("김밥 맛 좋다")[:2] == ("김밥", "맛")
    assert words("학교에서 좋다")[0] == "학교"


ENDINGS = ("는", "지", "고", "게", "면", "며", "니", "다", "려", "자")
VERBS = ("못하", "안하", "안되", "못먹")
"""An adverb and a stem, written together."""


def test_verbs_with_many_endings_are_no_new_words(document: Callable[..., Document]) -> None:
    pipeline = TextPipeline(
        TextConfig(tokenizer="kiwi").model_copy(update={"new_words_every": 100})
    )
    before = pipeline.digest
    for frame, verb, tail in itertools.product(FRAMES, VERBS, ENDINGS):
        pipeline.words(frame.format(verb + tail))
    pipeline.block([document("이 말은 다르다")], [0.0])
    assert pipeline.report()["new_words"] == 0
    assert pipeline.digest == before


def test_nothing_is_found_when_it_is_turned_off(document: Callable[..., Document]) -> None:
    pipeline = TextPipeline(
        TextConfig(tokenizer="kiwi", new_words=0).model_copy(update={"new_words_every": 100})
    )
    before = pipeline.digest
    for text in texts():
        pipeline.words(text)
    pipeline.block([document("이 말은 다르다")], [0.0])
    assert pipeline.report()["new_words"] == 0
    assert pipeline.digest == before
