"""Listings are read in processes of their own, within a limit of time."""

from __future__ import annotations

import asyncio
import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawling import crawl
from embedding.crawl.crawler import Crawler
from embedding.crawl.extract_worker import ask_listing
from embedding.crawl.extractor import Extractor, shortened
from embedding.crawl.frontier import Frontier
from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, ListingPage
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import read_listing
from waiting import until

BASE = "https://example.org"
FEED = (
    "<rss version='2.0'><channel><title>t</title>{}<item><link>/a</link><title>\ud55c\uae00</title>"
    "<pubDate>Mon, 03 Feb 2020 00:00:00 GMT</pubDate></item><item><link>/b</link></item>"
    "</channel></rss>"
)
MAP = (
    "<urlset><url><loc>/a</loc><lastmod>2020-02-03</lastmod></url><url><loc>/b</loc></url></urlset>"
)
INDEX = "<sitemapindex><sitemap><loc>/1.xml</loc></sitemap></sitemapindex>"
LINKS = (
    "<html><body><a href='/a'>one</a><a href='/b'>two</a><a class=n href='/2'>2</a></body></html>"
)
BOARD = "<ul><li><a href='/a?id=자유'>one</a><i>어제 10:30</i></li></ul>"
NOW = datetime(2020, 2, 3, 12, tzinfo=UTC)
SLOW = FEED.format(f"<description>{'&lt;a ' * 600_000}</description>")
"""feedparser takes minutes for it."""


def page(text: str | bytes) -> FetchedPage:
    raw = text if isinstance(text, bytes) else text.encode()
    return FetchedPage(f"{BASE}/list", "" if isinstance(text, bytes) else text, raw, {})


def source(kind: str, **more: Any) -> SourceConfig:
    return SourceConfig(undated="fetched", name="s", kind=kind, url=f"{BASE}/list", **more)


@pytest.mark.parametrize(
    ("of", "answer"),
    [
        (source("feed"), page(FEED.format(""))),
        (
            source("page", items="li", time="i"),
            replace(page(BOARD), read_at=NOW, encoding="cp949"),
        ),
        (source("feed", max_items=1, links="b"), page(FEED.format(""))),
        (source("sitemap"), page(MAP)),
        (source("sitemap"), page(gzip.compress(MAP.encode()))),
        (source("sitemap"), page(INDEX)),
        (source("page", next="a.n", links="/[ab]$"), page(LINKS)),
    ],
)
async def test_a_process_reads_a_listing_as_a_thread_does(
    of: SourceConfig, answer: FetchedPage
) -> None:
    found: list[ListingPage] = []
    for processes in (0, 1):
        extractor = Extractor(processes, 20.0, 50_000)
        try:
            found.append(await extractor.listing(of, answer))
        finally:
            await extractor.close()
    assert found == [read_listing(of, answer)] * 2
    assert found[0].references or found[0].children


def test_relative_times_of_a_listing_mean_nothing_without_the_time_of_reading() -> None:
    board = source("page", items="li", time="i", timezone="Asia/Seoul")
    times = [
        read_listing(board, replace(page(BOARD), read_at=now)).references[0].published_at
        for now in (NOW, None)
    ]
    assert times == [datetime(2020, 2, 2, 1, 30, tzinfo=UTC), None]


def test_letters_of_a_link_are_asked_for_in_the_encoding_of_the_page() -> None:
    links = [
        read_listing(source("page"), replace(page(BOARD), encoding=name)).references[0].url
        for name in ("cp949", "utf-8")
    ]
    assert links == [f"{BASE}/a?id=%C0%DA%C0%AF", f"{BASE}/a?id=%EC%9E%90%EC%9C%A0"]


