from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from embedding.crawl.fetcher import Fetcher, Request
from embedding.kernel.errors import FetchError


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


async def test_a_page_with_redirects_and_validators(site: Any, quick: Any, reply: Any) -> None:
    site.answers = {
        "/old": reply("", "301 Moved", location="/new#part"),
        "/new": reply(gzip.compress("여론".encode()), content_encoding="gzip", etag='"1"'),
    }
    async with fetching(quick(site.host)) as fetcher:
        answer = await fetcher.fetch(Request(f"{site.base}/old", etag='"0"'))
    assert (answer.url, answer.text(), answer.headers["etag"]) == (
        f"{site.base}/new",
        "여론",
        '"1"',
    )
    assert site.asked == ["/robots.txt", "/old", "/new"]
    assert [h.get("if-none-match") for h in site.headers] == [None, '"0"', None]
    assert all("yeoron" in h["user-agent"] for h in site.headers)


@pytest.mark.parametrize(
    ("status", "reason", "again"),
    [
        ("404 Gone", "http_4xx", False),
        ("403 No", "http_4xx", False),
        ("429 Slow", "http_4xx", True),
        ("500 Oops", "http_5xx", True),
    ],
)
async def test_bad_statuses(
    site: Any, quick: Any, reply: Any, status: str, reason: str, again: bool
) -> None:
    site.answers["/a"] = reply("", status)
    async with fetching(quick(site.host)) as fetcher:
        error = await refused(fetcher, f"{site.base}/a")
    assert error.reason == reason
    assert (error.retry_after is not None) is again
    assert f"{site.base}/a" in str(error)


@pytest.mark.parametrize("value", ["7", "date"])
async def test_retry_after_is_read(site: Any, quick: Any, reply: Any, value: str) -> None:
    seconds = 7.0
    if value == "date":
        seconds = 7200.0
        value = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + seconds))
    site.answers["/a"] = reply("", "503 Busy", retry_after=value)
    async with fetching(quick(site.host)) as fetcher:
        error = await refused(fetcher, f"{site.base}/a")
    assert error.retry_after == pytest.approx(seconds, rel=0.02)


async def test_redirects_in_a_circle_end(site: Any, quick: Any, reply: Any) -> None:
    site.answers["/a"] = reply("", "302 Found", location="/b")
    site.answers["/b"] = reply("", "302 Found", location="/a")
    for n in range(9):
        site.answers[f"/{n}"] = reply("", "302 Found", location=f"/{n + 1}")
    async with fetching(quick(site.host)) as fetcher:
        assert (await refused(fetcher, f"{site.base}/a")).reason == "redirect_loop"
        assert (await refused(fetcher, f"{site.base}/0")).reason == "redirect_loop"
    assert "/6" not in site.asked


@pytest.mark.parametrize(
    "target", ["file:///etc/hostname", "data:text/html,x", "javascript:1", "http://["]
)
async def test_redirects_to_no_web_address_end(
    site: Any, quick: Any, reply: Any, target: str
) -> None:
    site.answers["/a"] = reply("", "302 Found", location=target)
    async with fetching(quick(site.host)) as fetcher:
        assert (await refused(fetcher, f"{site.base}/a")).reason == "redirect_loop"


async def test_a_redirect_to_a_private_address_is_never_followed(
    site: Any, other_site: Any, quick: Any, reply: Any
) -> None:
    site.answers["/a"] = reply("", "302 Found", location=f"{other_site.base}/secret")
    port = other_site.host.partition(":")[2]
    disguises = ["2130706433", "0x7f.1", "localhost", "[::ffff:127.0.0.1]"]
    async with fetching(quick(site.host)) as fetcher:
        assert (await refused(fetcher, f"{site.base}/a")).reason == "private_address"
        for host in disguises:
            error = await refused(fetcher, f"http://{host}:{port}/secret")
            assert error.reason in ("private_address", "dns"), host
    assert other_site.asked == []


async def test_a_source_elsewhere_reaches_no_exception(
    site: Any, other_site: Any, quick: Any, reply: Any
) -> None:
    """Not by an address that it lists, and not by a redirect."""
    site.answers = {
        "/a": reply("a"),
        "/away": reply("", "302 Found", location=f"{other_site.base}/b"),
    }
    other_site.answers["/b"] = reply("b")
    async with fetching(quick(site.host, other_site.host)) as fetcher:
        stranger = {"source": "https://press.example/list"}
        assert (await refused(fetcher, f"{site.base}/a", **stranger)).reason == "private_address"
        assert (await refused(fetcher, f"{site.base}/away", **stranger)).reason == "private_address"
        assert site.asked == []
        own = Request(f"{site.base}/away", source=f"{site.base}/list")
        assert (await fetcher.fetch(own)).body == b"b"


