from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import feedparser
import httpx
import pytest
import trafilatura
from lxml import etree, html

from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.testing import AT_ONCE, running

NAMES = {
    "s": "http://www.sitemaps.org/schemas/sitemap/0.9",
    "n": "http://www.google.com/schemas/sitemap-news/0.9",
}


def first_article(web: httpx.Client, section: str = "politics") -> str:
    return feedparser.parse(web.get(f"/news/{section}/rss.xml").content).entries[0].link


@pytest.mark.parametrize("kind", ["rss", "atom"])
@pytest.mark.parametrize("section", ["politics", "euckr"])
def test_feeds_parse_and_list_a_section_newest_first(
    web: httpx.Client, kind: str, section: str
) -> None:
    answer = web.get(f"/news/{section}/{kind}.xml")
    feed = feedparser.parse(answer.content, response_headers=dict(answer.headers))
    assert not feed.bozo
    assert len(feed.entries) == 45
    assert all(entry.title.startswith(f"{section} 소식") for entry in feed.entries)
    times = [entry.published_parsed for entry in feed.entries]
    assert times == sorted(times, reverse=True)
    assert "마스크" in feed.entries[0].summary


def test_the_feed_of_all_sections_holds_the_newest_of_each(web: httpx.Client) -> None:
    feed = feedparser.parse(web.get("/news/rss.xml").content)
    assert len(feed.entries) == 100
    assert {entry.title.split()[0] for entry in feed.entries} == {"politics", "society", "life"}
    times = [entry.published_parsed for entry in feed.entries]
    assert times == sorted(times, reverse=True)


def test_the_news_sitemap_is_reached_from_robots_and_names_titles_and_dates(
    web: httpx.Client,
) -> None:
    address = re.search(r"Sitemap: (\S+)", web.get("/robots.txt").text)
    assert address is not None
    index = etree.fromstring(web.get(address[1]).content)
    maps = index.xpath("//s:loc/text()", namespaces=NAMES)
    assert len(maps) == 4
    tree = etree.fromstring(web.get(maps[1]).content)
    assert len(tree.xpath("//s:url", namespaces=NAMES)) == 45
    title = tree.xpath("//n:title/text()", namespaces=NAMES)[0]
    assert title.startswith("society 소식")
    modified = tree.xpath("//s:lastmod/text()", namespaces=NAMES)[0]
    assert datetime.fromisoformat(modified).tzinfo is not None


def test_list_pages_lead_through_all_articles_once(web: httpx.Client) -> None:
    path, found = "/news/life/list", []
    while path:
        page = html.fromstring(web.get(path).text)
        found += page.xpath("//li[@class='headline']/a/@href")
        path = (page.xpath("//a[@rel='next']/@href") or [None])[0]
    assert len(found) == len(set(found)) == 45
    assert web.get("/news/life/list?page=4").status_code == 404
    assert web.get("/news/life/list?page=0").status_code == 404
    assert web.get("/news/cellar/list").status_code == 404


@pytest.mark.parametrize("section", ["politics", "euckr"])
def test_trafilatura_finds_the_article_and_nothing_else(web: httpx.Client, section: str) -> None:
    answer = web.get(first_article(web, section))
    found = json.loads(
        trafilatura.extract(answer.content, output_format="json", with_metadata=True) or "{}"
    )
    assert "마스크가 부족하다는" in found["text"]
    assert "똠방각하 & <뷁> 😀" in found["text"]
    assert "구독" not in found["text"]
    assert "무단전재" not in found["text"]
    assert found["title"].startswith(f"{section} 소식")
    assert found["date"].startswith("2020-02")
    assert found["source"] == str(answer.url)


def test_an_article_says_what_it_is(web: httpx.Client) -> None:
    link = first_article(web)
    page = html.fromstring(web.get(link).content)
    assert page.xpath("//link[@rel='canonical']/@href") == [link]
    when = page.xpath("//meta[@property='article:published_time']/@content")[0]
    about = json.loads(page.xpath("//script[@type='application/ld+json']/text()")[0])
    assert about["@type"] == "NewsArticle"
    assert about["datePublished"] == when
    assert datetime.fromisoformat(when).year == 2020


def test_the_euckr_section_says_its_charset_in_header_and_page(web: httpx.Client) -> None:
    answer = web.get(first_article(web, "euckr"))
    assert answer.headers["content-type"] == "text/html; charset=euc-kr"
    assert b'<meta charset="euc-kr">' in answer.content
    assert "부족하다".encode("euc-kr") in answer.content


def test_copies_of_an_article_have_the_same_canonical_address(web: httpx.Client) -> None:
    link = first_article(web)
    for other in (f"{link}/amp", f"{link}?utm_source=feed"):
        page = html.fromstring(web.get(other).content)
        assert page.xpath("//link[@rel='canonical']/@href") == [link]


@pytest.mark.parametrize(
    "path", ["/news/politics/rss.xml", "/news/atom.xml", "/news/society/sitemap.xml", "article"]
)
def test_what_did_not_change_answers_304(web: httpx.Client, path: str) -> None:
    path = first_article(web) if path == "article" else path
    first = web.get(path)
    modified = parsedate_to_datetime(first.headers["last-modified"])
    assert abs((datetime.now(UTC) - modified).total_seconds()) < 300, "wall time, not event time"
    for name, value in (
        ("If-None-Match", first.headers["etag"]),
        ("If-Modified-Since", first.headers["last-modified"]),
    ):
        again = web.get(path, headers={name: value})
        assert again.status_code == 304
        assert again.content == b""
        assert again.headers["etag"] == first.headers["etag"]
    assert web.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_an_unknown_article_is_not_found(web: httpx.Client) -> None:
    assert web.get("/news/a/0000000000000000").status_code == 404


def test_fault_rate_fails_a_share_of_articles_once() -> None:
    config = SimwebConfig(speed=AT_ONCE, autostart=True, fault_rate=0.5)
    documents = [{"date": "2020-02-01", "text": f"글 {n}", "part": "life"} for n in range(60)]
    with running(config, documents) as url, httpx.Client(base_url=url) as web:
        links = [e.link for e in feedparser.parse(web.get("/news/life/rss.xml").content).entries]
        first = [web.get(link).status_code for link in links]
        assert 15 < first.count(500) < 45
        assert first.count(200) == 60 - first.count(500)
        assert all(web.get(link).status_code == 200 for link in links)
        assert web.get("/control/stats").json()["fetched_again"] == first.count(200)
