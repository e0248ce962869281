from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.crawl.extract import Extracted, digest, extract
from embedding.crawl.extractor import Extractor
from embedding.crawl.fetcher import Request
from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage
from generated import examples
from waiting import eventually

TYPE = "text/html"
URL = "https://example.org/news/1"
LD = '<script type="application/ld+json">{}</script>'
BODY = "".join(
    f"<p>{n}번째 문단에서 시민들은 새 정책에 관한 의견을 길게 말하였다.</p>" for n in range(6)
)


def page(head: str = "", body: str = BODY) -> str:
    return (
        f"<html><head><title>제목</title>{head}</head><body><nav><a href='/'>홈</a></nav>"
        f"<article><h1>제목</h1>{body}</article></body></html>"
    )


def test_text_title_and_canonical_address() -> None:
    found = extract(page("<link rel='canonical' href='/news/canonical'>"), URL, "Asia/Seoul")
    assert "3번째 문단에서" in found.text
    assert "홈" not in found.text
    assert found.title == "제목"
    assert found.canonical == "https://example.org/news/canonical"
    assert found.published_at is None
    assert len(found.signature) == 256


@pytest.mark.parametrize(
    "head",
    [
        LD.format('{"a": [{"datePublished": "2020-02-03T04:05"}]}'),
        '<meta property="article:published_time" content="2020-02-03T04:05:00+09:00">',
        '<meta name="pubdate" content="2020.02.03 04:05">',
        '<meta itemprop="datePublished" content="2020-02-02T19:05:00Z">',
        LD.format("{") + '<meta name="date" content="2020-02-03 04:05">',
    ],
)
def test_the_publish_time_is_found(head: str) -> None:
    assert extract(page(head), URL, "Asia/Seoul").published_at == datetime(
        2020, 2, 2, 19, 5, tzinfo=UTC
    )


