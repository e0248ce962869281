"""The whole room against the simulated web and against sites that misbehave."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from browsing import CHROMIUM
from crawling import crawl
from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.crawl.services import read_clock
from embedding.kernel.clock import EventClock
from embedding.kernel.errors import ConfigError
from embedding.kernel.records import Document
from embedding.sources.config import SourceConfig, load_sources
from yeoron_simweb.sources import sources_toml

PAGE = (
    "<html><head><title>{0}</title></head><body><article><h1>{0}</h1><p>{1}</p></article>"
    "</body></html>"
)


def words(n: int) -> str:
    return " ".join(f"낱말{n}{k}은 시민의 의견을 담는다." for k in range(12))


@pytest.fixture
def frontier(tmp_path: Path) -> Iterator[Frontier]:
    found = Frontier(f"sqlite:///{tmp_path}/frontier.db")
    yield found
    found.close()


def listing(site: Any, reply: Any, *paths: str, **answers: Any) -> SourceConfig:
    """A page source over `site` that lists `paths`, the newest first."""
    site.answers["/list"] = reply("".join(f'<a href="{path}">글</a>' for path in paths))
    return SourceConfig(
        undated="fetched",
        name="s",
        kind="page",
        url=f"{site.base}/list",
        links="/a/|/fault",
        every=0.1,
        rate=1000,
    )


async def test_every_kind_of_source_of_the_simulated_web(
    simweb: str, quick: Any, frontier: Frontier, tmp_path: Path
) -> None:
    file = tmp_path / "sources.toml"
    file.write_text(sources_toml(simweb, rendered=False), encoding="utf-8")
    sources = [
        source.model_copy(update={"rate": 1000.0, "max_items": 15, "pages": 1})
        for source in load_sources(file)
    ]
    config = quick(
        simweb.removeprefix("http://"), replay_clock_url=f"{simweb}/clock.json", per_host=8
    )
    crawler = Crawler(sources, config, frontier)
    names = {source.name for source in sources}

    def enough(found: list[Document]) -> bool:
        count = Counter(document.source for document in found)
        return all(count[name] >= 10 for name in names)

    found = await crawl(crawler, enough)
    report = crawler.report()
    json.dumps(report)
    assert {document.source for document in found} == names
    assert len({document.url for document in found}) == len(found)
    assert all(2000 < document.published_at.year < 2023 for document in found)
    assert all("�" not in document.text for document in found)
    assert all(report[name]["documents"] >= 10 for name in names)
    assert all(document.author for document in found if document.source == "sim-comments")
    assert crawler.clock().knots
    async with httpx.AsyncClient() as client:
        stats = (await client.get(f"{simweb}/control/stats")).text
    assert '"/private' not in stats


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
async def test_the_board_of_the_simulated_web(
    simweb: str, quick: Any, frontier: Frontier, tmp_path: Path
) -> None:
    file = tmp_path / "sources.toml"
    file.write_text(sources_toml(simweb), encoding="utf-8")
    board = [s for s in load_sources(file) if s.kind == "rendered"]
    board = [s.model_copy(update={"rate": 1000.0, "pages": 2}) for s in board]
    crawler = Crawler(board, quick(simweb.removeprefix("http://")), frontier)
    found = await crawl(crawler, lambda found: len(found) >= 30)
    assert len(found) >= 30
    times = [document.published_at for document in found]
    assert times == sorted(times)


async def test_oldest_first_with_named_failures_and_no_stall(
    site: Any, other_site: Any, quick: Any, hasty: Any, reply: Any, frontier: Frontier
) -> None:
    async def hang(path: str, headers: dict[str, str], writer: Any) -> None:
        await asyncio.Event().wait()

    bad = {
        "/a/gone": (reply("", "404 Gone"), "http_4xx"),
        "/a/oops": (reply("", "500 Oops"), "http_5xx"),
        "/a/loop": (reply("", "302 Found", location="/a/loop"), "redirect_loop"),
        "/a/secret": (reply("", "302 Found", location=other_site.base), "private_address"),
        "/a/gzip": (reply(b"\x1f\x8bno gzip", content_encoding="gzip"), "bad_encoding"),
        "/a/image": (reply(b"\x89PNG", content_type="image/png"), "not_html"),
        "/a/empty": (reply("<html><body></body></html>"), "empty"),
        "/a/large": (reply("x" * 300_000), "too_large"),
        "/a/private/x": (reply("secret"), "robots"),
        "/a/hang": (hang, "timeout"),
    }
    good = [f"/a/{n}" for n in range(5)]
    source = listing(site, reply, *bad, *reversed(good))
    site.answers |= {path: answer for path, (answer, _) in bad.items()}
    site.answers |= {path: reply(PAGE.format(path, words(n))) for n, path in enumerate(good)}
    site.answers["/robots.txt"] = reply("User-agent: *\nDisallow: /a/private/\n")
    config = quick(site.host, max_bytes=200_000, attempts=2, per_host=1)
    hasty("/a/hang")
    crawler = Crawler([source], config, frontier)
    hung = f"{site.base}/a/hang"
    await crawl(
        crawler, lambda _: frontier.known([hung]) == 1 and frontier.backlog(["s"])["s"] == 0
    )
    report = crawler.report()["s"]
    assert report["documents"] == len(good)
    assert {reason for _, reason in bad.values()} == set(report["errors"])
    assert report["errors"]["http_5xx"] == 2
    assert report["last_error"]
    assert "낱말" not in json.dumps(report, ensure_ascii=False)
    assert report["pending"] == 0
    assert other_site.asked == []
    assert "/a/private/x" not in site.asked
    assert [path for path in site.asked if path in good] == good


async def test_one_article_under_many_addresses_is_one_document(
    simweb: str, quick: Any, frontier: Frontier
) -> None:
    source = SourceConfig(
        undated="fetched",
        name="s",
        kind="page",
        url=f"{simweb}/fault/many",
        links="many/1",
        every=1,
        rate=1000,
    )
    crawler = Crawler([source], quick(simweb.removeprefix("http://")), frontier)
    found = await crawl(
        crawler,
        lambda _: (
            bool(crawler._runners)
            and frontier.known([f"{simweb}/fault/many/1"]) > 0
            and frontier.backlog(["s"])["s"] == 0
        ),
    )
    assert len(found) == 1
    assert crawler.report()["s"]["errors"].get("duplicate", 0) >= 1


async def test_near_duplicates_are_left_out_but_short_texts_never(
    site: Any, quick: Any, reply: Any, frontier: Frontier
) -> None:
    long = words(1) + " " + words(2)
    source = listing(site, reply, "/a/1", "/a/2", "/a/3", "/a/4")
    site.answers["/a/1"] = reply(PAGE.format("하나", long))
    site.answers["/a/2"] = reply(PAGE.format("하나", long + " (끝)"))
    site.answers["/a/3"] = site.answers["/a/4"] = reply(
        PAGE.format("짧다", "좋은 글입니다. 고맙습니다.")
    )
    crawler = Crawler([source], quick(site.host, per_host=1, min_chars=5), frontier)

    def all_read(_found: list[Document]) -> bool:
        told = crawler.report().get("s")
        return told is not None and told["documents"] + told["duplicates"] >= 4

    found = await crawl(crawler, all_read)
    assert len(found) == 3
    assert crawler.report()["s"]["errors"] == {"near_duplicate": 1}


async def test_an_unchanged_listing_is_asked_for_politely(
    site: Any, quick: Any, reply: Any, frontier: Frontier
) -> None:
    source = listing(site, reply)
    body = reply("<a href='/a/1'>글</a>", etag='"7"')

    async def conditional(path: str, headers: dict[str, str], writer: Any) -> None:
        same = headers.get("if-none-match") == '"7"'
        writer.write(reply("", "304 Not Modified") if same else body)

    site.answers["/list"] = conditional
    site.answers["/a/1"] = reply(PAGE.format("글", words(1)))
    crawler = Crawler([source], quick(site.host), frontier)
    await crawl(crawler, lambda _: site.asked.count("/list") >= 3)
    asked = [
        h.get("if-none-match")
        for p, h in zip(site.asked, site.headers, strict=True)
        if p == "/list"
    ]
    assert asked[:3] == [None, '"7"', '"7"']
    assert crawler.report()["s"]["errors"] == {}


async def test_a_restart_loses_nothing_and_repeats_nothing(
    site: Any, quick: Any, reply: Any, tmp_path: Path
) -> None:
    paths = [f"/a/{n}" for n in range(8)]
    source = listing(site, reply, *paths)
    comments = [{"id": n, "text": f"댓글 {n}", "time": 1580670306 + n} for n in range(6)]
    site.answers["/api"] = reply(json.dumps({"comments": comments}))
    talk = SourceConfig(
        undated="fetched", name="c", kind="comments", url=f"{site.base}/api", every=0.1, rate=1000
    )
    site.answers |= {path: reply(PAGE.format(path, words(n))) for n, path in enumerate(paths)}
    learnt: list[str] = []
    for incarnation in range(3):
        frontier = Frontier(f"sqlite:///{tmp_path}/f.db")
        crawler = Crawler([source, talk], quick(site.host), frontier)
        found: list[Document] = []
        async for document in crawler.documents():
            found.append(document)
            if incarnation == 2 or len(found) <= 4:
                crawler.acknowledge([document.url])
                learnt.append(document.url)
            if (incarnation < 2 and len(found) == 6) or len(set(learnt)) == 14:
                crawler.stop()
        frontier.close()
    assert sorted(learnt) == sorted(set(learnt))
    assert len(learnt) == 14


async def test_a_lost_comment_that_is_gone_does_not_stay_pending(
    site: Any, quick: Any, reply: Any, tmp_path: Path
) -> None:
    def answer(ids: Sequence[int]) -> bytes:
        return reply(json.dumps({"comments": [{"id": n, "text": "글", "time": 1} for n in ids]}))

    talk = SourceConfig(
        undated="fetched", name="c", kind="comments", url=f"{site.base}/api", every=0.1, rate=1000
    )
    for ids in ([1, 2], [2, 3]):
        frontier = Frontier(f"sqlite:///{tmp_path}/f.db")
        site.answers["/api"] = answer(ids)
        crawler = Crawler([talk], quick(site.host), frontier)
        await crawl(crawler, lambda found: len(found) == 2, acknowledge=ids == [2, 3])
        pending = frontier.backlog(["c"])["c"]
        frontier.close()
    assert pending == 0


async def test_fetching_pauses_while_nobody_reads(
    site: Any, quick: Any, reply: Any, frontier: Frontier
) -> None:
    paths = [f"/a/{n}" for n in range(40)]
    source = listing(site, reply, *paths)
    site.answers |= {path: reply(PAGE.format(path, words(n))) for n, path in enumerate(paths)}
    crawler = Crawler([source], quick(site.host, queue=3, per_host=2), frontier)
    stream = crawler.documents()
    await anext(stream)
    await asyncio.sleep(1.0)
    fetched = len([path for path in site.asked if path.startswith("/a/")])
    assert fetched <= 1 + 3 + 2
    for _ in range(10):
        await anext(stream)
    assert len([path for path in site.asked if path.startswith("/a/")]) > fetched
    await asyncio.wait_for(stream.aclose(), 60.0)


@pytest.mark.parametrize("status", ["200 OK", "404 Gone"])
async def test_a_source_is_pending_until_its_first_poll_is_over(
    site: Any, quick: Any, reply: Any, frontier: Frontier, status: str
) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def late(path: str, headers: dict[str, str], writer: Any) -> None:
        asked.set()
        await answer.wait()
        writer.write(reply("", status))

    site.answers["/list"] = late
    source = SourceConfig(
        undated="fetched", name="s", kind="page", url=f"{site.base}/list", every=3600
    )
    crawler = Crawler([source], quick(site.host), frontier)
    seen: list[object] = []

    async def look() -> None:
        await asked.wait()
        seen.append(crawler.report()["s"]["pending"])
        answer.set()

    looking = asyncio.create_task(look())
    await crawl(crawler, lambda _: bool(seen) and crawler.report()["s"]["pending"] == 0)
    await looking
    assert seen == [1]
    assert crawler.report()["s"]["pending"] == 0


async def test_stop_is_quick_while_everything_hangs(
    site: Any, quick: Any, frontier: Frontier
) -> None:
    async def hang(path: str, headers: dict[str, str], writer: Any) -> None:
        crawler.stop()
        await asyncio.Event().wait()

    site.answers = {"/list": hang, "/robots.txt": hang}
    source = SourceConfig(undated="fetched", name="s", kind="page", url=f"{site.base}/list")
    crawler = Crawler([source], quick(site.host, timeout=3600), frontier)
    async with asyncio.timeout(60.0):
        assert [document async for document in crawler.documents()] == []


async def test_without_a_browser_only_the_rendered_source_is_skipped(
    site: Any, quick: Any, reply: Any, frontier: Frontier
) -> None:
    source = listing(site, reply, "/a/1")
    site.answers["/a/1"] = reply(PAGE.format("글", words(1)))
    board = SourceConfig(
        undated="fetched", name="b", kind="rendered", url=f"{site.base}/list", rate=1000
    )
    config = quick(site.host, browser=Path("/nowhere/chromium"))
    crawler = Crawler([source, board], config, frontier)
    found = await crawl(
        crawler,
        lambda found: len(found) == 1 and "no_browser" in crawler.report()["b"]["errors"],
    )
    assert [document.source for document in found] == ["s"]
    assert "/nowhere/chromium" in crawler.report()["b"]["last_error"]


async def test_no_text_reaches_the_frontier_or_the_log(
    site: Any, quick: Any, reply: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    secret = "이문장은아무데도남지않는다"
    source = listing(site, reply, "/a/1")
    site.answers["/a/1"] = reply(PAGE.format(secret, f"{secret} {words(1)}"))
    frontier = Frontier(f"sqlite:///{tmp_path}/f.db")
    crawler = Crawler([source], quick(site.host), frontier)
    (document,) = await crawl(crawler, lambda found: len(found) == 1)
    assert secret in document.text
    frontier.close()
    files = [path.read_bytes() for path in tmp_path.iterdir()]  # noqa: ASYNC240
    assert files
    assert not any(secret.encode() in data for data in files)
    assert secret not in caplog.text


def test_two_sources_of_one_name_are_refused(quick: Any, frontier: Frontier) -> None:
    source = SourceConfig(undated="fetched", name="s", kind="page", url="http://example.org/")
    with pytest.raises(ConfigError, match="'s'"):
        Crawler([source, source], quick(), frontier)


def test_the_replay_clock() -> None:
    assert read_clock({"knots": [[2, 20], [1, 10]]}).wall(1.5) == 15.0
    for bad in ([], {}, {"knots": [[1]]}, {"knots": [1]}, {"knots": [["a", 1]]}):
        with pytest.raises(ValueError):
            read_clock(bad)
    assert EventClock().wall(5.0) == 5.0


async def test_idle_sources_leave_the_frontier_alone(
    site: Any, quick: Any, reply: Any, frontier: Frontier, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = listing(site, reply).model_copy(update={"every": 3600.0})
    asked: list[float] = []
    claim = frontier.claim

    def counted(*given: Any) -> Any:
        asked.append(time.monotonic())
        return claim(*given)

    monkeypatch.setattr(frontier, "claim", counted)
    crawler = Crawler([source], quick(site.host, per_host=16), frontier)
    began = time.monotonic()
    await crawl(crawler, lambda _: time.monotonic() - began > 5.0)
    assert 1 <= len(asked) <= 2 + (time.monotonic() - began) / 2.0
