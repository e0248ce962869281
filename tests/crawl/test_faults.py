"""Whatever comes: counted under a named reason, never a crash, never a stall of other hosts."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawling import crawl
from embedding.commands.reasons import EVENTS, REASONS
from embedding.crawl.addresses import canonical, host_of, plain
from embedding.crawl.crawler import Crawler
from embedding.crawl.extract import read_page
from embedding.crawl.fetcher import Response
from embedding.crawl.frontier import Frontier
from embedding.crawl.robots import Robots
from embedding.crawl.staleness import Event
from embedding.kernel.clock import EventClock
from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, Found, ListedItem, ListingPage, Pseudonyms
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import make_adapter, read_listing
from generated import examples

TEXT = "시민들은 새로 문을 연 도서관을 찾아 책을 읽고 이야기를 나누었다. " * 6
PAGE = "<html><head><title>{0}</title></head><body><article><p>{1}</p></article></body></html>"
URL = "http://example.org/a"


def test_every_reason_is_explained() -> None:
    code = "".join(p.read_text() for room in ("crawl", "sources") for p in modules(room))
    written = set(re.findall(r"FetchError\(\s*\"([a-z_0-9]+)\"", code)) - {"extraction"}
    assert written <= REASONS.keys()


def test_every_alarm_is_explained() -> None:
    assert EVENTS.keys() == set(Event)


def modules(room: str) -> list[Path]:
    return sorted((Path(__file__).parents[2] / "embedding" / room).rglob("*.py"))


async def test_all_faults_of_the_simulated_web_at_once_and_a_good_host_beside_it(
    simweb: str, site: Any, quick: Any, reply: Any, hasty: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/fault/` links a page of each kind; each kind is polled as a listing, too."""
    # A host that fails this often would be left alone for minutes.
    monkeypatch.setattr("embedding.crawl.fetcher._COOL_DOWN", 0.01)
    monkeypatch.setattr("embedding.crawl.fetcher._LONGEST", 0.02)
    hasty("/fault/hang", "/fault/slow")
    good = [f"/a/{n}" for n in range(30)]
    site.answers["/list"] = reply("".join(f'<a href="{path}">글</a>' for path in good))
    site.answers |= {path: reply(PAGE.format(n, f"{n} {TEXT}{n}")) for n, path in enumerate(good)}
    kinds = [
        "500",
        "503",
        "404",
        "429",
        "hang",
        "slow",
        "redirect-loop",
        "redirect-private",
        "redirect-metadata",
        "redirect-file",
        "big",
        "gzip-bomb",
        "broken-gzip",
        "cut-off",
        "broken-html",
        "wrong-charset",
        "empty",
        "binary",
        "broken-feed",
    ]
    shared: dict[str, Any] = {"rate": 1000.0, "every": 60.0}
    sources = [
        SourceConfig(
            undated="fetched",
            name="good",
            kind="page",
            url=f"{site.base}/list",
            links="/a/",
            **shared,
        ),
        SourceConfig(
            undated="fetched",
            name="all",
            kind="page",
            url=f"{simweb}/fault/",
            links="/fault/",
            **shared,
        ),
    ]
    for way in ("feed", "comments"):
        sources += [
            SourceConfig(
                undated="fetched",
                name=f"{way}-{kind}",
                kind=way,
                url=f"{simweb}/fault/{kind}",
                **shared,
            )
            for kind in kinds
        ]
    host = simweb.removeprefix("http://")
    config = quick(host, site.host, attempts=1, per_host=8, max_bytes=300_000, near_window=0)
    frontier = Frontier("sqlite://")
    crawler = Crawler(sources, config, frontier)

    def through() -> bool:
        report = crawler.report()
        return report["good"]["documents"] == len(good) and all(
            row["pending"] == 0 for row in report.values()
        )

    await crawl(crawler, lambda _: through())
    report = crawler.report()
    frontier.close()
    assert report["good"]["documents"] == len(good)
    assert report["good"]["errors"] == {}
    for name, row in report.items():
        assert set(row["errors"]) <= REASONS.keys(), (name, row["errors"], row["last_error"])
        assert row["pending"] == 0, name
    assert {"http_5xx", "http_4xx", "timeout", "redirect_loop", "private_address", "too_large",
            "bad_encoding"} <= set(report["all"]["errors"])  # fmt: skip


