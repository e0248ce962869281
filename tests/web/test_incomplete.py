"""A month without its use: the page says so, of it and of the next month, and so does a handout."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lxml import html as parser
from unguarded import unguarded

from embedding.trends.report import build_report
from embedding.trends.rows import RANKINGS, Note
from embedding.web import brief
from embedding.web.config import WebConfig
from embedding.web.handout.writing import HandoutMaker
from embedding.web.text import PageText
from incomplete import JANUARY, incomplete_store

FALSE_REASON = {
    "ko": "여러 글쓴이의 문서에 충분히 쓰인 말이 없어",
    "en": "enough documents of different",
}
TRUE_REASON = {"ko": "낱말의 쓰임을 다 보내기 전에 마감되어", "en": "had sent how words were used"}
UNJUDGED = {"ko": "의미 변화를 판단할 수 없습니다", "en": "Whether any word changed in meaning"}
MONTH = {"ko": "2020년 1월", "en": "January 2020"}


@pytest.fixture(scope="module")
def broken(planted, tmp_path_factory):
    return incomplete_store(tmp_path_factory.mktemp("broken") / "snapshots", planted)


@pytest.fixture(scope="module")
def page(broken, client_of):
    return client_of(unguarded(WebConfig(snapshots=broken.uri)), follow_redirects=True)


def read(page, name: str, language: str) -> str:
    """The page of a window, whose report a program waits for."""
    assert page.get(f"/api/report?id={name}").status_code == 200
    answer = page.get(f"/window/{name}", headers={"accept-language": language})
    assert answer.status_code == 200, answer.text[:500]
    return answer.text


@pytest.mark.parametrize("language", ["ko", "en"])
def test_the_months_own_page_gives_the_true_reason(page, broken, language) -> None:
    text = read(page, broken.list()[JANUARY].id, language)
    assert TRUE_REASON[language] in text
    assert MONTH[language] in text
    assert "yeoron snapshot amend 2020-01" in text
    assert FALSE_REASON[language] not in text


@pytest.mark.parametrize("language", ["ko", "en"])
def test_the_next_months_page_names_it(page, broken, language) -> None:
    text = read(page, broken.list()[-1].id, language)
    (note,) = [
        one.text_content()
        for one in parser.fromstring(text).find_class("note")
        if MONTH[language] in one.text_content()
    ]
    assert "yeoron snapshot amend 2020-01" in note


@pytest.mark.parametrize("language", ["ko", "en"])
def test_a_handout_of_either_month_says_it(broken, language) -> None:
    maker = HandoutMaker(WebConfig(snapshots=broken.uri), "https://page.example/", language)
    own = maker.attachment("2020-01", "html").content.decode()
    assert TRUE_REASON[language] in own
    assert FALSE_REASON[language] not in own
    following = maker.attachment("2020-02", "html").content.decode()
    assert MONTH[language] in following
    assert "yeoron snapshot amend 2020-01" in following


@pytest.mark.parametrize("language", ["ko", "en"])
def test_where_no_word_is_clear_the_headline_does_not_say_that_none_changed(
    broken, language
) -> None:
    t, ids = PageText(language), [ref.id for ref in broken.list()]
    empty = dict.fromkeys((*RANKINGS, "stories"), ())
    own, following = (
        replace(build_report(broken, ids[at]), **empty) for at in (JANUARY, JANUARY + 1)
    )
    assert UNJUDGED[language] in brief.quiet_headline(own, t)
    assert brief.lede(own, t) == []
    assert brief.quiet_headline(following, t) == t("nothing_moved")
    assert t("lede_none") in brief.lede(following, t)


@pytest.mark.parametrize(
    ("language", "many", "unknown"),
    [("ko", "문서 1,204건을", "문서 일부를"), ("en", "1,204 documents", "some documents")],
)
def test_documents_are_counted_where_their_number_is_known(language, many, unknown) -> None:
    t = PageText(language)
    for documents, said in ((1_204, many), (0, unknown)):
        (sentence,) = brief.say([Note("document_gone", "", documents=documents)], "2020-01", t)
        assert said in sentence
        assert MONTH[language] in sentence