async def test_a_name_that_turns_private_between_two_looks_gains_nothing(
    other_site: Any, quick: Any
) -> None:
    port = int(other_site.host.partition(":")[2])
    looks: list[str] = []

    async def rebinding(host: str, at: int) -> list[str]:
        looks.append(host)
        return ["127.0.0.1"] if len(looks) > 1 else ["192.0.2.1", "8.8.8.8"]

    async with fetching(quick(timeout=0.3), resolver=rebinding) as fetcher:
        for _ in range(3):
            await refused(fetcher, f"http://rebinding.example:{port}/secret")
    assert other_site.asked == []


async def test_a_body_that_never_ends_is_cut(site: Any, quick: Any) -> None:
    sent = 0

    async def endless(path: str, headers: dict[str, str], writer: Any) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n")
        while sent < 200_000_000:
            writer.write(bytes(65536))
            sent += 65536
            await writer.drain()

    site.answers["/big"] = endless
    async with fetching(quick(site.host, max_bytes=1_000_000)) as fetcher:
        assert (await refused(fetcher, f"{site.base}/big")).reason == "too_large"
    assert sent < 20_000_000


async def test_a_length_that_is_too_large_is_not_even_read(
    site: Any, quick: Any, reply: Any
) -> None:
    site.answers["/big"] = reply(b"x" * 10, content_length="200000000")
    async with fetching(quick(site.host, max_bytes=1_000_000)) as fetcher:
        assert (await refused(fetcher, f"{site.base}/big")).reason == "too_large"


async def test_hanging_and_dripping_servers_time_out(site: Any, quick: Any, hasty: Any) -> None:
    async def hang(path: str, headers: dict[str, str], writer: Any) -> None:
        await asyncio.Event().wait()

    async def drip(path: str, headers: dict[str, str], writer: Any) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.05)

    site.answers = {"/hang": hang, "/drip": drip}
    hasty("/hang", "/drip")
    async with fetching(quick(site.host)) as fetcher:
        for path in ("/hang", "/drip"):
            error = await refused(fetcher, f"{site.base}{path}")
            assert (error.reason, error.retry_after) == ("timeout", 0)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x16\x03\x01 this is not http\r\n\r\n", "protocol"),
        (b"", "protocol"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort", "protocol"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\x1f\x8bnot gzip", "bad_encoding"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 50_000 + b"\r\n", "protocol"),
    ],
)
async def test_broken_answers_have_a_name(site: Any, quick: Any, raw: bytes, reason: str) -> None:
    site.answers["/a"] = raw
    async with fetching(quick(site.host)) as fetcher:
        error = await refused(fetcher, f"{site.base}/a")
        # A site that breaks off may have closed a connection that was kept: it is asked again.
        assert (error.reason, error.retry_after) == (reason, 0 if reason == "protocol" else None)


async def test_a_closed_port_is_a_connect_error(quick: Any, unused: str) -> None:
    async with fetching(quick(unused)) as fetcher:
        # Its robots.txt cannot be read, so nothing may be fetched, but it may be tried later.
        error = await refused(fetcher, f"http://{unused}/a")
    assert error.reason == "robots_unreadable"
    assert error.retry_after is not None


@pytest.fixture
async def unused() -> str:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    return host


async def test_robots_holds_for_every_hop(
    site: Any, other_site: Any, quick: Any, reply: Any
) -> None:
    site.answers["/a"] = reply("", "302 Found", location=f"{other_site.base}/private/x")
    other_site.answers["/robots.txt"] = reply("User-agent: *\nDisallow: /private/\n")
    async with fetching(quick(site.host, other_site.host)) as fetcher:
        error = await refused(fetcher, f"{site.base}/a")
    assert (error.reason, error.retry_after) == ("robots", None)
    assert other_site.asked == ["/robots.txt"]


