from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.text.normalise import normalise
from embedding.text.passages import eojeols, split_sentences
from embedding.text.pipeline import hangul_share, is_korean


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ＡＢＣ　１２３", "ABC 123"),
        (unicodedata.normalize("NFD", "한글 코로나"), "한글 코로나"),
        ("ㅋㅋㅋㅋㅋㅋ 웃겨ㅠㅠㅠㅠ", "ㅋㅋ 웃겨ㅠㅠ"),
        ("ㄱㅏ ㅎㅏ", "ㄱㅏ ㅎㅏ"),
        ("ﾊﾝｸﾞﾙ ﾡﾡ", "ハングル ㄱㄱ"),
        ("㈜여론", "(주)여론"),
        ("아\u200b버\ufeff지\u00ad", "아버지"),
        ("a\x00b\x07c", "abc"),
        ("가\r\n\r\n  나\u2028다\t라", "가\n나\n다 라"),
        ("010–1234−5678", "010-1234-5678"),
        ("٣٤٥", "345"),
        ("좋아👍🏽요", "좋아 👍 요"),
        ("🇰🇷만세", "🇰🇷 만세"),
        ("정말!!!!! 왜?????", "정말!! 왜??"),
        ("1\ufe0f\u20e3번", "1번"),
        ("0\r\u00b4", "0\n\u0301"),
        ("\ud800가\udfff", "가"),
        ("", ""),
    ],
)
def test_one_form(text: str, expected: str) -> None:
    assert normalise(text) == expected


def test_emoji_as_token_or_dropped() -> None:
    assert normalise("화나😡😡", emoji="token") == "화나 <emoji> <emoji>"
    assert normalise("화나😡😡", emoji="drop") == "화나"


def test_runs_are_cut_to_the_length_asked_for() -> None:
    assert normalise("ㅎㅎㅎㅎ", run_length=1) == "ㅎ"
    assert normalise("ㅎㅎㅎㅎ", run_length=3) == "ㅎㅎㅎ"
    assert normalise("1000000", run_length=2) == "1000000"


@given(st.text(st.characters(exclude_categories=[]), max_size=120))
def test_any_text_becomes_clean(text: str) -> None:
    clean = normalise(text)
    assert clean == clean.strip()
    assert "  " not in clean
    assert "\r" not in clean
    clean.encode()  # no lone surrogate is left


@given(st.text("가나다라ㅋㅠ abc123.!?\n（１）é👍", max_size=80))
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("안녕. 반가워! 왜?", ["안녕.", "반가워!", "왜?"]),
        ('그가 "가자." 했다. 끝', ['그가 "가자."', "했다.", "끝"]),
        ("첫 줄\n둘째 줄", ["첫 줄", "둘째 줄"]),
        ("3.5%와 a.b.c 는 한 문장", ["3.5%와 a.b.c 는 한 문장"]),
        ("\n \n", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


def test_overlong_eojeols_are_cut() -> None:
    assert eojeols("가나 다") == ["가나", "다"]
    assert [len(part) for part in eojeols("가" * 130 + " 나")] == [60, 60, 10, 1]


def test_language_by_script() -> None:
    assert hangul_share("한글 ab") == 0.5
    assert hangul_share("123 !!") == 0.0
    assert is_korean("LG와 SK의 OLED TV 특허 소송이 끝났다")
    assert not is_korean("The quick brown fox; 한")
    assert is_korean("Samsung Electronics QLED 8K 출시", language="ko")
    assert not is_korean("plain English", language="ko")
    assert not is_korean("日本語のテキスト")
