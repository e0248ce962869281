"""Rendering pages in Chromium, with every byte fetched by the crawler itself.

A pool of contexts in one Chromium. Each page has a context of its own, so that nothing of it
stays; the browser is started again after so many pages, or when its processes hold too much memory.
A page that does not end within its deadline is killed, with the browser if need be; other pages
that were shown meanwhile are shown again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from embedding.crawl.chromium_process import BrowserFailedError, ChromiumProcess, quietly
from embedding.crawl.config import CrawlConfig
from embedding.crawl.fetcher import Fetcher, Request, Response
from embedding.crawl.page_requests import (
    Answered,
    PageParts,
    PageRequests,
    StaticFiles,
    UnchangedPages,
    digest,
)
from embedding.kernel.errors import FetchError
from embedding.sources.answers import ANSWER_FIELDS, PageAnswers
from embedding.sources.base import Found
from embedding.sources.config import SourceConfig
from embedding.sources.markup import LONGEST_FIELD

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

PAGE_REQUESTS = 300
"""That one rendered page may make; further ones are refused."""
_QUIET = 0.1
"""Seconds between two looks at a page."""
_STILL = 8
"""Looks without anything new after which a page that asks for nothing is taken to have ended."""
_EMPTY = 48
"""The same for a page that has not shown any item."""
_MOVED = ("context was destroyed", "navigating", "Cannot find context")
"""Playwright's words for a page that goes to another address just now."""

_EXTRACT = """([items, fields, most]) => {
  const pick = (node, where, wantLink) => {
    if (!where) return "";
    const at = where.lastIndexOf("@");
    const selector = at < 0 ? where : where.slice(0, at);
    const found = selector ? node.querySelector(selector) : node;
    if (!found) return "";
    if (at >= 0) return found.getAttribute(where.slice(at + 1)) || "";
    if (wantLink) return found.href || "";
    return found.innerText || found.textContent || "";
  };
  return Array.from(document.querySelectorAll(items || "a[href]")).slice(0, most).map(node => ({
    id: pick(node, fields.id, false),
    link: fields.link ? pick(node, fields.link, true) : (node.href || ""),
    title: fields.title ? pick(node, fields.title, false) : (items ? "" : node.innerText || ""),
    time: (() => {
      const where = fields.time;
      if (!where || where.includes("@")) return pick(node, where, false);
      const found = node.querySelector(where);
      return found ? found.getAttribute("datetime") || found.innerText || "" : "";
    })(),
    text: pick(node, fields.text, false),
    author: pick(node, fields.author, false),
  }));
}"""
_SCROLL = "window.scrollTo(0, document.documentElement.scrollHeight)"


async def collect(
    page: Page,
    source: SourceConfig,
    requests: PageRequests,
    answers: PageAnswers,
    enough: Callable[[Sequence[Found]], bool],
    *,
    patience: float,
) -> Sequence[Found]:
    """Wait for items, then scroll until there are enough, no more come, or `pages` scrolls.

    While the page waits for an answer more may come: the looks at it do not count, for `patience`
    seconds at most, as some pages keep a request open for ever. Raises FetchError (`empty`).
    """
    shown: Sequence[Found] = ()
    still = scrolls = 0
    changed = time.monotonic()
    while True:
        # Read before the page is: an answer that comes meanwhile is one more to wait for.
        arrived = requests.arrived
        seen = await _seen(page, source, answers)
        if not requests.open or time.monotonic() - changed > patience:
            still += 1
        if len(seen) > len(shown):
            shown, still, changed = seen, 0, time.monotonic()
            if enough(shown) or scrolls >= source.pages:
                return shown
            scrolls += 1
            await _evaluate(page, _SCROLL)
        elif shown and still >= _STILL:
            return shown
        elif shown and still and scrolls:
            # An answer is read before the page has drawn it: then it was not yet long enough.
            await _evaluate(page, _SCROLL)
        elif not shown and still >= _EMPTY:
            raise FetchError("empty", f"{source.url}: no item of it appeared.")
        if requests.arrived == arrived:
            await asyncio.sleep(_QUIET)


