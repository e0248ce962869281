"""Rendering pages in Chromium, with every byte fetched by the crawler itself.

A pool of contexts in one Chromium. Each page has its own context, so nothing of it is left behind.
The browser is restarted after a number of pages, or when its processes hold too much memory. A page
that misses its deadline is killed, with the browser if need be; pages that were open at that moment
are rendered again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cachetools import TLRUCache

from embedding.crawl.addresses import host_of
from embedding.crawl.chromium_process import BrowserFailedError, ChromiumProcess, quietly
from embedding.crawl.config import CrawlConfig
from embedding.crawl.fetcher import Fetcher, Request, Response
from embedding.kernel.errors import FetchError
from embedding.sources.answers import ANSWER_FIELDS, PageAnswers
from embedding.sources.base import Found
from embedding.sources.config import SourceConfig
from embedding.sources.markup import LONGEST_FIELD

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page, Route
    from playwright.async_api import Request as PageRequest

log = logging.getLogger(__name__)

# What a rendered page was made of: while all of it is the same, it is not rendered again.
#
# A page shows what its document and the answers to its scripts say. Asking for these again costs a
# few requests; showing the page costs most of a second of a processor. A page may change by other
# means (a socket, the time of day), so it is rendered again in any case after `TRUSTED` visits and
# half an hour. Much sooner, the browser of a source that is asked often would never be ended.
TRUSTED, TRUSTED_S = 20, 1800.0
"""Visits in a row, and seconds, that may go without rendering."""
_MOST = 8
"""Answers of a page that are asked for again; one that needs more is rendered."""

Answered = Mapping[str, tuple[Request, Response]]
"""By address: what was just asked for, and what came."""


@dataclass
class PageParts:
    """What one rendering took.

    document  digest of the document
    asked     each request of its scripts with the digest of the answer
    whole     whether all of it can be asked for again
    at        when it was (monotonic seconds)
    """

    document: bytes
    asked: list[tuple[Request, bytes]] = field(default_factory=list)
    whole: bool = True
    shown: Sequence[Found] = ()
    trusted: int = 0
    at: float = field(default_factory=time.monotonic)

    def add(self, request: Request, answer: Response | None) -> None:
        self.whole = self.whole and request.method == "GET" and len(self.asked) < _MOST
        if self.whole:
            self.asked.append((request, digest(answer)))


def digest(answer: Response | None) -> bytes:
    """That of its status and body; empty where a request was refused or failed."""
    if answer is None:
        return b""
    return hashlib.blake2b(b"%d " % answer.status + answer.body, digest_size=16).digest()


class UnchangedPages:
    """The last rendering of each page, by source and address."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._last: dict[tuple[str, str], PageParts] = {}

    def keep(self, source: str, url: str, parts: PageParts, shown: Sequence[Found]) -> None:
        """Remember a rendering that can be compared, in place of the one before."""
        parts.shown = shown
        if parts.whole:
            self._last[source, url] = parts
        else:
            self._last.pop((source, url), None)

    async def look(
        self, source: str, url: str, document: bytes, enough: Callable[[Sequence[Found]], bool]
    ) -> tuple[Sequence[Found] | None, Answered]:
        """What the page showed if it is as it was, and the answers that came of asking.

        None where it has to be rendered; the answers are for that.
        """
        last = self._last.get((source, url))
        if last is None or last.document != document or not enough(last.shown):
            return None, {}
        if last.trusted >= TRUSTED and time.monotonic() - last.at >= TRUSTED_S:
            return None, {}
        answers: dict[str, tuple[Request, Response]] = {}
        for request, known in last.asked:
            answer = None
            with suppress(FetchError):
                answer = await self._fetcher.fetch(request)
                answers[request.url] = (request, answer)
            if digest(answer) != known:
                return None, answers
        last.trusted += 1
        return last.shown, answers


# Scripts and style sheets that rendered pages share, kept in memory for a while.
#
# A board's pages all load the same script: fetching it once leaves the host's requests to what is
# new. Freshness as in RFC 9111: `max-age` where given (4.2.1), else a short heuristic (4.2.2).
_HEURISTIC = 300.0
_LONGEST = 3600.0
_MAX_AGE = re.compile(r"max-age=\"?(\d{1,9})")
_NEVER = re.compile(r"no-store|no-cache|private")


