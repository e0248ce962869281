"""One contract for all tokenizers, then what each promises of its own."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from embedding.kernel.errors import ConfigError
from embedding.text import kiwi as kiwi_module
from embedding.text.config import TextConfig
from embedding.text.morphemes import MORPHEME_TAGS
from embedding.text.pipeline import ScriptTokenizer, WhitespaceTokenizer
from embedding.text.tokenizers import TOKENIZERS, Tokenizer, make_tokenizer
from generated import examples

MECAB = importlib.util.find_spec("mecab") is not None
needs_mecab = pytest.mark.skipif(not MECAB, reason="python-mecab-ko is not installed")
CONTRACT = [pytest.param(name, marks=needs_mecab if name == "mecab" else ()) for name in TOKENIZERS]
SENTENCES = [
    "코로나19 때문에 마스크를 사러 약국에 갔다.",
    "",
    "연락은 <phone> 로, 신고는 <email> 에 하세요!",
    "the quick brown fox, 그리고 日本語",
    "ㅋㅋ 정말 😡 화난다",
    ". . 1 2 3",
]


@pytest.fixture(params=CONTRACT)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return make_tokenizer(TextConfig(tokenizer=request.param))


def test_it_is_a_tokenizer(tokenizer: Tokenizer) -> None:
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer.name in TOKENIZERS
    assert len(tokenizer.digest) == 64


def test_one_list_a_sentence_of_plain_words(tokenizer: Tokenizer) -> None:
    result = tokenizer.tokenize(SENTENCES)
    assert len(result) == len(SENTENCES)
    assert result[1] == []
    for words in result:
        for word in words:
            assert word
            assert word == word.strip()
            assert " " not in word


def test_neutral_tokens_come_out_whole(tokenizer: Tokenizer) -> None:
    words = tokenizer.tokenize(SENTENCES)[2]
    assert "<phone>" in words
    assert "<email>" in words


def test_the_same_text_gives_the_same_words(tokenizer: Tokenizer) -> None:
    other = make_tokenizer(TextConfig(tokenizer=tokenizer.name))
    assert tokenizer.tokenize(SENTENCES) == other.tokenize(SENTENCES)
    assert tokenizer.digest == other.digest


def test_settings_change_the_digest(tokenizer: Tokenizer) -> None:
    other = make_tokenizer(TextConfig(tokenizer=tokenizer.name, min_length=2))
    assert other.digest != tokenizer.digest
    assert all(len(word) >= 2 for words in other.tokenize(SENTENCES) for word in words)


def test_long_debris_is_dropped(tokenizer: Tokenizer) -> None:
    for words in tokenizer.tokenize(["가" * 500, "x" * 500, "ㅋ" * 500]):
        assert all(len(word) <= 61 for word in words)


def test_units_are_counted(tokenizer: Tokenizer) -> None:
    before = tokenizer.morphemes
    tokenizer.tokenize(["처음 나오는 낱말들 셋셋"])
    assert tokenizer.morphemes > before


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=st.text("가나다한국ㅋㅠ <>phone.!?abcé日😡🇰🇷0١#@", max_size=60))
def test_any_sentence_is_accepted(tokenizer: Tokenizer, text: str) -> None:
    assert len(tokenizer.tokenize([text, text])) == 2


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("코로나가 무섭다", ["코로나", "무섭다"]),
        ("밥을 먹었습니다.", ["밥", "먹다"]),
        ("서울시장이 사과를 시작했다", ["서울시장", "사과", "시작"]),
        ("비정규직을 없애라", ["비정규직", "없애다"]),
        ("이 영화 꿀잼, 개꿀잼!", ["영화", "꿀잼", "개꿀잼"]),
        ("물 값", ["물", "값"]),
        ("신종 코로나바이러스 감염증이 퍼졌다", ["신종", "코로나", "바이러스", "감염증", "퍼지다"]),
        ("영리한 아이", ["영리", "아이"]),
        ("LPG 가격", ["lpg", "가격"]),
        ("#미투 운동", ["미투", "운동"]),
        ("도와주세요 ㅠㅠ", ["돕다", "ㅠㅠ"]),
        ("2019년 3월", []),
    ],
)
def test_content_words_of_korean(
    kiwi: Tokenizer, plain: Tokenizer, sentence: str, expected: list[str]
) -> None:
    for tokenizer in (plain, kiwi):
        words = tokenizer.tokenize([sentence])[0]
        assert words == expected


def test_the_cache_agrees_with_whole_sentences(kiwi: Tokenizer, plain: Tokenizer) -> None:
    rng = random.Random(3)
    who = ("대통령이", "국회의원들이", "시민은", "우리 아이가", "회사에서", "그 사람이", "정부는")
    what = ("마스크를", "법을", "국민의 뜻을", "일본산 제품을", "학교 폭력을", "집을", "청원을")
    does = ("사고 있는", "만들었습니다.", "지켜 주세요!", "보고 있다", "없애야 합니다", "알고 싶다")
    sentences = [
        " ".join((rng.choice(who), rng.choice(what), rng.choice(does), rng.choice(who), "좋다"))
        for _ in range(300)
    ]
    same = total = 0
    for cached, whole in zip(kiwi.tokenize(sentences), plain.tokenize(sentences), strict=True):
        same += (Counter(cached) & Counter(whole)).total()
        total += max(len(cached), len(whole))
    assert same / total >= 0.97
    assert kiwi.figures()["known_share"] > 0.5


def test_several_threads_give_the_same_words_as_one() -> None:
    config = TextConfig(cache_mb=0)
    one = make_tokenizer(config).tokenize(SENTENCES * 20)
    assert make_tokenizer(config.model_copy(update={"workers": 2})).tokenize(SENTENCES * 20) == one


def test_user_words_stay_whole_and_change_the_digest(plain: Tokenizer) -> None:
    config = TextConfig(tokenizer="kiwi", user_words=("가나다당",), cache_mb=0)
    tokenizer = make_tokenizer(config)
    assert tokenizer.tokenize(["가나다당이 이겼다"])[0][0] == "가나다당"
    assert tokenizer.digest != plain.digest


def test_the_analyser_is_shared() -> None:
    assert kiwi_module.shared_kiwi() is kiwi_module.shared_kiwi()


def test_tags_are_chosen(plain: Tokenizer) -> None:
    nouns = make_tokenizer(TextConfig(tokenizer="kiwi", keep_tags=("NNG",), cache_mb=0))
    assert nouns.tokenize(["예쁜 강아지가 빨리 달린다"]) == [["강아지"]]


def test_script_words_of_any_language() -> None:
    tokenizer = ScriptTokenizer(TextConfig())
    assert tokenizer.tokenize(["Don't stop—l’été well-known 2020!"]) == [
        ["don't", "stop", "l'été", "well-known"]
    ]
    assert tokenizer.tokenize(["東京都に"]) == [["東京", "京都", "都に"]]
    assert tokenizer.tokenize(["マスク買った ok"]) == [
        ["マス", "スク", "ク買", "買っ", "った", "ok"]
    ]
    assert tokenizer.tokenize(["中"]) == [["中"]]
    assert tokenizer.tokenize(["Привет, мир"]) == [["привет", "мир"]]
    assert tokenizer.tokenize(["한국어 문장"]) == [["한국어", "문장"]]


def test_whitespace_leaves_words_as_they_stand() -> None:
    assert WhitespaceTokenizer(TextConfig()).tokenize(["Aa  b.c 12"]) == [["Aa", "b.c", "12"]]


def test_mecab_asked_for_and_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mecab", None)
    with pytest.raises(ConfigError, match="python-mecab-ko"):
        make_tokenizer(TextConfig(tokenizer="mecab"))


@needs_mecab
@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("밥을 먹었습니다.", ["밥", "먹다"]),
        ("가까운 곳에 갔다", ["가깝다", "곳", "가다"]),
        ("도와주세요 ㅠㅠ", ["돕다", "ㅠㅠ"]),
        ("서울에서 사과를 시작했다", ["서울", "사과", "시작"]),
        ("물 값이 무섭다", ["물", "값", "무섭다"]),
        ("LPG 가격", ["lpg", "가격"]),
        ("정말 😡 화난다", ["정말", "😡", "화나다"]),
    ],
)
def test_mecab_gives_the_forms_that_kiwi_gives(
    plain: Tokenizer, sentence: str, expected: list[str]
) -> None:
    mecab = make_tokenizer(TextConfig(tokenizer="mecab"))
    assert mecab.tokenize([sentence]) == plain.tokenize([sentence]) == [expected]


@needs_mecab
def test_mecab_takes_no_user_words() -> None:
    with pytest.raises(ConfigError, match="user_words"):
        make_tokenizer(TextConfig(tokenizer="mecab", user_words=("가나다당",)))


def test_without_kiwi(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="Kiwi is not installed"):
        make_tokenizer(TextConfig(tokenizer="kiwi"))
    assert make_tokenizer(TextConfig()).name == "script"
    assert "by script instead" in caplog.text


def test_a_kiwi_that_cannot_load_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    monkeypatch.setattr(kiwi_module, "_shared", {})
    with pytest.raises(ConfigError, match="cannot be loaded"):
        kiwi_module.shared_kiwi()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tokenizer", "other"),
        ("keep_tags", ("NNG", "QQQ")),
        ("keep_tags", ()),
        ("user_words", (" ",)),
        ("cache_mb", -1),
        ("workers", 0),
        ("min_length", 0),
        ("unknown", 1),
    ],
)
def test_settings_that_cannot_work_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        TextConfig(**{field: value})


def test_all_tags_may_be_kept() -> None:
    assert TextConfig(keep_tags=MORPHEME_TAGS).keep_tags == MORPHEME_TAGS
