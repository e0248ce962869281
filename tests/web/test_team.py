"""Words and notes that a team shares, by the forms of the page."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest
from fastapi import Depends, Request
from unguarded import unguarded

from browsing import CHROMIUM, headed
from embedding.ask.answers import Answers
from embedding.show.team import TeamStore
from embedding.trends.history import WordHistory
from embedding.web.app import create_app

SAME = {"sec-fetch-site": "same-origin"}


@pytest.fixture
def shared(config, tmp_path):
    return config.model_copy(update={"team": tmp_path / "team.json"})


@pytest.fixture
def client(shared, client_of) -> httpx.Client:
    one = client_of(unguarded(shared))
    one.headers.update({"accept-language": "ko", **SAME})
    return one


def test_a_word_is_shared_and_taken_back(client, shared) -> None:
    form = {"word": "마스크", "who": "가람", "alert": "on", "next": "/word/마스크?from=2020-01-01"}
    answer = client.post("/team/watch", data=form)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/word/")
    (one,) = TeamStore(shared.team).read().words
    assert (one.word, one.alert, one.who) == ("마스크", True, "가람")
    page = client.get("/team").text
    assert ">마스크</a>" in page
    assert "가람" in page
    assert 'value="가람"' in client.get("/word/코로나").text, "the name is remembered"
    assert client.post("/team/unwatch", data={"word": "마스크"}).status_code == 303
    assert TeamStore(shared.team).read().words == ()


def test_a_word_without_a_line_takes_nobody_elses(client, monkeypatch) -> None:
    for word, who in (("마스크", "가람"), ("코로나", "나래")):
        client.post("/team/watch", data={"word": word, "who": who})
    history_of = Answers.history

    def history(answers: Answers, word: str) -> WordHistory:
        history = history_of(answers, word)
        return replace(history, points=()) if word == "마스크" else history

    monkeypatch.setattr(Answers, "history", history)
    page = client.get("/team").text
    row = page[page.index('role="rowheader"') :].partition("</tr>")[0]
    assert ">코로나</a>" in row
    assert 'dir="auto">나래<' in row
    assert ">마스크</a>" not in page


def test_a_report_by_mail_is_chosen_on_the_page(shared, client_of) -> None:
    one = client_of(unguarded(shared))
    one.headers.update({"accept-language": "en", **SAME})
    assert "the operator has to set notify.email_to" in one.get("/team").text
    one = client_of(unguarded(shared, "email", "webhook"))
    one.headers.update({"accept-language": "en", **SAME})
    assert 'action="/team/report"' in one.get("/team").text
    form = {"format": "html", "who": "<b>가람</b>", "next": "/team"}
    assert one.post("/team/report", data=form).headers["location"] == "/team"
    chosen = TeamStore(shared.team).read().report
    assert (chosen.format, chosen.language) == ("html", "en")
    page = one.get("/team").text
    assert "Each month’s report is mailed as HTML. Chosen by &lt;b&gt;가람&lt;/b&gt;." in page
    assert '<option value="html" selected>' in page
    assert one.post("/team/report", data={**form, "format": "exe"}).status_code == 400
    assert one.post("/team/report", data={**form, "format": "none"}).status_code == 303
    assert TeamStore(shared.team).read().report is None


def test_a_note_with_markup_is_a_text(client) -> None:
    text = "<script>alert(1)</script> {{7*7}}\n둘째 줄"
    for kind, about in (("word", "코로나"), ("window", "2020-03")):
        form = {"kind": kind, "about": about, "text": text, "who": "<b>가람</b>"}
        assert client.post("/team/note", data=form).status_code == 303
    for path in ("/word/코로나", "/", "/team"):
        page = client.get(path).text
        assert "&lt;script&gt;alert(1)&lt;/script&gt; {{7*7}}\n둘째 줄" in page
        assert "&lt;b&gt;가람&lt;/b&gt;" in page
        assert "<script>alert" not in page
        assert "<b>가람" not in page


def test_a_note_of_ten_megabytes_is_refused_in_one_sentence(client, shared) -> None:
    form = {"kind": "word", "about": "코로나", "text": "x" * 10_000_000, "who": "가람"}
    answer = client.post("/team/note", data=form)
    assert answer.status_code == 400
    assert "메모가 너무 깁니다. 2,000자까지" in answer.text
    assert not shared.team.exists()


@pytest.mark.parametrize("text", ["", "   ", "가" * 2_001])
def test_a_note_that_is_none_is_refused(client, shared, text) -> None:
    form = {"kind": "word", "about": "코로나", "text": text, "who": "가람"}
    assert client.post("/team/note", data=form).status_code == 400
    assert not shared.team.exists()


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "", "origin": "https://elsewhere.example"},
    ],
)
def test_a_form_of_another_site_changes_nothing(shared, client_of, headers) -> None:
    one = client_of(unguarded(shared))
    sent = {name: value for name, value in headers.items() if value}
    answer = one.post("/team/watch", data={"word": "가", "who": "나"}, headers=sent)
    assert answer.status_code == 403
    assert one.post("/team/watch", data={"word": "가", "who": "나"}).status_code == 403
    assert not shared.team.exists()


def test_the_login_names_who_wrote(shared, client_of) -> None:
    def named(request: Request) -> None:
        request.state.login_name = request.headers.get("x-login", "")
        request.state.role = "analyst"

    one = client_of(create_app(shared, dependencies=[Depends(named)]))
    one.headers.update({**SAME, "x-login": "garam"})
    form = {"kind": "word", "about": "코로나", "text": "하나", "who": "somebody else"}
    assert one.post("/team/note", data=form).status_code == 303
    (note,) = TeamStore(shared.team).read().notes
    assert note.who == "garam"
    assert 'name="who"' not in one.get("/word/코로나").text
    gone = {"id": note.id}
    one.post("/team/unnote", data=gone, headers={"x-login": "narae"})
    assert TeamStore(shared.team).read().notes == (note,)
    one.post("/team/unnote", data=gone)
    assert TeamStore(shared.team).read().notes == ()


def test_without_a_file_nothing_is_shared(config, client_of) -> None:
    one = client_of(unguarded(config))
    assert one.get("/team").status_code == 404
    assert "team" not in one.get("/word/코로나").text


def test_a_file_that_cannot_be_read_spoils_no_other_page(client, shared) -> None:
    shared.team.write_text("{cut")
    assert client.get("/word/코로나").status_code == 200
    assert client.get("/team").status_code == 404


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
async def test_a_reader_shares_a_word_and_a_note(shared, serve, page_of) -> None:
    address = serve(unguarded(shared))
    async with page_of(viewport={"width": 390, "height": 844}) as page:
        await page.goto(address + "/word/마스크")
        await page.fill("#who-watch", "가람")
        await page.check("[name=alert]")
        await page.get_by_role("button", name="함께 보는 관심어로 등록").click()
        await page.get_by_role("button", name="저장", exact=True).wait_for()
        await page.fill("#note-text", "<b>약국</b>마다 다르다")
        assert await page.input_value("#who-note") == "가람"
        await page.get_by_role("button", name="메모 남기기").click()
        await page.locator(".note-text").wait_for()
        await page.get_by_role("link", name="모두 보기").click()
        await headed(page, "팀 공유")
        assert "<b>약국</b>마다 다르다" in await page.locator(".notes").inner_text()
        assert "달마다" in await page.locator("table.watch").inner_text()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
