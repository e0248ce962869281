"""Each habit of the simulated web, asked for alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest
from lxml import etree, html
from typer.testing import CliRunner

from embedding.cli import app
from yeoron_simweb.app import create_app
from yeoron_simweb.config import HABITS, SimwebConfig
from yeoron_simweb.corpus import from_records
from yeoron_simweb.habits import shown_time
from yeoron_simweb.testing import AT_ONCE, running

DOCUMENTS = [
    {
        "date": f"2020-02-{day:02d}T{hour:02d}:30:00+00:00",
        "title": f"{part} 소식 {day} {hour}",
        "text": f"{part} {day}일 {hour}시의 이야기가 온 마을에 퍼졌다.",
        "part": part,
    }
    for day in (26, 27, 28, 29)
    for hour in (0, 6, 12, 16, 20, 23)
    for part in ("politics", "society", "life", "euckr", "board", "comments")
]


@contextmanager
def web(*habits: str) -> Iterator[httpx.Client]:
    config = SimwebConfig(speed=AT_ONCE, autostart=True, page_items=10, habits=habits)
    with running(config, DOCUMENTS) as base, httpx.Client(base_url=base, timeout=120) as client:
        yield client


def articles(client: httpx.Client, part: str) -> list[dict[str, str | None]]:
    return [one for one in client.get("/control/articles").json() if one["part"] == part]


def test_without_habits_every_article_says_its_minute() -> None:
    with web() as client:
        found = client.get("/control/articles").json()
        assert client.get("/bbs/zboard.php").status_code == 404
    assert len(found) == len(DOCUMENTS)
    assert {one["exact"] for one in found} == {"minute"}
    assert {one["text"] for one in found} == {one["text"] for one in DOCUMENTS}
    assert {one["time"] for one in found} == {one["date"] for one in DOCUMENTS}


def test_every_link_of_the_old_board_has_another_session() -> None:
    numbers, sessions, url = [], set(), "/bbs/zboard.php?id=free"
    with web("old-board") as client:
        while url:
            answer = client.get(url)
            assert answer.headers["content-type"] == "text/html"
            page = html.fromstring(answer.content.decode("euc-kr"))
            for link in page.cssselect("tr td a[href^=view]"):
                query = parse_qs(urlsplit(link.get("href")).query)
                numbers += query["no"]
                sessions |= set(query["PHPSESSID"])
            address = f"/bbs/{link.get('href')}"
            assert client.get(address).status_code == 404, "the category was sent in UTF-8"
            address = address.replace("잡담", quote("잡담", encoding="euc-kr"))
            post = client.get(address).content.decode("euc-kr")
            following = page.cssselect("td.page b + a")
            url = f"/bbs/{following[0].get('href')}" if following else ""
    assert numbers == [str(number) for number in range(24, 0, -1)]
    assert len(sessions) == 3
    assert "날짜 : 20-02-26 09:30" in post


def test_sessions_are_the_same_for_the_same_seed() -> None:
    def listing() -> str:
        with web("old-board") as client:
            return client.get("/bbs/zboard.php?id=free").text

    assert listing() == listing()


def test_every_page_with_a_false_charset_can_be_read_by_its_bytes() -> None:
    lies = set()
    with web("false-charset") as client:
        for article in articles(client, "euckr"):
            answer = client.get(f"/news/a/{article['id']}")
            named = answer.headers["content-type"].partition("charset=")[2]
            try:
                true = "utf-8" if answer.content.decode("utf-8") else ""
            except UnicodeDecodeError:
                true = "euc-kr"
            assert str(article["text"]) in answer.content.decode(true)
            assert f'<meta charset="{named}">'.encode() in answer.content
            lies.add((true, named))
    assert lies == {("euc-kr", "utf-8"), ("euc-kr", "iso-8859-1"), ("utf-8", "euc-kr")}


def test_a_sitemap_of_pictures_says_no_times_and_nor_do_some_pages() -> None:
    with web("pictures") as client:
        root = etree.fromstring(client.get("/news/society/sitemap.xml").content)
        found = articles(client, "society")
        pages = {one["exact"]: client.get(f"/news/a/{one['id']}").text for one in found}
        assert b"news:title" in client.get("/news/life/sitemap.xml").content
    assert len(root.findall(".//{*}image/{*}loc")) == len(found)
    assert not root.findall(".//{*}lastmod")
    assert not re.search(r"20\d\d-\d\d", pages[None])
    assert re.search(r"20\d\d-\d\d", pages["minute"])


def test_an_empty_page_of_comments_leads_to_the_rest() -> None:
    sizes, ids, cursor = [], set(), ""
    with web("empty-page") as client:
        while cursor is not None:
            answer = client.get("/comments/api", params={"cursor": cursor}).json()
            sizes.append(len(answer["comments"]))
            ids |= {one["id"] for one in answer["comments"]}
            cursor = answer["next_cursor"]
    assert (sizes, len(ids)) == ([10, 0, 10, 4], 24)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2020-02-29T00:59:30", ("방금 전", "minute")),
        ("2020-02-29T00:30:00", ("30분 전", "minute")),
        ("2020-02-28T20:30:00", ("4시간 전", "hour")),
        ("2020-02-28T15:10:00", ("00:10", "minute")),
        ("2020-02-28T01:30:00", ("어제 10:30", "minute")),
        ("2020-02-27T14:00:00", ("20/02/27", "day")),
    ],
)
def test_times_are_shown_as_boards_show_them(written: str, shown: tuple[str, str]) -> None:
    event = datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp()
    assert shown_time(event, datetime(2020, 2, 29, 1, tzinfo=UTC).timestamp()) == shown


def test_lists_and_articles_of_life_say_relative_times_alone() -> None:
    with web("relative-times") as client:
        listing = html.fromstring(client.get("/news/life/list").text)
        found = articles(client, "life")
        pages = [client.get(f"/news/a/{one['id']}").text for one in found]
    shown = [time.text for time in listing.cssselect("li.headline time")]
    assert len(shown) == 10
    assert "3시간 전" in shown
    assert {one["exact"] for one in found} == {"minute", "hour", "day"}
    assert not any("2020-02" in page or "datetime=" in page for page in pages)


def test_a_template_names_one_canonical_address_for_all() -> None:
    with web("one-canonical") as client:
        found = set()
        for part in ("politics", "society", "life", "euckr"):
            page = html.fromstring(client.get(f"/news/a/{articles(client, part)[0]['id']}").content)
            found.add(page.xpath("string(//link[@rel='canonical']/@href)"))
    assert found == {f"{client.base_url}/news".replace("//news", "/news")}


@pytest.mark.parametrize(
    ("habits", "steps"),
    [
        (("frames",), ["PostView"]),
        (("refresh",), ["PostView"]),
        (("frames", "refresh"), ["PostFrame", "PostView"]),
    ],
)
def test_frames_and_refreshes_lead_to_the_article(
    habits: tuple[str, ...], steps: list[str]
) -> None:
    kinds = set()
    with web(*habits) as client:
        for article in articles(client, "politics"):
            url = f"/news/a/{article['id']}"
            for step in steps:
                page = client.get(url).text
                assert str(article["text"]) not in page
                kinds |= set(re.findall("<(frameset|iframe|meta http-equiv)", page))
                url = re.findall(r'(?:src="|URL=)(/news/[^"]+)"', page)[0]
                assert step in url
            assert str(article["text"]) in client.get(url).text
        assert client.get("/control/stats").json()["fetched"] == 24
    assert ("meta http-equiv" in kinds) == ("refresh" in habits)
    assert ({"frameset", "iframe"} <= kinds) == ("frames" in habits)


def test_all_asks_for_every_habit_and_an_unknown_one_is_refused() -> None:
    assert SimwebConfig(habits=("all",)).habits == tuple(HABITS)
    answer = CliRunner().invoke(app, ["simweb", "--habit", "wild", "--truth"])
    assert answer.exit_code != 0
    assert "wild" in str(answer.output) + str(answer.exception)


def test_every_habit_is_named_in_the_help_and_in_the_documentation() -> None:
    page = Path(__file__).parents[2] / "docs/concepts/crawling.md"
    rows = re.findall(
        r"^\| `([a-z-]+)` \|", page.read_text(encoding="utf-8").split("bad habits")[1], re.M
    )
    assert rows == list(HABITS)


def test_without_habits_nothing_of_them_is_served() -> None:
    config = SimwebConfig()
    plain = create_app(config, from_records(DOCUMENTS, config)).routes
    assert not any(getattr(route, "path", "").startswith("/bbs") for route in plain)


def test_a_flag_can_be_taken_back() -> None:
    answer = CliRunner().invoke(app, ["simweb", "--autostart", "--no-autostart", "--truth"])
    assert answer.exit_code == 0
