from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from browsing import CHROMIUM
from embedding.crawl.browser import BrowserPool, ChromiumProcess
from embedding.crawl.crawler import Crawler
from embedding.crawl.fetcher import Fetcher, Request
from embedding.crawl.frontier import Frontier
from embedding.kernel.errors import FetchError
from embedding.sources.config import SourceConfig
from waiting import eventually

pytestmark = pytest.mark.browser
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")

SHELL = """<html><body><ul></ul><img src="/pixel.png"><link rel=stylesheet href="/s.css">
<script>
const list = document.querySelector("ul");
let n = 0;
async function more() {
  const answer = await fetch("/api?n=" + n);
  for (const one of await answer.json()) {
    const li = document.createElement("li");
    li.dataset.id = one;
    li.style.height = "400px";
    li.innerHTML = `<a href="/p/${one}">제목 ${one}</a> <p>글 ${one}</p><b>홍길동</b>`;
    list.append(li);
  }
  n += 1;
}
addEventListener("scroll", more);
fetch("/private/x").catch(() => 0);
try { new WebSocket("ws://" + location.host + "/socket"); } catch (e) { 0; }
fetch("FOREIGN/secret").catch(() => 0);
more();
</script></body></html>"""


def board(site: Any, **more: Any) -> SourceConfig:
    fields = {"items": "li", "id": "@data-id", "link": "a", "title": "a", "text": "p"}
    return SourceConfig(
        name="b", kind="rendered", url=f"{site.base}/board", **{**fields, "author": "b", **more}
    )


@pytest.fixture
async def shop(site: Any, other_site: Any, reply: Any) -> Any:
    site.answers = {
        "/robots.txt": reply("User-agent: *\nDisallow: /private/\n"),
        "/board": reply(SHELL.replace("FOREIGN", other_site.base)),
        "/moved": reply("", "302 Found", location="/board"),
        "/s.css": reply("", content_type="text/css"),
        **{
            f"/api?n={n}": reply(
                str([n * 3 + i for i in range(3)]), content_type="application/json"
            )
            for n in range(3)
        },
        **{f"/api?n={n}": reply("[]", content_type="application/json") for n in range(3, 40)},
    }
    return site


@pytest.fixture
async def pool(site: Any, quick: Any, one_browser: None) -> AsyncIterator[BrowserPool]:
    config = quick(site.host, render_deadline=120.0, recycle_pages=2)
    fetcher = Fetcher(config)
    browsers = BrowserPool(config, fetcher)
    yield browsers
    await browsers.close()
    await fetcher.close()


@needs_chromium
async def test_a_scrolled_board_within_all_rules(
    shop: Any, other_site: Any, pool: BrowserPool
) -> None:
    found = await pool.render(board(shop), Request(f"{shop.base}/moved"), lambda seen: False)
    assert [one.id for one in found] == [str(n) for n in range(9)]
    assert found[4].text == "글 4"
    assert found[4].title == "제목 4"
    assert found[4].link == f"{shop.base}/p/4"
    assert found[4].author == "홍길동"
    assert not any(path.startswith("/private/") for path in shop.asked)
    assert "/pixel.png" not in shop.asked
    assert "/socket" not in shop.asked
    assert other_site.asked == []


@needs_chromium
async def test_a_slow_answer_is_waited_for(shop: Any, pool: BrowserPool, reply: Any) -> None:
    async def slow(path: str, headers: dict[str, str], writer: Any) -> None:
        await asyncio.sleep(3.0)
        writer.write(reply("[7, 8]", content_type="application/json"))

    shop.answers["/api?n=1"] = slow
    found = await pool.render(board(shop), Request(f"{shop.base}/board"), lambda seen: False)
    assert [one.id for one in found] == ["0", "1", "2", "7", "8", "6", "7", "8"]


@needs_chromium
async def test_pages_that_never_show_an_item_or_never_end(
    shop: Any, pool: BrowserPool, reply: Any
) -> None:
    shop.answers["/empty"] = reply("<p>글이 없습니다</p>")
    with pytest.raises(FetchError) as caught:
        await pool.render(board(shop), Request(f"{shop.base}/empty"), lambda seen: True)
    assert caught.value.reason == "empty"
    shop.answers["/busy"] = reply("<script>while (true) {}</script>")
    pool._config = pool._config.model_copy(update={"render_deadline": 2.0})
    with pytest.raises(FetchError) as caught:
        await pool.render(board(shop), Request(f"{shop.base}/busy"), lambda seen: True)
    assert caught.value.reason == "timeout"
    pool._config = pool._config.model_copy(update={"render_deadline": 120.0})
    found = await pool.render(board(shop), Request(f"{shop.base}/board"), lambda seen: True)
    assert len(found) == 3


def browsers(process: psutil.Process) -> list[psutil.Process]:
    """The Chromium processes below `process`; one that ends meanwhile is none."""
    found = []
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "chrom" in child.name():
                found.append(child)
    return found


async def test_a_missing_browser_is_one_clear_sentence(site: Any, quick: Any, reply: Any) -> None:
    site.answers["/board"] = reply("<p>글</p>")
    config = quick(site.host, browser=Path("/nowhere/chromium"))
    fetcher = Fetcher(config)
    pool = BrowserPool(config, fetcher)
    with pytest.raises(FetchError, match="/nowhere/chromium") as caught:
        await pool.render(board(site), Request(f"{site.base}/board"), lambda seen: True)
    assert caught.value.reason == "no_browser"
    await pool.close()
    await fetcher.close()


