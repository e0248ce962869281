"""Texts of every part of Unicode through every tokenizer: words, whatever stands in them."""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from embedding.text.config import TextConfig
from embedding.text.kiwi import shared_kiwi
from embedding.text.morphemes import MORPHEME_TAGS
from embedding.text.normalise import normalise
from embedding.text.passages import eojeols, split_sentences
from embedding.text.pipeline import TextPipeline
from embedding.text.tokenizers import TOKENIZERS
from generated import examples

TOUCHES_BEFORE = 1
TOUCHES_BEHIND = 2

MECAB = importlib.util.find_spec("mecab") is not None
needs_mecab = pytest.mark.skipif(not MECAB, reason="python-mecab-ko is not installed")
NAMES = [pytest.param(name, marks=needs_mecab if name == "mecab" else ()) for name in TOKENIZERS]
BLANKS = " \u00a0\u1680\u2003\u202f\u205f\u3000\u2800\u3164\uffa0\u115f\t\n\x0b\x1c\x85\u2028"
ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u180e\u061c\x00\ud800\udfff"
MARKS = "\u0301\u0316\u20dd\u20e3\u302e\u302f\u3099\u05bf\ufe0f:-/.,~"
OLD_HANGUL = "\u1113\u119e\u11eb\ua960\ud7b0\ud7cb\u1100\u1161\u11a8"
EMOJI = "👍🏽👨‍👩‍👧🇰🇷😡♥"
FIGURES = st.from_regex(r"[0-9]{1,4}[:/.\-~ ] [0-9]{1,3}([:/.\-] ?[0-9]{1,3})?", fullmatch=True)
LETTERS = st.text("가나는을이다오전회의abㅋㅠ日の", min_size=1, max_size=8)
PIECE = (
    FIGURES
    | LETTERS
    | st.text(BLANKS + ZERO_WIDTH + MARKS + OLD_HANGUL + EMOJI, min_size=1, max_size=6)
    | st.characters(exclude_categories=["Cn", "Co"])
)
TEXT = st.lists(PIECE, min_size=1, max_size=12).map("".join)
SPANNING = ["오전 10: 30 열린다", "1- 0", "9- 11 테러", "1/ 2", "2020- 03- 05 발표", "가 \u2800 나"]


def assigned(step: int) -> Iterator[str]:
    """Texts of 128 code points that follow each other, each `step`-th of them, in contexts."""
    for first in range(0, 0x110000, 128):
        chosen = [chr(code) for code in range(first, first + 128, step)]
        chosen = [c for c in chosen if unicodedata.category(c) not in ("Cn", "Co")]
        if chosen:
            yield " ".join(f"{c} 가{c}는 {c}1: 2" for c in chosen) + "".join(chosen)


@cache
def made(name: str, **options: object) -> TextPipeline:
    return TextPipeline(TextConfig(tokenizer=name, **options))


def check(pipeline: TextPipeline, text: str) -> None:
    """No exception, and words that are words."""
    for words in pipeline.words(text):
        for word in words:
            assert word, text
            assert not re.search(r"\s", word), (text, word)


@pytest.mark.parametrize("name", NAMES)
def test_every_part_of_unicode_is_read(name: str) -> None:
    for text in assigned(32):
        check(made(name), text)


@settings(max_examples=examples(60), deadline=None)
@given(text=TEXT)
@pytest.mark.parametrize("name", NAMES)
def test_blanks_marks_and_figures_are_read(name: str, text: str) -> None:
    check(made(name), text)


@settings(
    max_examples=examples(80),
    deadline=None,
    suppress_health_check=[HealthCheck.differing_executors],
)
@given(text=TEXT)
@example(text=SPANNING[0])
@example(text=SPANNING[5])
def test_pieces_are_parts_of_their_eojeol(text: str) -> None:
    tokenizer = made("kiwi", cache_mb=0, keep_tags=MORPHEME_TAGS).tokenizer
    for sentence in split_sentences(normalise(text)):
        parts = eojeols(sentence)
        joined = " ".join(parts)
        tokens = shared_kiwi().tokenize(joined)
        found = tokenizer._assign(parts, joined, tokens)  # type: ignore[attr-defined]
        assert len(found) == len(parts)
        for part, analysed in zip(parts, found, strict=True):
            assert len(analysed.words) == len(analysed.tokens)
            at = 0
            for piece in analysed.reading().pieces:
                assert 0 <= piece.edges <= TOUCHES_BEFORE | TOUCHES_BEHIND
                assert piece.word
                assert not re.search(r"\s", piece.word)
                if piece.surface:
                    at = part.lower().index(piece.surface, at) + len(piece.surface)


@pytest.mark.parametrize("text", SPANNING)
def test_what_kiwi_reads_over_a_blank_is_two_words(text: str) -> None:
    pipeline = made("kiwi", keep_tags=MORPHEME_TAGS)
    written = text.replace("\u2800", " ").split()
    words = "".join(word for words in pipeline.words(text, "ko") for word in words)
    assert all(part in words for part in written if part[0].isdigit())
    assert not re.search(r"\s", words)
    assert pipeline.words(text, "ko") == made("kiwi", cache_mb=0, keep_tags=MORPHEME_TAGS).words(
        text, "ko"
    )


def test_a_blank_braille_cell_is_a_blank() -> None:
    assert normalise("가\u2800나 \u2800 다\n\u2800라") == "가 나 다\n라"
    assert made("whitespace").words("가\u2800나") == [["가", "나"]]


def test_a_letter_keeps_thirty_marks() -> None:
    """Python takes time that grows with the square of their number: for a million, an hour."""
    assert len(normalise("가" + "\u0301\u0316" * 1_000 + "나")) == 32
