"""Hostile and broken pages in the real Chromium: each costs its deadline at most, and no other."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from browsing import CHROMIUM
from embedding.crawl import browser
from embedding.crawl.browser import BrowserPool
from embedding.crawl.fetcher import Fetcher, Request
from embedding.kernel.errors import FetchError
from embedding.sources.config import SourceConfig
from waiting import eventually

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here"),
]

GOOD = "<ul><li>글 하나</li><li>글 둘</li></ul>"
BLOCKING = {
    "/alert": "<script>while (true) alert('확인')</script>",
    "/reload": "<script>location.reload()</script>",
    "/regexp": "<script>/^(a+)+$/.test('a'.repeat(60) + 'b')</script>",
}
HARMLESS = {
    "/popups": "<script>for (let i = 0; i < 12; i++) window.open('/good#' + i)</script>" + GOOD,
    "/chain": "<script>setInterval(() => open(location.href), 100)</script>" + GOOD,
    "/saves": "<a id=a href='/file' download='text.bin'>x</a>"
    "<script>setInterval(() => a.click(), 100)</script>" + GOOD,
    "/asks": "<script>alert('안녕'); confirm('?'); onbeforeunload = () => 'no'</script>" + GOOD,
    "/broken": "<script>Array.from = () => { throw 1 }; JSON.stringify = 0</script>" + GOOD,
    "/prints": "<script>print()</script>" + GOOD,
}


def listing(url: str) -> SourceConfig:
    return SourceConfig(name="b", kind="rendered", url=url, items="li", text="", title="@none")


Render = Callable[[str], Any]


@asynccontextmanager
async def rendering(config: Any) -> AsyncIterator[BrowserPool]:
    fetcher = Fetcher(config)
    pool = BrowserPool(config, fetcher)
    try:
        yield pool
    finally:
        await pool.close()
        await fetcher.close()


def crash(pool: BrowserPool, which: str) -> None:
    """Kill Playwright's driver, Chromium, or the processes of its pages."""
    family = pool.browser.processes()
    for process in family:
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            kind = "renderer" if "--type=renderer" in words else "browser"
            kind = "driver" if process is family[0] else kind
            if kind == which and not (which == "browser" and process is not family[1]):
                process.kill()


async def render(pool: BrowserPool, url: str) -> Any:
    return await pool.render(listing(url), Request(url), lambda seen: False)


@pytest.fixture
def pages(site: Any, reply: Any) -> Any:
    site.answers = {path: reply(text) for path, text in (BLOCKING | HARMLESS).items()}
    site.answers |= {
        "/good": reply(GOOD),
        "/file": reply("x" * 100, content_type="application/zip"),
    }
    return site


async def test_pages_that_never_end_are_killed_and_no_other_is_lost(pages: Any, quick: Any) -> None:
    async with rendering(quick(pages.host, render_deadline=4.0, render_contexts=3)) as pool:

        async def ends(path: str) -> None:
            with pytest.raises(FetchError) as caught:
                await render(pool, pages.base + path)
            assert caught.value.reason in ("timeout", "render", "empty")

        async def shown() -> None:
            for _ in range(100):
                with contextlib.suppress(FetchError):  # a loaded machine may need longer than 4 s
                    assert len(await render(pool, f"{pages.base}/good")) == 2
                    return
            raise AssertionError("a good page was not shown in a hundred tries")

        await shown()
        await asyncio.gather(*(ends(path) for path in BLOCKING), shown(), shown())
        await shown()


async def test_dialogs_popups_and_downloads_do_not_stop_a_page(
    pages: Any, quick: Any, one_browser: None
) -> None:
    async with rendering(quick(pages.host, render_deadline=60.0)) as pool:
        for path in HARMLESS:
            with contextlib.suppress(FetchError):
                found = await render(pool, pages.base + path)
                assert len(found) == 2, path
        with pytest.raises(FetchError, match="application/zip") as caught:
            await render(pool, f"{pages.base}/file")
        assert caught.value.reason == "not_html"
        assert len(pool.browser.browser.contexts) == 0
    assert sum(path.startswith("/good") for path in pages.asked) == 0


async def test_a_page_has_only_so_many_requests(
    pages: Any, quick: Any, reply: Any, monkeypatch: pytest.MonkeyPatch, one_browser: None
) -> None:
    monkeypatch.setattr(browser, "PAGE_REQUESTS", 10)
    pages.answers["/greedy"] = reply(
        "<script>for (let i = 0; i < 50; i++) fetch('/n/' + i)</script>" + GOOD
    )
    async with rendering(quick(pages.host)) as pool:
        await render(pool, f"{pages.base}/greedy")
    assert sum(path.startswith("/n/") for path in pages.asked) <= 10