async def _seen(page: Page, source: SourceConfig, answers: PageAnswers) -> Sequence[Found]:
    from playwright.async_api import Error

    answered = answers.items()
    if answered or answers.exclusive:
        return answered
    fields = {name: getattr(source, name) for name in ANSWER_FIELDS}
    try:
        rows = await _evaluate(page, _EXTRACT, [source.items, fields, source.max_items])
    except Error as error:
        # Only what the source's settings say is told on: all else is the page's.
        for name in ("items", *ANSWER_FIELDS):
            text = getattr(source, name) or ""
            selector = text.rpartition("@")[0] or text
            if f"{selector!r} is not a valid selector" in str(error):
                raise FetchError(
                    "render", f"{source.url}: {selector!r} is not a CSS selector."
                ) from None
        raise
    # The page may have changed what its own functions give back.
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return ()
    return [
        Found(**{name: str(row.get(name) or "")[:LONGEST_FIELD] for name in ANSWER_FIELDS})
        for row in rows
    ]


async def _evaluate(page: Page, script: str, argument: Any = None) -> Any:
    """Run a script in the page; None while the page goes to another address."""
    from playwright.async_api import Error

    try:
        return await page.evaluate(script, argument)
    except Error as error:
        if any(words in str(error) for words in _MOVED):
            return None
        raise


log = logging.getLogger(__name__)

_MEASURE = 5.0
"""Seconds between two readings of the browser's memory."""
_UNUSED = 60
"""Readings in a row without a page after which the browser is ended, until one is to be shown."""
_MEGABYTE = 1e6
_TOO_LARGE = 2.0
"""Times the memory limit at which a browser is killed in the middle of its pages."""
_READABLE = ("text/html", "application/xhtml")


