"""Gold files."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedding.evaluation.gold import AnalogyGold, PairGold, read_gold
from embedding.kernel.errors import InputError
from generated import examples


def _read(tmp_path, text, name="gold.tsv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return read_gold(path)


@pytest.mark.parametrize(
    "text",
    [
        "사랑\t미움\t6.42\n왕\t왕\t10\n",
        "# 설명\n\n사랑\t미움\t6.42\r\n왕\t왕\t10.00",
        "Word 1\tWord 2\tHuman (mean)\n사랑\t미움\t6.42\n왕\t왕\t10",
        "word1,word2,score\n사랑,미움,6.42\n왕, 왕, 10\n",
        "사랑 미움 6.42\n왕   왕 1e1",
        "\ufeff사랑\t미움\t6.42\n왕\t왕\t10",
        unicodedata.normalize("NFD", "사랑\t미움\t6.42\n왕\t왕\t10"),
    ],
)
def test_pairs_in_all_their_shapes(tmp_path, text):
    gold = _read(tmp_path, text)
    assert gold == PairGold("gold", (("사랑", "미움", 6.42), ("왕", "왕", 10.0)))


def test_analogies(tmp_path):
    gold = _read(tmp_path, "# c\n: 남녀\n왕 여왕 남자 여자\n: 빈\n: 수도\n한국 서울 일본 도쿄\n")
    assert isinstance(gold, AnalogyGold)
    assert gold.sections == {
        "남녀": (("왕", "여왕", "남자", "여자"),),
        "빈": (),
        "수도": (("한국", "서울", "일본", "도쿄"),),
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("사랑\t미움\t1\n사랑\t미움\n", "gold.tsv:2: 2 columns; accepted are three columns"),
        ("사랑\t미움\tn\t6.4\n사랑\t미움\tn\t6.4\n", "gold.tsv:1: 4 columns"),
        ("사랑\t미움\t1\n사랑\t미움\t많이\n", "gold.tsv:2: no number in the third column"),
        ("사랑\t미움\tnan\n사랑\t미움\tnan\n", "gold.tsv:2: no number"),
        ("a\tb\tc\nd\te\tf\n", "gold.tsv:2: no number in the third column"),
        ("", "it holds no pair"),
        ("# nur\n", "it holds no pair"),
        (": 남녀\n", "it holds no question"),
        (": 남녀\n왕 여왕 남자\n", "gold.tsv:2: 3 columns; accepted are four words"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        _read(tmp_path, text)


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.tsv: there is no such file"):
        read_gold(tmp_path / "nowhere.tsv")


def test_a_folder_and_another_encoding(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_gold(tmp_path)
    with pytest.raises(InputError, match="not UTF-8"):
        _read(tmp_path, "사랑\t미움\t1\n", encoding="euc-kr")


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(st.text(max_size=80))
def test_any_text_is_read_or_refused_in_one_sentence(tmp_path, text):
    path = tmp_path / "any.txt"
    path.write_text(text.encode("utf-8", "ignore").decode(), encoding="utf-8")
    refusal = ""
    try:
        gold = read_gold(path)
    except InputError as error:
        refusal = str(error)
    if refusal:
        assert "\n" not in refusal
        return
    assert gold.pairs if isinstance(gold, PairGold) else any(gold.sections.values())
