"""Sources that fall silent, on real sites: the alarm is in the crawler's report."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from crawling import crawl
from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.sources.config import SourceConfig
from redisserver import redis_server

PAGE = "<html><title>글</title><article><p>{0}</p></article></html>"


@pytest.mark.parametrize(
    ("then", "event"),
    [
        ({"status": "403 Forbidden"}, "blocked"),
        ({"status": "500 Oops"}, "unreachable"),
        ({"body": "<html><body>new design</body></html>"}, "page_changed"),
    ],
)
async def test_a_listing_that_turns_bad_raises_its_event(
    site: Any, quick: Any, reply: Any, then: dict[str, str], event: str, caplog: Any
) -> None:
    site.answers["/list"] = reply('<a href="/a/1">글</a>')
    site.answers["/a/1"] = reply(PAGE.format("시민의 의견을 담은 글입니다. " * 8))
    source = SourceConfig(
        undated="fetched", name="s", kind="page", url=f"{site.base}/list", links="/a/", every=0.02
    )
    source = source.model_copy(update={"rate": 1000.0})
    frontier = Frontier("sqlite://")
    crawler = Crawler([source], quick(site.host), frontier)

    def turned() -> bool:
        row = crawler.report()["s"]
        if row["documents"] == 1:
            site.answers["/list"] = reply(**then)
        return row["alarm"] is not None

    await crawl(crawler, lambda _: turned())
    row = crawler.report()["s"]
    frontier.close()
    assert row["alarm"] is not None
    assert row["alarm"]["event"] == event
    assert row["alarms"] == {event: 1}
    assert f"source s: alarm {event}" in caplog.text


async def test_pages_that_lose_their_text_raise_page_changed(
    site: Any, quick: Any, reply: Any
) -> None:
    links = "".join(f'<a href="/a/{n}">글</a>' for n in range(25))
    site.answers["/list"] = reply(links)
    site.answers |= {f"/a/{n}": reply("<html><body></body></html>") for n in range(25)}
    source = SourceConfig(
        undated="fetched", name="s", kind="page", url=f"{site.base}/list", links="/a/", every=9
    )
    source = source.model_copy(update={"rate": 1000.0})
    frontier = Frontier("sqlite://")
    crawler = Crawler([source], quick(site.host), frontier)
    await crawl(crawler, lambda _: crawler.report()["s"]["alarm"] is not None)
    alarm = crawler.report()["s"]["alarm"]
    frontier.close()
    assert alarm is not None
    assert alarm["event"] == "page_changed"
    assert "empty" in alarm["sentence"]


async def test_a_listing_whose_host_rests_is_no_fault_of_its_own(
    site: Any, quick: Any, reply: Any
) -> None:
    site.answers["/busy"] = reply("", "429 Slow", retry_after="3600")
    site.answers["/list"] = reply('<a href="/a/1">글</a>')
    sources = [
        SourceConfig(
            undated="fetched",
            name=name,
            kind="page",
            url=f"{site.base}/{name}",
            links="/a/",
            every=0.02,
        )
        for name in ("busy", "list")
    ]
    frontier = Frontier("sqlite://")
    crawler = Crawler(sources, quick(site.host), frontier)

    def resting() -> bool:
        poll = crawler.report()["list"]["poll"]
        return poll is not None and (poll["next_poll_s"] or 0) > 1000

    await crawl(crawler, lambda _: resting())
    report = crawler.report()
    frontier.close()
    assert "http_4xx" in report["busy"]["errors"]
    assert "host_down" not in report["busy"]["errors"]
    assert report["list"]["errors"].keys() <= {"http_4xx"}


async def test_a_stream_that_stops_is_unreachable(quick: Any, tmp_path: Path) -> None:
    from redis import Redis

    with ExitStack() as stack:
        url = stack.enter_context(redis_server(tmp_path))
        with Redis.from_url(url) as client:
            client.xadd("posts", {"text": "스트림의 글", "date": "2020-02-03"})
        source = SourceConfig(
            undated="fetched", name="s", kind="redis", url=url, stream="posts", every=0.02
        )
        frontier = Frontier("sqlite://")
        crawler = Crawler([source], quick(), frontier)

        def stopped() -> bool:
            row = crawler.report()["s"]
            if row["documents"] == 1:
                stack.close()
            return row["alarm"] is not None

        await crawl(crawler, lambda _: stopped())
        row = crawler.report()["s"]
        frontier.close()
    assert row["documents"] == 1
    assert row["alarm"] is not None
    assert row["alarm"]["event"] == "unreachable"
    assert "no connection" in row["last_error"]