WAYS = """
<base href="PRIVATE/base/"><link rel=prefetch href="PRIVATE/prefetch">
<link rel=stylesheet href="PRIVATE/style"><link rel=preconnect href="PRIVATE/">
<link rel=modulepreload href="PRIVATE/module"><style>@import "PRIVATE/import";</style>
<iframe src="PRIVATE/frame"></iframe><object data="PRIVATE/object"></object>
<embed src="PRIVATE/embed"><img src="PRIVATE/image"><video src="PRIVATE/video"></video>
<form id=form method=post action="PRIVATE/form" target=inner></form><iframe name=inner></iframe>
<a id=ping href="#x" ping="PRIVATE/ping">x</a><script src="PRIVATE/script"></script>
<script>
const no = {mode: "no-cors"};
const code = text => URL.createObjectURL(new Blob([text]));
const ways = to => [
  () => fetch(to + "/fetch", no), () => fetch("SITE/redirects"),
  () => fetch(to + "/late", {...no, keepalive: true}),
  () => { const x = new XMLHttpRequest(); x.open("GET", to + "/xhr"); x.send(); },
  () => navigator.sendBeacon(to + "/beacon", "x"), () => new EventSource(to + "/events"),
  () => new WebSocket(to.replace("http", "ws") + "/socket"), () => form.submit(),
  () => ping.click(), () => import(to + "/dynamic"), () => new Worker("SITE/worker"),
  () => new Worker(code(`fetch("${to}/blob", {mode: "no-cors"})`)),
  () => new SharedWorker(code(`fetch("${to}/shared", {mode: "no-cors"})`)),
  () => new RTCPeerConnection({iceServers: [{urls: "stun:" + to.slice(7)}]})
    .createDataChannel("x"),
  () => navigator.serviceWorker.register("SITE/worker"), () => open(to + "/window"),
  () => new WebTransport(to.replace("http", "https") + "/transport"),
  () => { document.createElement("img").src = to + "/made"; },
];
for (const host of ["127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]", "2130706433"])
  for (const way of ways("http://" + host + ":PORT"))
    try { const p = way(); if (p && p.catch) p.catch(() => 0); } catch (e) { 0; }
</script><meta http-equiv=refresh content="1; url=PRIVATE/refresh">"""


async def test_nothing_in_a_page_reaches_a_private_address(
    site: Any, other_site: Any, quick: Any, reply: Any, one_browser: None
) -> None:
    """`other_site` is on loopback and not among the excepted hosts; the hostile one is."""
    private, port = other_site.base, other_site.base.rpartition(":")[2]
    page = WAYS.replace("PRIVATE", private).replace("PORT", port).replace("SITE", site.base)
    script = f"fetch('{private}/worker', {{mode: 'no-cors'}})"
    site.answers = {
        "/hostile": reply(page),
        "/redirects": reply("", "302 Found", location=f"{private}/redirected"),
        "/worker": reply(script, content_type="text/javascript"),
    }
    async with rendering(quick(site.host)) as pool:
        with pytest.raises(FetchError):
            await render(pool, f"{site.base}/hostile")
    assert "/redirects" in site.asked
    assert other_site.asked == []


async def test_the_browser_is_renewed_by_pages_and_by_memory(pages: Any, quick: Any) -> None:
    async with rendering(quick(pages.host, recycle_pages=2, browser_memory_mb=5000)) as pool:
        for _ in range(3):
            await render(pool, f"{pages.base}/good")
        assert pool.started == 2
        first = pool.browser.processes()
        pool._config = pool._config.model_copy(
            update={"recycle_pages": 100, "browser_memory_mb": pool.browser.measure() / 2e6}
        )
        await render(pool, f"{pages.base}/good")
        assert pool.started == 3
        assert not any(process.is_running() for process in first)


async def test_a_page_that_eats_memory_is_killed_and_the_others_are_shown(
    pages: Any, quick: Any, reply: Any
) -> None:
    pages.answers["/glutton"] = reply(
        "<script>const all = []; setInterval(() => all.push(new Uint8Array(4e6).fill(1)), 20)"
        "</script>" + GOOD.replace("li", "p")
    )
    async with rendering(quick(pages.host, render_deadline=90.0)) as pool:
        await render(pool, f"{pages.base}/good")
        most = pool.browser.measure() / 1e6
        pool._config = pool._config.model_copy(update={"browser_memory_mb": most})

        async def eaten() -> None:
            with pytest.raises(FetchError) as caught:
                await render(pool, f"{pages.base}/glutton")
            assert caught.value.reason in ("render", "empty")

        results = asyncio.gather(eaten(), *(render(pool, f"{pages.base}/good") for _ in range(3)))
        assert [len(one) for one in (await results)[1:]] == [2, 2, 2]