class Slots:
    """`n` places, given out in the order in which they are asked for."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._free = asyncio.Semaphore(n)
        self._next = asyncio.Lock()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        async with self._next:
            await self._free.acquire()
        try:
            yield
        finally:
            self._free.release()

    @asynccontextmanager
    async def every(self) -> AsyncIterator[None]:
        """All places: nobody else has one meanwhile."""
        taken = 0
        try:
            async with self._next:
                while taken < self._n:
                    await self._free.acquire()
                    taken += 1
            yield
        finally:
            for _ in range(taken):
                self._free.release()


@dataclass(frozen=True)
class _Visit:
    source: SourceConfig
    request: Request
    first: Response
    enough: Callable[[Sequence[Found]], bool]
    known: Answered


class BrowserPool:
    """`config.render_contexts` pages at once in one Chromium, which is started on first use."""

    def __init__(self, config: CrawlConfig, fetcher: Fetcher) -> None:
        self._config = config
        self._fetcher = fetcher
        self._statics = StaticFiles()
        self._unchanged = UnchangedPages(fetcher)
        self._places = Slots(config.render_contexts)
        self._starting = asyncio.Lock()
        self._browser: ChromiumProcess | None = None
        self._watching: asyncio.Task[None] | None = None
        self.started = 0
        """Browsers started so far."""

    @property
    def browser(self) -> ChromiumProcess | None:
        return self._browser

    async def render(
        self, source: SourceConfig, request: Request, enough: Callable[[Sequence[Found]], bool]
    ) -> Sequence[Found]:
        """Items of the page at `request.url`; see `Web.render`. Raises FetchError."""
        # Fetched here, so that its redirects are known before the page opens and no place in the
        # browser waits for a host's turn.
        first = await self._fetcher.fetch(replace(request, accept="text/html,*/*;q=0.5"))
        kind = first.headers.get("content-type", "text/html").lower()
        if not kind.startswith(_READABLE):
            raise FetchError("not_html", f"{first.url}: is {kind.partition(';')[0]}, not HTML.")
        shown, known = await self._unchanged.look(source.name, request.url, digest(first), enough)
        if shown is not None:
            return shown
        visit = _Visit(source, request, first, enough, known)
        for alone in (False, True):
            # A browser that was lost says nothing of who brought it down: shown again alone, the
            # guilty page does it once more and the others are simply shown.
            try:
                async with self._place(alone=alone):
                    return await self._show(visit)
            except BrowserFailedError:
                log.warning("%s: the browser failed while it was shown", request.url)
        raise FetchError("render", f"{request.url}: the browser failed at it twice.", retry_after=0)

    @asynccontextmanager
    async def _place(self, *, alone: bool) -> AsyncIterator[None]:
        if self._worn():
            async with self._places.every():
                if self._worn():
                    await self._end_browser()
        async with self._places.every() if alone else self._places.one():
            yield

    def _worn(self) -> bool:
        browser = self._browser
        if browser is None:
            return False
        full = browser.memory > self._config.browser_memory_mb * _MEGABYTE
        return full or browser.pages >= self._config.recycle_pages or browser.lost

    async def _show(self, visit: _Visit) -> Sequence[Found]:
        """Show one page within the deadline. Raises BrowserFailedError and FetchError."""
        browser = await self._started()
        browser.pages += 1
        url = visit.request.url
        context: BrowserContext | None = None
        try:
            async with asyncio.timeout(self._config.render_deadline):
                context = await browser.doing(
                    browser.browser.new_context(
                        user_agent=self._config.user_agent,
                        locale="ko-KR",
                        service_workers="block",
                        accept_downloads=False,
                    )
                )
                return await browser.doing(self._read(browser, context, visit))
        except TimeoutError as error:
            if context is None:
                browser.kill()
            raise FetchError(
                "timeout",
                f"{url}: not rendered within {self._config.render_deadline:g} s.",
                retry_after=0,
            ) from error
        finally:
            if context is not None and not browser.lost and not await quietly(context.close()):
                browser.kill()

    async def _read(
        self, browser: ChromiumProcess, context: BrowserContext, visit: _Visit
    ) -> Sequence[Found]:
        answers, parts = PageAnswers(visit.source), PageParts(digest(visit.first))
        requests = PageRequests(
            self._fetcher,
            self._statics,
            visit.request,
            visit.first,
            answers,
            parts=parts,
            known=visit.known,
            source=visit.source,
            limit=PAGE_REQUESTS,
        )
        await context.route("**/*", requests.handle)
        page = await browser.open_page(context)
        context.on("page", _close)
        # `render_deadline` is the limit, not Playwright's own.
        await page.goto(visit.first.url, wait_until="commit", timeout=0)
        shown = await collect(
            page, visit.source, requests, answers, visit.enough, patience=self._config.timeout
        )
        self._unchanged.keep(visit.source.name, visit.request.url, parts, shown)
        return shown

    async def _started(self) -> ChromiumProcess:
        async with self._starting:
            if self._browser is not None and self._browser.lost:
                await self._end_browser()
            if self._browser is None:
                self._browser = await ChromiumProcess.start(self._config.browser)
                self.started += 1
                self._watching = asyncio.create_task(self._watch(self._browser))
            return self._browser

    async def _watch(self, browser: ChromiumProcess) -> None:
        """Read the browser's memory as long as it runs; one that grows without end is killed, and
        one that shows no page is ended.
        """
        most = self._config.browser_memory_mb * _MEGABYTE
        pages = unused = 0
        while not browser.lost:
            unused = unused + 1 if browser.pages == pages else 0
            pages = browser.pages
            if unused >= _UNUSED and await self._rest(browser):
                return
            if await asyncio.to_thread(browser.measure) > _TOO_LARGE * most:
                log.warning("Chromium was killed at %.0f MB", browser.memory / _MEGABYTE)
                browser.kill()
            await asyncio.sleep(_MEASURE)

    async def _rest(self, browser: ChromiumProcess) -> bool:
        """End a browser that shows no page; False where one was shown meanwhile."""
        pages = browser.pages
        async with self._places.every():
            if self._browser is not browser or browser.pages != pages:
                return False
            await browser.end()
            self._browser = None
        return True

    async def _end_browser(self) -> None:
        browser, self._browser = self._browser, None
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            await asyncio.wait({watching})
        if browser is not None:
            await browser.end()

    async def close(self) -> None:
        async with self._starting:
            await self._end_browser()


async def _close(page: Page) -> None:
    """A window that a page opened is closed at once."""
    await quietly(page.close())