def _expiry(_: object, response: Response, now: float) -> float:
    stated = _MAX_AGE.search(response.headers.get("cache-control", "").lower())
    return now + (min(float(stated[1]), _LONGEST) if stated else _HEURISTIC)


class StaticFiles(TLRUCache[tuple[str, str], Response]):
    """By source and address, at most `limit` bytes: each for as long as its answer says."""

    def __init__(
        self, limit: int = 16 * 1024 * 1024, timer: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(limit, _expiry, timer, lambda response: len(response.body))

    def keep(self, source: str, url: str, response: Response) -> None:
        """Keep an answer unless it forbids it or is too large."""
        control = response.headers.get("cache-control", "").lower()
        large = len(response.body) > self.maxsize // 4
        if response.status == 200 and not large and not _NEVER.search(control):
            self[source, url] = response


_FETCHED = ("document", "script", "stylesheet", "xhr", "fetch", "manifest", "other")
_SHARED = ("script", "stylesheet")
_PASSED = ("accept", "content-type", "referer", "x-requested-with")
_READ = ("xhr", "fetch")
_READING = ("GET", "HEAD")
_BLANK = ("", "about:blank")
"""Addresses of a frame that shows nothing yet."""


class PageRequests:
    """Route handler of one page. Robots, rates, sizes and the address guard hold for each request.

    Images, media and fonts are refused, and everything after `PAGE_REQUESTS` requests.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        statics: StaticFiles,
        source: SourceConfig,
        request: Request,
        first: Response,
        known: Answered,
    ) -> None:
        self._fetcher = fetcher
        self._statics = statics
        self._request = request
        self._first = first.url
        self._waiting: dict[str, Response] = {first.url: first}
        self._known = dict(known)
        self._source = source
        self._left = PAGE_REQUESTS
        self.answers = PageAnswers(source)
        self.parts = PageParts(digest(first))
        self.open = 0
        """Requests that wait for their answer."""
        self.arrived = 0
        """Answers handed to the page."""

    async def handle(self, route: Route) -> None:
        """Answer one request; never raises."""
        from playwright.async_api import Error

        self.open += 1
        try:
            await self._answer(route)
            self.arrived += 1
        except Error:
            # The page was closed while its request was on the way.
            log.debug("a rendered page closed before its request was answered")
        finally:
            self.open -= 1

    async def _answer(self, route: Route) -> None:
        wanted = route.request
        kind, url = wanted.resource_type, wanted.url
        self._left -= 1
        if kind not in _FETCHED or not url.startswith(("http://", "https://")) or self._left < 0:
            await route.abort("blockedbyclient")
            return
        try:
            answer = self._waiting.pop(url, None) or await self._fetched(wanted)
            # The body is unpacked already and its length is set again.
            dropped = ("content-encoding", "content-length", "transfer-encoding", "connection")
            headers = {key: value for key, value in answer.headers.items() if key not in dropped}
            body = answer.body
            if kind == "document":
                # The crawler's reading of the encoding holds, whatever the page says of itself.
                headers["content-type"] = "text/html; charset=utf-8"
                body = answer.text().encode("utf-8", "replace")
        except FetchError as error:
            log.debug("%s inside a rendered page: %s", error.reason, url)
            await route.abort("failed")
            return
        if kind in _READ:
            await asyncio.to_thread(self.answers.take, url, answer.body)
        await route.fulfill(status=answer.status, headers=headers, body=body)

    async def _fetched(self, wanted: PageRequest) -> Response:
        cookies = self._request.cookies if self._for_operator(wanted) else {}
        shared = wanted.resource_type in _SHARED and wanted.method == "GET"
        # What was sent to the operator is no other frame's to see.
        shared = shared and cookies == self._request.cookies
        name = self._source.name
        if shared and (known := self._statics.get((name, wanted.url))):
            return known
        request = replace(
            self._request,
            url=wanted.url,
            cookies=cookies,
            accept=wanted.headers.get("accept", "*/*"),
            method=wanted.method,
            body=wanted.post_data_buffer,
            headers={k: v for k, v in wanted.headers.items() if k in _PASSED},
        )
        asked, answer = self._known.pop(wanted.url, (None, None))
        try:
            if asked != request or answer is None:
                answer = await self._fetcher.fetch(request)
        finally:
            if not shared:
                self.parts.add(request, answer)
        if shared:
            self._statics.keep(name, wanted.url, answer)
        return answer

    def _for_operator(self, wanted: PageRequest) -> bool:
        """Whether the source's cookies go with a request: it only reads, and is the source's own.

        The browser has no cookies, and so knows nothing of SameSite or of requests without them.
        """
        from playwright.async_api import Error

        if wanted.method not in _READING and not self._source.post_cookies:
            return False
        try:
            frame = wanted.frame
        except Error:  # of a window that is not there yet
            return False
        above = frame.parent_frame
        # A frame is opened empty by the one above it; a request for its page is that one's.
        opened = wanted.is_navigation_request() and above is not None and frame.url in _BLANK
        asking = above if opened else frame
        while asking is not None:
            # The page's own before the browser has said so.
            unsaid = asking.parent_frame is None and asking.url in _BLANK
            if not self._own(self._first if unsaid else asking.url):
                return False
            asking = asking.parent_frame
        # The page may have moved on a moment ago: what it says of itself must not differ.
        origins = (wanted.headers.get(name) for name in ("origin", "referer"))
        return all(self._own(url) for url in origins if url)

    def _own(self, url: str) -> bool:
        return host_of(url) == host_of(self._request.source)


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
        seen = await _seen(page, source, requests.answers)
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
        self.n = n
        self._free = asyncio.Semaphore(n)
        self._next = asyncio.Lock()

    @asynccontextmanager
    async def take(self, wanted: int) -> AsyncIterator[None]:
        """So many places; with all `n` of them nobody else has one meanwhile."""
        taken = 0
        try:
            async with self._next:
                while taken < wanted:
                    await self._free.acquire()
                    taken += 1
            yield
        finally:
            for _ in range(taken):
                self._free.release()


class BrowserPool:
    """`config.render_contexts` pages at once in one Chromium, which is started on first use."""

    def __init__(self, config: CrawlConfig, fetcher: Fetcher) -> None:
        self._config = config
        self._fetcher = fetcher
        self._statics = StaticFiles()
        self._unchanged = UnchangedPages(fetcher)
        self._slots = Slots(config.render_contexts)
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
        read = partial(self._read, source, request, first, enough, known)
        for alone in (False, True):
            # A browser that was lost says nothing of who brought it down: shown again alone, the
            # guilty page does it once more and the others are simply shown.
            try:
                async with self._place(alone=alone):
                    return await self._show(request.url, read)
            except BrowserFailedError:
                log.warning("%s: the browser failed while it was shown", request.url)
        raise FetchError("render", f"{request.url}: the browser failed at it twice.", retry_after=0)

    @asynccontextmanager
    async def _place(self, *, alone: bool) -> AsyncIterator[None]:
        if self._worn():
            async with self._slots.take(self._slots.n):
                if self._worn():
                    await self._end_browser()
        async with self._slots.take(self._slots.n if alone else 1):
            yield

    def _worn(self) -> bool:
        browser = self._browser
        if browser is None:
            return False
        full = browser.memory > self._config.browser_memory_mb * _MEGABYTE
        return full or browser.pages >= self._config.recycle_pages or browser.lost

    async def _show(
        self,
        url: str,
        read: Callable[[ChromiumProcess, BrowserContext], Coroutine[Any, Any, Sequence[Found]]],
    ) -> Sequence[Found]:
        """Show one page within the deadline. Raises BrowserFailedError and FetchError."""
        browser = await self._started()
        browser.pages += 1
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
                return await browser.doing(read(browser, context))
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
        self,
        source: SourceConfig,
        request: Request,
        first: Response,
        enough: Callable[[Sequence[Found]], bool],
        known: Answered,
        browser: ChromiumProcess,
        context: BrowserContext,
    ) -> Sequence[Found]:
        requests = PageRequests(self._fetcher, self._statics, source, request, first, known)
        await context.route("**/*", requests.handle)
        page = await browser.open_page(context)
        context.on("page", _close)
        # `render_deadline` is the limit, not Playwright's own.
        await page.goto(first.url, wait_until="commit", timeout=0)
        shown = await collect(page, source, requests, enough, patience=self._config.timeout)
        self._unchanged.keep(source.name, request.url, requests.parts, shown)
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
        async with self._slots.take(self._slots.n):
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