@pytest.mark.parametrize("which", ["browser", "renderer", "driver"])
async def test_a_crash_in_the_middle_of_a_page_loses_none(
    pages: Any, quick: Any, reply: Any, which: str
) -> None:
    waiting, killed = asyncio.Event(), asyncio.Event()

    async def slow(path: str, headers: dict[str, str], writer: Any) -> None:
        waiting.set()
        await killed.wait()
        writer.write(reply("['글']"))

    pages.answers["/slow"] = slow
    pages.answers["/waits"] = reply(
        "<ul></ul><script>fetch('/slow').then(() => {"
        "document.querySelector('ul').innerHTML = '<li>하나</li><li>둘</li>'})</script>"
    )
    async with rendering(quick(pages.host, render_deadline=120.0)) as pool:
        shown = asyncio.gather(*(render(pool, f"{pages.base}/waits") for _ in range(2)))
        await asyncio.wait_for(waiting.wait(), 90)
        crash(pool, which)
        killed.set()
        async with asyncio.timeout(100):  # shown again at once, not after the page's deadline
            assert [len(found) for found in await shown] == [2, 2]


async def test_a_page_whose_process_dies_while_it_is_opened_is_shown_again_at_once(
    pages: Any, quick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.async_api import BrowserContext

    async with rendering(quick(pages.host, render_deadline=600.0)) as pool:
        await render(pool, f"{pages.base}/good")
        new_page = BrowserContext.new_page

        async def unanswered(context: BrowserContext) -> None:
            # What Playwright does in about one of a hundred such crashes.
            monkeypatch.setattr(BrowserContext, "new_page", new_page)
            await new_page(context)
            crash(pool, "renderer")
            await asyncio.Event().wait()

        monkeypatch.setattr(BrowserContext, "new_page", unanswered)
        async with asyncio.timeout(60):
            assert len(await render(pool, f"{pages.base}/good")) == 2
        assert pool.started == 1


async def test_a_browser_leaves_nothing_on_the_disk(pages: Any, quick: Any, reply: Any) -> None:
    secret = "비밀스러운글이다"
    text = """<ul><li>SECRET</li></ul><script>
      localStorage.x = 'SECRET'; sessionStorage.x = 'SECRET'; document.cookie = 'a=SECRET';
      const opened = indexedDB.open('SECRET');
      caches.open('c').then(c => c.put('/x', new Response('SECRET')));</script>"""
    text = text.replace("SECRET", secret)
    pages.answers["/secret"] = reply(text, cache_control="max-age=600", set_cookie="b=2")
    async with rendering(quick(pages.host)) as pool:
        assert len(await render(pool, f"{pages.base}/secret")) == 1
        profile, home = pool.browser._folders
        held = [path for path in profile.rglob("*") if path.is_file()]
        held += [path for path in home.rglob("*") if path.is_file()]
        for path in held:
            data = path.read_bytes()
            assert secret.encode() not in data
            assert secret.encode("utf-16-le") not in data
    assert held
    assert not profile.exists()
    assert not home.exists()


async def test_a_browser_that_shows_nothing_is_ended_until_a_page_is_due(
    pages: Any, quick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embedding.crawl.browser._MEASURE", 0.05)
    monkeypatch.setattr("embedding.crawl.browser._UNUSED", 2)
    async with rendering(quick(pages.host)) as pool:
        await render(pool, f"{pages.base}/good")
        family = pool.browser.processes() if pool.browser else []
        await eventually(lambda: pool.browser is None)
        assert not any(process.is_running() for process in family)
        assert await render(pool, f"{pages.base}/good")
        assert pool.started == 2


async def test_what_a_crashed_page_leaves_goes_with_its_browser(
    pages: Any, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chromium writes dumps of crashed processes, which may hold text, beside its profile."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with rendering(quick(pages.host)) as pool:
        await render(pool, f"{pages.base}/good")
        page = await pool.browser.browser.new_page()
        with contextlib.suppress(Exception):
            await page.goto("chrome://crash", timeout=5_000)
    assert left_of_chromium(tmp_path) == []


def left_of_chromium(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "chromium" in str(path)]