words = st.text(
    st.characters(blacklist_categories=()) | st.sampled_from("<>&\"'/=;%#?:[]{}\\\0\ufffd가"),
    max_size=40,
)
links = st.one_of(
    words,
    st.sampled_from(
        ["http://", "http://[", "//[::1", "http://a:99999/", "javascript:1", "\ud800", "?", "#",
         "http://xn--/", "http://\u202e.kr/", "mailto:a@b", "http://a b/", "http://%00/", "../.."]
    ),
)  # fmt: skip
tags = st.sampled_from(
    ["p", "div", "article", "a", "base", "meta", "script", "title", "time", "table", "svg", "li",
     "link", "item", "entry", "url", "loc", "pubDate", "rss", "channel", "feed", "urlset",
     "sitemap", "sitemapindex", "lastmod", "guid", "updated", "frameset", "template", "math"]
)  # fmt: skip


JSON_LD = '<script type="application/ld+json">{{"datePublished": "{0}"}}</script>'


@st.composite
def markup(draw: Any) -> str:
    """HTML, RSS, Atom and sitemaps gone wrong in every way."""
    parts = []
    for _ in range(draw(st.integers(0, 12))):
        name, link, text = draw(tags), draw(links), draw(words)
        parts.append(
            draw(
                st.sampled_from(
                    [
                        f'<{name} href="{link}" datetime="{text}" content="{text}">{text}',
                        f"<{name}>{text}</{name}>",
                        f"</{name}>",
                        f"<{name}><![CDATA[{text}]]></{name}>",
                        f"<link>{link}</link>",
                        f"<!--{text}",
                        JSON_LD.format(text),
                        f"&{text};" * 3,
                    ]
                )
            )
        )
    head = draw(st.sampled_from(["", "<!DOCTYPE html>", '<?xml version="1.0" encoding="x"?>',
                                 '<rss version="2.0"><channel>', "<urlset>", "<sitemapindex>",
                                 '<feed xmlns="http://www.w3.org/2005/Atom">']))  # fmt: skip
    return head + "".join(parts)


bodies = st.one_of(
    markup().map(lambda text: text.encode("utf-8", "surrogatepass")),
    markup().map(lambda text: text.encode("cp949", "ignore")),
    markup().map(lambda text: text.encode("utf-16", "surrogatepass")),
    st.binary(max_size=300),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | words,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["comments", "id", "text", "next", "time"]), inner)
        ),
    ).map(lambda value: json.dumps(value).encode()),
)
types = st.sampled_from(
    ["text/html", "text/html; charset=euc-kr", "text/html; charset=undefined", "application/json",
     "text/html; charset=\"", "application/rss+xml; charset=utf-16", ""]
)  # fmt: skip
FUZZ = settings(
    deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow]
)


@FUZZ
@given(bodies, types)
def test_any_answer_is_a_page_or_a_named_failure(body: bytes, kind: str) -> None:
    failure, found = "", None
    try:
        found = read_page(body, kind, URL, "Asia/Seoul")
    except FetchError as error:
        failure = error.reason
    assert failure in REASONS or found is not None
    assert found is None or found.text
    assert found is None or found.canonical is None or host_of(found.canonical)


class OneAnswer:
    """A web in which each address gives the same answer."""

    def __init__(self, body: bytes, kind: str) -> None:
        self.answer = body, kind

    async def get(self, url: str, *, accept: str = "*/*") -> FetchedPage | None:
        body, kind = self.answer
        headers = {"content-type": kind}
        text = "" if body.startswith(b"\x1f\x8b") else Response(url, 200, headers, body).text()
        return FetchedPage(url, text, body, headers)

    async def listing(self, source: SourceConfig, page: FetchedPage) -> ListingPage:
        return read_listing(source, page)

    async def render(
        self, url: str, *, enough: Callable[[Sequence[Found]], bool]
    ) -> Sequence[Found]:
        raise AssertionError

    def all_known(self, keys: Sequence[str]) -> bool:
        return [canonical(key) for key in keys] == []

    def clock(self) -> EventClock:
        return EventClock()