async def test_a_listing_that_takes_too_long_is_killed_by_itself() -> None:
    extractor = Extractor(1, 60.0, 50_000)
    try:
        await extractor.listing(source("feed"), page(FEED.format("")))
        (process,) = extractor.children
        pid, extractor._limit = process.pid, 0.5
        with pytest.raises(FetchError, match="took longer") as failed:
            await extractor.listing(source("feed"), page(SLOW))
        assert failed.value.reason == "parse"
        until(lambda: not psutil.pid_exists(pid), "the process goes on")
        extractor._limit = 60.0
        found = await extractor.listing(source("sitemap"), page(MAP))
        assert [one.url for one in found.references] == [f"{BASE}/a", f"{BASE}/b"]
        with pytest.raises(FetchError, match="not an RSS"):
            await extractor.listing(source("feed"), page("<html></html>"))
    finally:
        await extractor.close()


def test_a_process_is_told_no_secret_of_a_source() -> None:
    secret = source("feed", cookies={"session": "SECRET"}, proxy="http://u:SECRET@proxy.example:1")
    told, _ = ask_listing(secret, page(FEED.format("")))
    assert "SECRET" not in json.dumps(told)


@pytest.mark.parametrize("kind", ["feed", "sitemap", "page"])
async def test_a_crawler_reads_its_listings_there(
    site: Any, quick: Any, reply: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """What reads them in the crawler's own process has no limit, and must not be used."""
    text = {"feed": FEED.format(""), "sitemap": MAP, "page": LINKS}[kind]
    site.answers = {"/list": reply(text, content_type="application/xml")}

    def never(*_: object) -> None:
        raise AssertionError("a listing was read in the crawler's own process")

    for place in ("feed.read_feed", "sitemap.read_sitemap", "page.read_links"):
        monkeypatch.setattr(f"embedding.sources.{place}", never)
    config = quick(site.host, extract_processes=1)
    crawler = Crawler(
        [
            SourceConfig(
                undated="fetched",
                name="s",
                kind=kind,
                url=f"{site.base}/list",
                every=0.1,
                links="/[ab]$",
            )
        ],
        config,
        frontier := Frontier("sqlite://"),
    )

    await crawl(crawler, lambda _: crawler.report()["s"]["listed"], acknowledge=False)
    assert crawler.report()["s"]["listed"] == 2
    assert "internal" not in crawler.report()["s"]["errors"]
    frontier.close()


async def test_long_documents_are_cut_at_the_end_of_a_sentence(
    site: Any, quick: Any, reply: Any
) -> None:
    sentence = "이 글은 아주 길어서 다 읽지 않는다. "
    text, comment = sentence * 200, "낱말 " * 1_000
    site.answers = {
        "/list": reply("<a href='/long'>x</a>"),
        "/long": reply(f"<html><body><article><p>{text}</p></article></body></html>"),
        "/comments": reply(
            json.dumps({"comments": [{"id": "1", "text": comment}]}),
            content_type="application/json",
        ),
    }
    sources = [
        SourceConfig(undated="fetched", name="p", kind="page", url=f"{site.base}/list"),
        SourceConfig(undated="fetched", name="c", kind="comments", url=f"{site.base}/comments"),
    ]
    crawler = Crawler(sources, quick(site.host, max_chars=1_000), Frontier("sqlite://"))
    found = {}
    async with asyncio.timeout(120):
        async for document in crawler.documents():
            found[document.source] = document.text
            if len(found) == 2:
                crawler.stop()
    assert 800 < len(found["p"]) <= 1_000
    assert found["p"].endswith("않는다.")
    assert found["c"] == ("낱말 " * 333).rstrip()


@given(st.text(alphabet='가 .\n"a?', max_size=300), st.integers(1, 120))
def test_a_cut_is_a_beginning_and_splits_no_word_that_it_need_not(text: str, most: int) -> None:
    cut = shortened(text, most)
    assert len(cut) <= most
    assert text.startswith(cut)
    if len(text) <= most:
        assert cut == text
    elif text[len(cut) : len(cut) + 1].strip() and text[len(cut) - 1 : len(cut)] not in '.?"\n':
        assert not any(each.isspace() for each in text[int(most * 0.8) : most + 1])
