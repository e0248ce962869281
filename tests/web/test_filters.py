"""What a reader asks to see alone stands in the address: time, sources, topic."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from starlette.datastructures import QueryParams

from embedding.kernel.errors import KeyedError
from embedding.web.filters import PageFilter


def of(query: str) -> PageFilter:
    return PageFilter.of(QueryParams(query))


def hrefs(page: str) -> list[str]:
    found = re.findall(r'href="(/[^"]*)"', page)
    apart = ("/static/", "/api/")
    return [one.replace("&amp;", "&") for one in found if not one.startswith(apart)]


def test_an_address_is_a_filter_and_a_filter_an_address() -> None:
    one = of("from=2020-01-01&to=2020-03-31&source=a&source=b&source=a&topic=%20x%20&w=y")
    assert one.pairs == (
        *(("from", "2020-01-01"), ("to", "2020-03-31")),
        *(("source", "a"), ("source", "b"), ("topic", "x")),
    )
    assert one
    assert not of("w=y&from=&source=&topic=")


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("from=yesterday", "filter_day"),
        ("to=2020-02-31", "filter_day"),
        ("from=2020-02-02&to=2020-02-01", "filter_order"),
        ("topic=" + "x" * 201, "filter_long"),
        ("&".join(f"source={n}" for n in range(51)), "filter_long"),
    ],
)
def test_what_cannot_be_used_is_named(query: str, key: str, client) -> None:
    with pytest.raises(KeyedError) as error:
        of(query)
    assert error.value.key == key
    for path in ("/", "/word/코로나", "/watch", "/compare?a=코로나&b=마스크"):
        answer = client.get(f"{path}{'&' if '?' in path else '?'}{query}")
        assert answer.status_code == 400
        assert "보여 드릴 수 없습니다" in answer.text


def test_a_window_is_shown_when_it_holds_a_day_of_the_choice() -> None:
    march = datetime(2020, 3, 1, tzinfo=UTC), datetime(2020, 4, 1, tzinfo=UTC)
    assert of("from=2020-03-31").covers(*march)
    assert not of("from=2020-04-01").covers(*march)
    assert of("to=2020-03-01").covers(*march)
    assert not of("to=2020-02-29").covers(*march)


QUERY = "from=2019-12-01&to=2020-03-31&source=뉴스&topic=코로나"


@pytest.mark.parametrize(
    "path", ["/", "/word/코로나", "/watch?w=마스크", "/compare?a=코로나&b=마스크", "/map?w=코로나"]
)
def test_every_link_to_a_page_keeps_the_choice(client, path) -> None:
    page = client.get(f"{path}{'&' if '?' in path else '?'}{QUERY}").text
    found = [one for one in hrefs(page) if one != "/feed.atom"]  # of all findings
    assert len(found) > 4
    assert [one for one in found if "from=2019-12-01" not in one or "topic=" not in one] == []
    for form in re.findall(r"<form[^>]*method=\"get\".*?</form>", page, re.DOTALL):
        assert 'name="from"' in form
        assert 'name="topic"' in form


def test_a_brief_shows_the_latest_window_and_the_words_of_the_choice(client) -> None:
    early = client.get("/?to=2020-03-31&topic=마스크").text
    assert 'class="word lead" href="/word/%EB%A7%88%EC%8A%A4%ED%81%AC?to=' in early
    assert "<title>2020년 3월" in early
    one = client.get("/?source=뉴스").text
    assert "3,000" in one
    assert "6,500" not in one


def test_a_choice_that_leaves_nothing_gets_a_sentence(client) -> None:
    for path in ("/", "/word/코로나", "/watch?w=마스크", "/compare?a=코로나&b=마스크"):
        page = client.get(f"{path}{'&' if '?' in path else '?'}from=2031-01-01")
        assert page.status_code == 200
        assert "고른 날짜에 읽은 글이 없습니다." in page.text
        assert "2019년 11월 1일부터 2020년 3월 31일까지" in page.text
        assert ">전체 보기</a>" in page.text
    nowhere = client.get("/?source=없는곳").text
    assert "고른 조건에 맞는 말이 없습니다" in nowhere
    assert "읽은 글 없음" in nowhere
    assert "뚜렷한 변화 없음" not in nowhere


def test_a_word_has_the_rates_of_the_sources_chosen(client) -> None:
    whole, one = (client.get(f"/word.csv?w=코로나{q}").text for q in ("", "&source=뉴스"))
    assert len(one.splitlines()) < len(whole.splitlines())
    assert "게시판" not in one
    assert len(client.get("/word.csv?w=코로나&from=2020-03-01").text.splitlines()) < len(
        whole.splitlines()
    )
    page = client.get("/word/코로나?source=뉴스&from=2020-02-01").text
    assert "news.example" in page
    assert "board.example" not in page


def test_a_window_outside_of_the_choice_leads_to_one_within(client, config) -> None:
    from embedding.snapshots.store import SnapshotStore

    first = SnapshotStore(config.snapshots).list()[0].id
    answer = client.get(f"/window/{first}?from=2020-03-01")
    assert (answer.status_code, answer.headers["location"]) == (303, "/?from=2020-03-01")