def test_json_ld_wins_over_the_time_element() -> None:
    head = '<script type="application/ld+json">[{"datePublished": "2020-02-03"}]</script>'
    html = page(head, BODY + "<time datetime='2024-01-01'>오늘</time>")
    found = extract(html, URL, "UTC").published_at
    assert found == datetime(2020, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize("html", ["", "   ", "<html></html>", "<html><body><img>"])
def test_pages_without_text_are_empty(html: str) -> None:
    with pytest.raises(FetchError) as caught:
        extract(html, URL, "UTC")
    assert caught.value.reason in ("empty", "parse")


@settings(max_examples=examples(60))
@given(st.text(alphabet="<>/!-[]{}\"'=&;# abp가나\0\n\ud800", max_size=120))
def test_any_page_is_text_or_a_named_failure(html: str) -> None:
    try:
        found = extract(html, URL, "UTC")
    except FetchError:
        return
    assert found.text


FRAME = '<iframe id="mainFrame" src="/post?no=1"></iframe>'
FRAMESET = (
    '<html><frameset><frame name="menu" src="/menu"><frame name="main" src="/post?no=1">'
    "<noframes>이 브라우저는 프레임을 지원하지 않습니다.</noframes></frameset></html>"
)
REFRESH = '<meta http-equiv="Refresh" content="0; URL=\'/post?no=1\'">'


@pytest.mark.parametrize(
    "html",
    [
        f"<html><body>{FRAME}</body></html>",
        FRAMESET,
        '<frameset><frame src="http://other.example/"><frame src="/post?no=1"></html>',
        "<meta http-equiv=refresh content='0;url=post?no=1'>",
        "<html><head><script>location.href = 'post?no=1';</script></head></html>",
        "<html><body><script><!--\nwindow.location.replace('/post?no=1')\n//--></script></body></html>",
        f"<html><head>{REFRESH}</head><body>잠시 후 글이 있는 쪽으로 옮겨 갑니다.</body></html>",
        page(REFRESH),
    ],
)
def test_a_page_that_only_shows_another_says_which(html: str) -> None:
    found = extract(html, "https://example.org/news", "UTC")
    assert (found.text, found.shows) == ("", "https://example.org/post?no=1")


@pytest.mark.parametrize(
    "html",
    [
        '<html><body><iframe src="/advertisement"></iframe></body></html>',
        '<html><body><iframe id="main" src="https://other.example/1"></iframe></body></html>',
        f"<html><head><noscript>{REFRESH}</noscript></head><body></body></html>",
        '<html><head><meta http-equiv="refresh" content="300"></head><body></body></html>',
        f'<html><head><meta http-equiv="refresh" content="0;url={URL}"></head></html>',
        "<html><script>alert('지워진 글입니다'); location.href='/post?no=1'</script></html>",
        "<html><script>if (phone) location.href='/post?no=1'</script></html>",
        "<html><script>location.href='https://other.example/post?no=1'</script></html>",
        '<html><body><iframe id="main" src="http://["></iframe></body></html>',
    ],
)
def test_other_frames_and_refreshes_lead_nowhere(html: str) -> None:
    with pytest.raises(FetchError, match="no text"):
        extract(html, URL, "UTC")


def test_an_article_stays_one_beside_a_frame_and_a_slow_refresh() -> None:
    slow = '<meta http-equiv="refresh" content="300;url=/front">'
    assert "3번째 문단에서" in extract(page(slow, BODY + FRAME), URL, "UTC").text


@pytest.mark.parametrize("processes", [0, 1])
async def test_a_frame_behind_a_refresh_is_followed_and_nothing_deeper(processes: int) -> None:
    extractor = Extractor(processes, 60.0, 1000)
    asked: list[str] = []
    frame = f"<html><body>{FRAME}</body></html>".replace("no=1", "no={}")
    pages = {"/a": REFRESH, "/post?no=1": frame.format(2), "/post?no=2": page()}

    async def get(request: Request) -> FetchedPage:
        asked.append(request.url.removeprefix("https://example.org"))
        return FetchedPage(request.url, "", pages[asked[-1]].encode(), {})

    async def follow() -> str:
        answer, found = await extractor.follow(get, Request("https://example.org/a"), "UTC", 20)
        assert "3번째 문단에서" in found.text
        return answer.url

    try:
        assert await follow() == "https://example.org/post?no=2"
        pages["/post?no=2"] = frame.format(3)
        with pytest.raises(FetchError) as failure:
            await follow()
    finally:
        await extractor.close()
    assert failure.value.reason == "empty"
    assert asked == [*pages, *pages]


def test_equal_texts_have_equal_digests() -> None:
    assert digest("여론  은\n글") == digest("여론 은 글") == digest("여론 은 글")
    assert digest("여론") != digest("여론.")


def answered(text: str, number: int | str = "") -> FetchedPage:
    return FetchedPage(f"{URL}{number}", "", text.encode(), {"content-type": TYPE})


@pytest.mark.parametrize("processes", [0, 1])
async def test_extraction_outside_the_loop(processes: int) -> None:
    extractor = Extractor(processes, 20.0, 50_000)
    try:
        head = '<meta name="author" content="홍길동"><link rel="canonical" href="/news/canonical">'
        jobs = [extractor.read(answered(page(head), n), "UTC", 0) for n in range(5)]
        assert await asyncio.gather(*jobs) == [extract(page(head), URL, "UTC")] * 5
        with pytest.raises(FetchError) as caught:
            await extractor.read(answered("<html></html>"), "UTC", 0)
        assert caught.value.reason in ("empty", "parse")
    finally:
        await extractor.close()


async def test_a_killed_or_stuck_process_is_replaced() -> None:
    extractor = Extractor(1, 20.0, 50_000)
    try:
        await extractor.read(answered(page()), "UTC", 0)
        (process,) = extractor.children
        os.kill(process.pid, signal.SIGKILL)
        await process._process.wait()
        with pytest.raises(FetchError) as caught:
            await extractor.read(answered(page()), "UTC", 0)
        assert caught.value.reason == "parse"
        assert caught.value.retry_after == 0, "a busy machine may have killed it: not for good"
        await extractor.read(answered(page()), "UTC", 0)
        (process,) = extractor.children
        extractor._limit = 0.3
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(FetchError, match="longer than") as caught:
            await extractor.read(answered(page()), "UTC", 0)
        assert caught.value.retry_after == 0
        assert isinstance(await extractor.read(answered(page()), "UTC", 0), Extracted)
    finally:
        await extractor.close()


@pytest.mark.parametrize("processes", [0, 1])
async def test_a_page_is_not_refused_because_the_loop_stood_still(processes: int) -> None:
    extractor = Extractor(processes, 20.0, 50_000)
    try:
        await extractor.read(answered(page()), "UTC", 0)
        extractor._limit = 1.0
        # As behind a database that somebody else has locked.
        asyncio.get_running_loop().call_later(0.001, time.sleep, 1.5)
        assert "문단" in (await extractor.read(answered(page()), "UTC", 0)).text
    finally:
        await extractor.close()


def gone(process: int) -> bool:
    return not psutil.pid_exists(process)


async def test_an_idle_process_ends_and_another_starts_on_need() -> None:
    extractor = Extractor(2, 60.0, 50_000, idle=0.1)
    try:
        ended: set[int] = set()
        for _ in range(2):
            jobs = [extractor.read(answered(page(), n), "UTC", 0) for n in range(4)]
            assert all("문단" in found.text for found in await asyncio.gather(*jobs))
            processes = {child.pid for child in extractor.children}
            assert len(processes) == 2
            assert not processes & ended
            await eventually(lambda: not extractor.children)
            for process in processes:
                await eventually(partial(gone, process))
            ended |= processes
    finally:
        await extractor.close()


async def test_extraction_processes_end_with_their_parent(tmp_path: Path) -> None:
    code = (
        "import asyncio, os, sys\n"
        "from embedding.crawl.extractor import Extractor\n"
        "from embedding.sources.base import FetchedPage\n"
        "async def main():\n"
        "    e = Extractor(1, 20.0, 50_000)\n"
        "    page = FetchedPage('http://e.org/', '', b'<html></html>', {})\n"
        "    try: await e.read(page, 'UTC', 0)\n"
        "    except Exception: pass\n"
        "    print(next(iter(e.children)).pid, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(await asyncio.wait_for(parent.stdout.readline(), 150))
    parent.kill()
    await parent.communicate()
    await eventually(lambda: not psutil.pid_exists(child))
