"""What is asked wrongly gets one clear sentence in the reader's language, and changes nothing."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI
from lxml import html as parser
from unguarded import unguarded

from embedding.web.app import create_app
from embedding.web.tokens import AccessTokens

LANGUAGES = ("ko", "en")
NOTHING_FITS = {"ko": "고른 범위에 맞는 것이 없습니다", "en": "Nothing fits your choice"}


@pytest.fixture
def own(config, tmp_path):
    files = {"team": tmp_path / "team.json", "token_file": tmp_path / "token"}
    return config.model_copy(update={**files, "tokens": tmp_path / "tokens.sqlite"})


@pytest.fixture
def asking(client_of):
    """A client of an application, for a reader of a language."""

    def make(app: FastAPI, language: str) -> httpx.Client:
        one = client_of(app)
        one.headers.update({"accept-language": language, "sec-fetch-site": "same-origin"})
        return one

    return make


def said(answer: httpx.Response) -> list[str]:
    """The paragraphs of the page's content that tell the reader something."""
    tree = parser.fromstring(answer.text)
    found = tree.xpath("//main//p[not(ancestor::*[@data-tour or self::details or self::form])]")
    return [" ".join(one.text_content().split()) for one in found]


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("ko", "메모가 너무 깁니다. 2,000자까지 적을 수 있습니다."),
        ("en", "The note is too long: at most 2,000 characters."),
    ],
)
def test_a_note_of_ten_megabytes(own, asking, language, sentence) -> None:
    form = {"kind": "word", "about": "코로나", "text": "가" * 3_500_000, "who": "가람"}
    answer = asking(unguarded(own), language).post("/team/note", data=form)
    assert answer.status_code == 400
    assert sentence in said(answer)
    assert not own.team.exists()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_note_with_markup_is_shown_as_it_was_written(own, asking, language) -> None:
    text = "<img src=x onerror=alert(1)><script>alert(1)</script> {{7*7}} {% raw %}"
    one = asking(unguarded(own), language)
    form = {"kind": "word", "about": "코로나", "text": text, "who": "<i>가람</i>"}
    assert one.post("/team/note", data=form).status_code == 303
    for path in ("/word/코로나", "/team"):
        tree = parser.fromstring(one.get(path).text)
        assert text in tree.text_content()
        assert not tree.xpath("//main//script | //main//img | //main//i")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("query", ["source=없음", "topic=쀍쀍", "source=뉴스&topic=쀍쀍"])
def test_a_filter_that_leaves_no_word(own, asking, language, query) -> None:
    answer = asking(unguarded(own), language).get(f"/?{query}")
    assert answer.status_code == 200
    title = parser.fromstring(answer.text).xpath("string(//h1)").strip()
    assert title == NOTHING_FITS[language]
    sentence = {
        "ko": "2020년 3월에는 고른 조건에 맞는 말이 없습니다.",
        "en": "No word of March 2020 fits what you chose.",
    }
    lede = parser.fromstring(answer.text).xpath("string(//p[@class='lede'])")
    assert lede.startswith(sentence[language])
    # It is the choice that leaves nothing, so nothing is said of the window.
    assert not any(word in answer.text for word in ("no larger than usual", "평소 변동 범위"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_filter_that_leaves_no_window(own, asking, language) -> None:
    answer = asking(unguarded(own), language).get("/?from=2031-01-01")
    assert parser.fromstring(answer.text).xpath("string(//h1)").strip() == NOTHING_FITS[language]
    sentence = {
        "ko": "고른 날짜에 읽은 글이 없습니다.",
        "en": "Nothing was read between these days.",
    }
    assert any(one.startswith(sentence[language]) for one in said(answer))


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("ko", "에 폐기된 토큰입니다. 이 페이지를 운영하는 사람에게 새 토큰을 받으세요."),
        ("en", "Ask whoever runs this page for a new one."),
    ],
)
def test_a_token_that_was_withdrawn(own, asking, language, sentence) -> None:
    tokens = AccessTokens(own.tokens)
    token = tokens.make("a")
    one = asking(create_app(own), language)
    by_header = {"headers": {"Authorization": f"Bearer {token}"}}
    assert one.get("/api/v1/windows", **by_header).status_code == 200
    tokens.withdraw("a")
    for path, sent in (
        ("/api/v1/windows", by_header),
        ("/feed.atom", {"params": {"token": token}}),
    ):
        answer = one.get(path, **sent)
        assert answer.status_code == 401
        assert answer.json()["said"].endswith(sentence)
        assert answer.json()["error"].startswith("this token was withdrawn on ")


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("ko", "알려 준 토큰을 붙여 넣어도 됩니다."),
        ("en", "can leave the name empty and paste the token that `yeoron web` printed."),
    ],
)
def test_an_address_that_needs_a_login(own, asking, language, sentence) -> None:
    one = asking(create_app(own), language)
    answer = one.get("/word/코로나")
    assert answer.status_code == 303
    login = one.get(answer.headers["location"])
    assert login.status_code == 200
    assert any(one.endswith(sentence) for one in said(login) or [login.text])
    assert "코로나" not in parser.fromstring(login.text).text_content()