async def test_robots_is_read_over_redirects_and_only_half_a_megabyte(
    site: Any, quick: Any, reply: Any
) -> None:
    text = "User-agent: *\nDisallow: /no\n" + "# x\n" * 200_000 + "Disallow: /late\n"
    site.answers = {
        "/robots.txt": reply("", "301 Moved", location="/r.txt"),
        "/r.txt": reply(text),
        "/late": reply("in"),
    }
    async with fetching(quick(site.host)) as fetcher:
        assert (await refused(fetcher, f"{site.base}/no")).reason == "robots"
        assert (await fetcher.fetch(Request(f"{site.base}/late"))).body == b"in"


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-8-sig", "cp949"])
async def test_a_robots_txt_in_any_encoding_holds(
    site: Any, quick: Any, reply: Any, codec: str
) -> None:
    text = "# 로봇은 여기서 나가 주세요, 모두에게 알립니다\nUser-agent: *\nDisallow: /no\n"
    site.answers = {"/robots.txt": reply(text.encode(codec)), "/yes": reply("in")}
    async with fetching(quick(site.host)) as fetcher:
        assert (await refused(fetcher, f"{site.base}/no")).reason == "robots"
        assert (await fetcher.fetch(Request(f"{site.base}/yes"))).body == b"in"


async def test_rate_crawl_delay_and_concurrency_hold(site: Any, quick: Any, reply: Any) -> None:
    async def slow(path: str, headers: dict[str, str], writer: Any) -> None:
        await asyncio.sleep(0.05)
        writer.write(reply("x"))

    site.answers = {f"/{n}": slow for n in range(6)}
    site.answers["/robots.txt"] = reply("User-agent: *\nCrawl-delay: 0.1\n")
    async with fetching(quick(site.host, per_host=2)) as fetcher:
        began = time.monotonic()
        jobs = [fetcher.fetch(Request(f"{site.base}/{n}")) for n in range(6)]
        await asyncio.gather(*jobs)
    assert site.most_at_once <= 2
    # Without the delay six answers of 0.05 s, two at once, would take 0.15 s.
    assert time.monotonic() - began >= 5 * 0.1


async def test_cookies_go_to_their_host_only_and_none_are_kept(
    site: Any, other_site: Any, quick: Any, reply: Any
) -> None:
    site.answers["/a"] = reply("", "302 Found", location=f"{other_site.base}/b", set_cookie="x=1")
    site.answers["/c"] = reply("c")
    other_site.answers["/b"] = reply("b")
    async with fetching(quick(site.host, other_site.host)) as fetcher:
        mine = {"cookies": {"k": "v"}, "source": f"{site.base}/list"}
        await fetcher.fetch(Request(f"{site.base}/a", **mine))
        await fetcher.fetch(Request(f"{site.base}/c"))
    sent = dict(zip(site.asked, (h.get("cookie") for h in site.headers), strict=True))
    assert sent == {"/robots.txt": None, "/a": "k=v", "/c": None}
    assert all("cookie" not in h for h in other_site.headers)


async def test_a_failing_host_does_not_stall_another(
    site: Any, other_site: Any, quick: Any, reply: Any
) -> None:
    async def hang(path: str, headers: dict[str, str], writer: Any) -> None:
        hanging.append(path)
        both.set() if len(hanging) == 2 else None
        await asyncio.Event().wait()

    hanging: list[str] = []
    both = asyncio.Event()
    site.answers = {f"/{n}": hang for n in range(20)}
    other_site.answers["/b"] = reply("b")
    async with fetching(quick(site.host, other_site.host, concurrency=4)) as fetcher:
        stuck = [asyncio.create_task(fetcher.fetch(Request(f"{site.base}/{n}"))) for n in range(20)]
        await both.wait()
        await asyncio.wait_for(fetcher.fetch(Request(f"{other_site.base}/b")), 120.0)
        assert not any(task.done() for task in stuck)
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)


SIMWEB_FAULTS = [
    ("500", "http_5xx"),
    ("404", "http_4xx"),
    ("429?key=fetcher", "http_4xx"),
    ("hang", "timeout"),
    ("slow", "timeout"),
    ("redirect-loop", "redirect_loop"),
    ("redirect-private", "private_address"),
    ("redirect-metadata", "private_address"),
    ("redirect-file", "redirect_loop"),
    ("big", "too_large"),
    ("gzip-bomb", "too_large"),
    ("broken-gzip", "bad_encoding"),
    ("cut-off", "bad_encoding"),
]


@pytest.mark.parametrize(("fault", "reason"), SIMWEB_FAULTS)
async def test_every_fault_of_the_simulated_web_has_its_name(
    simweb: str, quick: Callable[..., Any], hasty: Any, fault: str, reason: str
) -> None:
    hasty("/fault/hang", "/fault/slow")
    async with fetching(quick(simweb.removeprefix("http://"))) as fetcher:
        assert (await refused(fetcher, f"{simweb}/fault/{fault}")).reason == reason