@pytest.mark.parametrize("way", ["feed", "sitemap", "page", "comments"])
def test_any_listing_is_items_or_a_named_failure(way: Any) -> None:
    source = SourceConfig(
        undated="fetched", name="s", kind=way, url="http://example.org/list", pages=3
    )

    @FUZZ
    @given(bodies, types)
    def listing(body: bytes, kind: str) -> None:
        frontier = Frontier("sqlite://")

        async def poll() -> None:
            items: AsyncIterator[ListedItem] = make_adapter(source, Pseudonyms(b"k")).poll(
                OneAnswer(body, kind)
            )
            async for item in items:
                key = canonical(getattr(item, "url", "") or getattr(item, "key", ""))
                assert host_of(key)
                when = item.published_at.timestamp() if item.published_at else None
                frontier.discover("s", [(key, when)], 1.0)

        reason = "parse"
        try:
            asyncio.run(poll())
        except FetchError as error:
            reason = error.reason
        finally:
            frontier.close()
        assert reason in REASONS

    listing()


@FUZZ
@given(links)
def test_any_link_is_an_address_or_none(link: str) -> None:
    assert isinstance(canonical(link), str)
    assert isinstance(host_of(link), str)
    try:
        once = plain(link)
    except ValueError:
        return
    assert "/../" not in once.partition("?")[0]


@settings(max_examples=examples(60))
@given(st.text(max_size=300) | st.lists(st.sampled_from(
    ["User-agent: *", "Disallow: /", "Allow: /*$", "Crawl-delay: 1e400", "Crawl-delay: -1",
     "Request-rate: 0/0", "Request-rate: 1/999999999999", "Disallow: /%zz", "Disallow: " + "*" * 30,
     "Sitemap: http://[", "\ufeff", "user-agent:"]), max_size=9).map("\n".join))  # fmt: skip
def test_any_robots_gives_a_verdict(text: str) -> None:
    async def get(url: str, proxy: str | None) -> tuple[int, str]:
        return 200, text

    verdict = asyncio.run(Robots("yeoron", 60, get).verdict("http://example.org/a/b?c=d"))
    assert 0.0 <= verdict.crawl_delay <= 86400.0


async def test_a_site_of_generated_rubbish_never_stops_the_crawl(
    site: Any, other_site: Any, quick: Any, reply: Any
) -> None:
    """Broken answers of every kind over a real connection, a good host beside them."""
    rng = random.Random(7)
    pieces = [
        *(b"<html>", b"<p>", b"\xff\xfe", b"\x00", b"<a href='http://['>", b"&#x110000;"),
        *(b"<meta charset=", b"<!--", b"<script>", b"]]>", b'{"a":', b"</title"),
        *("<p>글".encode(), "도서관".encode("cp949")),
    ]
    heads = [
        b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: zstd\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n",
        b"HTTP/1.1 999 Odd\r\n\r\n",
        b"HTTP/1.1 204 None\r\n\r\n",
        b"HTTP/1.1 302 Found\r\n\r\n",
        b"HTTP/1.1 301 Moved\r\nlocation: \xff\xfe\r\n\r\n",
        b"HTTP/0.9 what",
        b"",
    ]
    paths = [f"/r/{n}" for n in range(60)]
    for n, path in enumerate(paths):
        body = b"".join(rng.choices(pieces, k=rng.randint(0, 40)))
        site.answers[path] = heads[n % len(heads)] + body
    site.answers["/list"] = reply("".join(f'<a href="{path}">글</a>' for path in paths))
    site.answers["/robots.txt"] = reply(b"\x00\xff" * 400 + b"\nUser-agent: *\nDisallow: /no\n")
    other_site.answers["/list"] = reply('<a href="/a/1">글</a>')
    other_site.answers["/a/1"] = reply(PAGE.format("글", TEXT))
    shared: dict[str, Any] = {"kind": "page", "rate": 1000.0, "every": 60.0}
    sources = [
        SourceConfig(undated="fetched", name="bad", url=f"{site.base}/list", **shared),
        SourceConfig(undated="fetched", name="good", url=f"{other_site.base}/list", **shared),
    ]
    frontier = Frontier("sqlite://")
    config = quick(site.host, other_site.host, attempts=1, per_host=4)
    crawler = Crawler(sources, config, frontier)

    def through() -> bool:
        return set(paths) <= set(site.asked) and all(
            row["pending"] == 0 for row in crawler.report().values()
        )

    await crawl(crawler, lambda _: through())
    report = crawler.report()
    frontier.close()
    assert set(paths) <= set(site.asked)
    assert report["good"]["documents"] == 1
    assert set(report["bad"]["errors"]) <= REASONS.keys(), report["bad"]
    assert report["bad"]["pending"] == 0