@needs_chromium
@pytest.mark.parametrize(("sign", "deaf"), [(signal.SIGTERM, False), (signal.SIGKILL, True)])
async def test_no_chromium_outlives_its_crawler(
    shop: Any, sign: signal.Signals, deaf: bool
) -> None:
    """Not even when Playwright's driver, which closes it otherwise, is stopped (`deaf`)."""
    code = (
        "import asyncio, sys\n"
        "from embedding.crawl.browser import BrowserPool\n"
        "from embedding.crawl.config import CrawlConfig\n"
        "from embedding.crawl.fetcher import Fetcher, Request\n"
        "from embedding.sources.config import SourceConfig\n"
        "async def main(base):\n"
        "    c = CrawlConfig(allow_private_hosts=(base[7:],), rate=1000)\n"
        "    p = BrowserPool(c, Fetcher(c))\n"
        "    s = SourceConfig(name='b', kind='rendered', url=base, items='li', text='p')\n"
        "    await p.render(s, Request(base + '/board'), lambda seen: True)\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main(sys.argv[1]))\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, shop.base, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    assert await asyncio.wait_for(parent.stdout.readline(), 150) == b"ready\n"
    family = psutil.Process(parent.pid).children(recursive=True)
    assert browsers(psutil.Process(parent.pid))
    main = browsers(psutil.Process(parent.pid))[0]
    profile = next(w for w in main.cmdline() if w.startswith("--user-data-dir="))
    if deaf:
        main.parent().suspend()  # type: ignore[union-attr]
    parent.send_signal(sign)
    await parent.wait()
    _, alive = await asyncio.to_thread(psutil.wait_procs, family, 60.0)
    left_over = [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]
    for one in left_over:
        one.kill()
    assert left_over == []
    left = Path(profile.partition("=")[2])
    await eventually(lambda: not left.exists(), "the profile of the browser was left behind")


@needs_chromium
async def test_a_lost_browser_is_ended_before_another_is_lent(one_browser: None) -> None:
    lost = await ChromiumProcess.start(None)
    main = browsers(psutil.Process())[0]
    driver = main.parent()
    assert driver is not None
    main.kill()
    await eventually(lambda: lost.lost, "it runs on")
    assert await ChromiumProcess.start(None) is not lost
    assert not driver.is_running()


@needs_chromium
async def test_a_board_that_is_empty_at_first_is_no_fault(
    shop: Any, quick: Any, reply: Any, one_browser: None
) -> None:
    shop.answers["/board"] = reply("<p>글이 없습니다</p>")
    source = board(shop, every=0.1, rate=1000.0, undated="fetched")
    frontier = Frontier("sqlite://")
    crawler = Crawler([source], quick(shop.host), frontier)

    async def fill() -> None:
        await eventually(lambda: (crawler.report().get("b", {}).get("poll") or {}).get("polls"))
        items = "".join(f'<li data-id="{n}"><p>글 {n} 입니다</p></li>' for n in range(3))
        shop.answers["/board"] = reply(f"<ul>{items}</ul>")

    async def give_up() -> None:
        await asyncio.sleep(150)
        crawler.stop()

    tasks = [asyncio.create_task(fill()), asyncio.create_task(give_up())]
    found = []
    async for document in crawler.documents():
        found.append(document.text)
        if len(found) == 3:
            break
    report = crawler.report()["b"]
    for task in tasks:
        task.cancel()
    frontier.close()
    assert len(found) == 3
    assert report["errors"] == {}
    assert report["alarm"] is None


@needs_chromium
async def test_a_page_whose_parts_are_the_same_is_not_shown_again(
    shop: Any, pool: BrowserPool, reply: Any
) -> None:
    async def shown() -> list[str]:
        known = await pool.render(board(shop), Request(f"{shop.base}/board"), lambda seen: True)
        return [one.id for one in known]

    pages = await shown(), pool.browser.pages
    shop.asked.clear()
    assert (await shown(), pool.browser.pages) == pages
    assert shop.asked == ["/board", "/api?n=0"], "which are asked for all the same"
    shop.answers["/api?n=0"] = reply("[70, 71]", content_type="application/json")
    shop.asked.clear()
    assert await shown() == ["70", "71"]
    assert shop.asked.count("/api?n=0") == 1, "what was just asked for is handed to the page"
    shop.answers["/board"] = reply(SHELL.replace("FOREIGN", "http://elsewhere.example"))
    before = pool.browser.pages
    await shown()
    assert pool.browser.pages != before


@needs_chromium
async def test_a_page_is_shown_now_and_then_whatever_its_parts_say(
    shop: Any, pool: BrowserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def shows() -> list[int]:
        pages = []
        for _ in range(4):
            await pool.render(board(shop), Request(f"{shop.base}/board"), lambda seen: True)
            pages.append(pool.browser.pages)
        return pages

    monkeypatch.setattr("embedding.crawl.browser.TRUSTED", 2)
    assert await shows() == [1, 1, 1, 1], "half an hour is not over"
    monkeypatch.setattr("embedding.crawl.browser.TRUSTED_S", 0.0)
    assert (await shows())[:3] == [2, 2, 2]


@needs_chromium
async def test_a_page_that_is_to_scroll_further_is_shown(shop: Any, pool: BrowserPool) -> None:
    found = await pool.render(board(shop), Request(f"{shop.base}/board"), lambda seen: True)
    assert len(found) == 3, "scrolling stops when there is enough"
    found = await pool.render(
        board(shop), Request(f"{shop.base}/board"), lambda seen: len(seen) > 5
    )
    assert len(found) == 6
