"""Each promise of fetching that a site can notice, against real servers on loopback."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard

from embedding.crawl.fetcher import Fetcher, Request
from embedding.kernel.errors import FetchError
from http2_site import serving_http2

HANGUL = "똠방각하 펲시콜라, 뷁! 여론은 글에서 움직인다."


@asynccontextmanager
async def fetching(config: Any, **more: Any) -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(config, **more)
    try:
        yield fetcher
    finally:
        await fetcher.close()


async def refused(fetcher: Fetcher, url: str, **more: Any) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(Request(url, **more))
    return caught.value


@pytest.mark.parametrize("status", ["500 Oops", "503 Busy", "429 Slow down"])
async def test_a_site_whose_robots_fails_is_left_alone(
    site: Any, quick: Any, reply: Any, status: str
) -> None:
    site.answers = {"/robots.txt": reply("", status), "/a": reply("a")}
    async with fetching(quick(site.host)) as fetcher:
        for _ in range(3):
            error = await refused(fetcher, f"{site.base}/a")
            assert error.reason == "robots_unreadable"
            assert error.retry_after is not None
    assert site.asked == ["/robots.txt"]


@pytest.mark.parametrize("status", ["401 Who", "403 No", "404 None", "410 Gone"])
async def test_a_site_without_robots_may_be_read(
    site: Any, quick: Any, reply: Any, status: str
) -> None:
    site.answers = {"/robots.txt": reply("Disallow: /", status), "/a": reply("a")}
    async with fetching(quick(site.host)) as fetcher:
        assert (await fetcher.fetch(Request(f"{site.base}/a"))).body == b"a"


async def test_robots_may_begin_with_a_byte_order_mark(site: Any, quick: Any, reply: Any) -> None:
    text = b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /a\r\n"
    site.answers = {"/robots.txt": reply(text), "/a": reply("a")}
    async with fetching(quick(site.host)) as fetcher:
        assert (await refused(fetcher, f"{site.base}/a")).reason == "robots"


async def test_five_redirects_of_robots_are_followed(
    site: Any, other_site: Any, quick: Any, reply: Any
) -> None:
    site.answers = {"/robots.txt": reply("", "302 Found", location="/1"), "/a": reply("a")}
    for n in range(1, 4):
        site.answers[f"/{n}"] = reply("", "302 Found", location=f"/{n + 1}")
    site.answers["/4"] = reply("", "302 Found", location=f"{other_site.base}/rules")
    other_site.answers["/rules"] = reply("User-agent: *\nDisallow: /a\n")
    async with fetching(quick(site.host, other_site.host)) as fetcher:
        assert (await refused(fetcher, f"{site.base}/a")).reason == "robots"


async def test_robots_that_lead_to_a_private_address_are_asked_once(
    site: Any, other_site: Any, quick: Any, reply: Any
) -> None:
    site.answers["/robots.txt"] = reply("", "302 Found", location=f"{other_site.base}/rules")
    async with fetching(quick(site.host)) as fetcher:
        for _ in range(3):
            assert (await refused(fetcher, f"{site.base}/a")).reason == "private_address"
    assert site.asked == ["/robots.txt"]
    assert other_site.asked == []


async def test_a_page_does_not_wait_for_a_host_with_long_pauses(
    site: Any, quick: Any, reply: Any
) -> None:
    site.answers = {"/a": reply("a"), "/robots.txt": reply("User-agent: *\nCrawl-delay: 900\n")}
    async with fetching(quick(site.host)) as fetcher:
        await fetcher.fetch(Request(f"{site.base}/a", patience=20.0))
        error = await refused(fetcher, f"{site.base}/a", patience=20.0)
    assert error.reason == "host_busy"
    assert error.retry_after == pytest.approx(900, abs=100)


async def test_after_retry_after_the_whole_host_rests(site: Any, quick: Any, reply: Any) -> None:
    site.answers = {"/a": reply("", "429 Slow", retry_after="3600"), "/b": reply("b")}
    async with fetching(quick(site.host)) as fetcher:
        assert (await refused(fetcher, f"{site.base}/a")).retry_after == 3600
        error = await refused(fetcher, f"{site.base}/b")
    assert error.reason == "host_down"
    assert error.retry_after == pytest.approx(3600, abs=100)
    assert "/b" not in site.asked


async def test_nobody_can_make_us_wait_for_years(site: Any, quick: Any, reply: Any) -> None:
    site.answers["/a"] = reply("", "503 Busy", retry_after="9" * 30)
    async with fetching(quick(site.host)) as fetcher:
        assert (await refused(fetcher, f"{site.base}/a")).retry_after == 86400.0


async def test_modified_since_is_asked_and_304_is_an_answer(
    site: Any, quick: Any, reply: Any
) -> None:
    site.answers["/a"] = reply("", "304 Not Modified")
    since = "Sat, 01 Feb 2020 00:00:00 GMT"
    async with fetching(quick(site.host)) as fetcher:
        answer = await fetcher.fetch(Request(f"{site.base}/a", last_modified=since, etag='"x"'))
    assert (answer.status, answer.body) == (304, b"")
    assert site.headers[-1]["if-modified-since"] == since.lower()
    assert site.headers[-1]["if-none-match"] == '"x"'


PACKERS = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("encoding", list(PACKERS))
async def test_packed_pages_and_packed_bombs(
    site: Any, quick: Any, reply: Any, encoding: str
) -> None:
    pack = PACKERS[encoding]
    site.answers = {
        "/a": reply(pack(HANGUL.encode()), content_encoding=encoding),
        "/bomb": reply(pack(bytes(20_000_000)), content_encoding=encoding),
    }
    async with fetching(quick(site.host, max_bytes=100_000)) as fetcher:
        assert (await fetcher.fetch(Request(f"{site.base}/a"))).text() == HANGUL
        assert (await refused(fetcher, f"{site.base}/bomb")).reason == "too_large"
    assert all(encoding in headers["accept-encoding"] for headers in site.headers)


@pytest.mark.parametrize("really", ["euc-kr", "cp949", "utf-8"])
@pytest.mark.parametrize("header", ["", "; charset=euc-kr", "; charset=utf-8", "; charset=latin-1"])
@pytest.mark.parametrize("meta", ["", "utf-8", "euc-kr", "iso-8859-1", "klingon"])
async def test_pages_are_read_whatever_they_call_their_encoding(
    site: Any, quick: Any, reply: Any, really: str, header: str, meta: str
) -> None:
    text = (
        HANGUL
        if really != "euc-kr"
        else HANGUL.replace("똠", "또").replace("펲", "페").replace("뷁", "북")
    )
    page = f'<html><meta charset="{meta}"><p>{text * 4}</p></html>'
    site.answers["/a"] = reply(page.encode(really), content_type=f"text/html{header}")
    async with fetching(quick(site.host)) as fetcher:
        assert (await fetcher.fetch(Request(f"{site.base}/a"))).text() == page


async def test_the_user_agent_names_whom_to_ask(site: Any, quick: Any, reply: Any) -> None:
    site.answers["/a"] = reply("a")
    agent = "Yeoron/1 (+https://example.org/crawler)"
    async with fetching(quick(site.host, user_agent=agent)) as fetcher:
        await fetcher.fetch(Request(f"{site.base}/a"))
    assert [headers["user-agent"] for headers in site.headers] == [agent.lower()] * 2


async def test_pages_of_one_host_share_one_http2_connection(
    quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "loopback-cert.pem"))
    async with serving_http2(tmp_path) as site:
        async with fetching(quick(site.host, per_host=8)) as fetcher:
            jobs = [fetcher.fetch(Request(f"{site.base}/{n}")) for n in range(20)]
            answers = await asyncio.gather(*jobs)
        assert [answer.body.decode() for answer in answers] == [f"/{n}" for n in range(20)]
        assert site.asked.count("/robots.txt") == 1
        assert site.connections == 1


async def test_a_certificate_of_nobody_is_refused(quick: Any, tmp_path: Path) -> None:
    async with serving_http2(tmp_path) as site, fetching(quick(site.host)) as fetcher:
        error = await refused(fetcher, f"{site.base}/a")
    assert error.reason == "robots_unreadable"
    assert site.asked == []


async def test_a_source_with_a_proxy_asks_the_proxy(site: Any, quick: Any, reply: Any) -> None:
    site.answers["http://news.example/a"] = reply("by proxy")

    async def resolver(host: str, port: int) -> list[str]:
        if host == "news.example":
            raise OSError("only the proxy knows")
        return ["192.168.0.7"]

    async with fetching(quick(), resolver=resolver) as fetcher:
        answer = await fetcher.fetch(Request("http://news.example/a", proxy=site.base))
        private = "http://inside.example/a"
        assert (await refused(fetcher, private, proxy=site.base)).reason == "private_address"
    assert answer.body == b"by proxy"
    assert site.asked == ["http://news.example/robots.txt", "http://news.example/a"]


async def test_a_slow_name_server_holds_up_nobody_else(
    site: Any, quick: Any, reply: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names hang in threads of their own: as many as the shared pool has would stop all work."""
    import socket

    look_up, going = socket.getaddrinfo, True

    def hanging(host: Any, *rest: Any, **more: Any) -> Any:
        while host != "127.0.0.1" and going:
            time.sleep(0.02)
        return look_up(host, *rest, **more) if host == "127.0.0.1" else []

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    site.answers["/a"] = reply("a")
    async with fetching(quick(site.host)) as fetcher:
        stuck = [asyncio.create_task(refused(fetcher, f"http://h{n}.example/a")) for n in range(12)]
        await asyncio.sleep(0.1)
        try:
            answer = await asyncio.wait_for(fetcher.fetch(Request(f"{site.base}/a")), 60.0)
            assert await asyncio.wait_for(asyncio.to_thread(lambda: 1), 60.0) == 1
        finally:
            going = False
            await asyncio.gather(*stuck)
    assert answer.body == b"a"
