"""Rendering pages in Chromium, with every byte fetched by the crawler itself.

Each request of a page is answered through the `Fetcher`: robots.txt, rates, size limits and the
address guard hold for scripts exactly as for plain pages. Images, media and fonts are blocked.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from embedding.crawl.chromium import chromium_flags, find_chromium
from embedding.crawl.config import CrawlConfig
from embedding.crawl.fetcher import Answer, Fetcher, Request
from embedding.errors import FetchError
from embedding.sources.base import Found
from embedding.sources.config import SourceConfig

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Playwright, Route

log = logging.getLogger(__name__)

_FETCHED = ("document", "script", "stylesheet", "xhr", "fetch", "manifest", "other")
_PASSED = ("accept", "content-type", "referer", "x-requested-with")
_CLOSE = 3.0
_QUIET = 0.15
"""Seconds between two looks at a page."""
_STILL = 8
"""Looks without anything new after which a page that asks for nothing is taken to have ended."""

_EXTRACT = """([items, fields]) => {
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
  return Array.from(document.querySelectorAll(items || "a[href]")).map(node => ({
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


@dataclass
class _Traffic:
    """How many requests of a page wait for their answer."""

    open: int = 0


class BrowserPool:
    """One Chromium, started on first use and anew after `recycle_pages` pages."""

    def __init__(self, config: CrawlConfig, fetcher: Fetcher) -> None:
        self._config = config
        self._fetcher = fetcher
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._pages = 0
        # One page at a time: a second Chromium tab would only share the same cores.
        self._turn = asyncio.Lock()

    async def render(
        self,
        source: SourceConfig,
        request: Request,
        enough: Callable[[Sequence[Found]], bool],
    ) -> Sequence[Found]:
        """Items of the page at `request.url`; see `Web.render`. Raises FetchError."""
        async with self._turn:
            try:
                async with asyncio.timeout(self._config.render_deadline):
                    return await self._render(source, request, enough)
            except TimeoutError as error:
                await self._stop_browser()
                raise FetchError(
                    "timeout",
                    f"{request.url}: not rendered within {self._config.render_deadline:g} s.",
                    retry_after=0,
                ) from error

    async def _render(
        self, source: SourceConfig, request: Request, enough: Callable[[Sequence[Found]], bool]
    ) -> Sequence[Found]:
        # The first answer is fetched here, so that its redirects are known before the page opens.
        first = await self._fetcher.fetch(replace(request, accept="text/html,*/*;q=0.5"))
        browser = await self._started()
        self._pages += 1
        from playwright.async_api import Error

        try:
            context = await browser.new_context(
                user_agent=self._config.user_agent,
                locale="ko-KR",
                service_workers="block",
                accept_downloads=False,
            )
            try:
                page = await context.new_page()
                traffic = _Traffic()
                await context.route("**/*", self._answering(request, first, traffic))
                # `render_deadline` is the limit, not Playwright's own.
                await page.goto(first.url, wait_until="domcontentloaded", timeout=0)
                return await _collect(page, source, enough, traffic, self._config.timeout)
            finally:
                if not await _quietly(context.close()):
                    # What was read stands; a browser in this state is replaced before the next.
                    self._pages = self._config.recycle_pages
        except Error as error:
            if not browser.is_connected():
                await self._stop_browser()
            raise FetchError(
                "render", f"{request.url}: the browser could not show it.", retry_after=0
            ) from error

    def _answering(
        self, request: Request, first: Answer, traffic: _Traffic
    ) -> Callable[[Route], Awaitable[None]]:
        """A route handler that fetches with the crawler's client on the page's behalf."""
        waiting = {first.url: first}

        async def answer(route: Route) -> None:
            wanted = route.request
            kind = wanted.resource_type
            if kind not in _FETCHED or not wanted.url.startswith(("http://", "https://")):
                await route.abort("blockedbyclient")
                return
            try:
                found = waiting.pop(wanted.url, None) or await self._fetcher.fetch(
                    replace(
                        request,
                        url=wanted.url,
                        accept=wanted.headers.get("accept", "*/*"),
                        method=wanted.method,
                        body=wanted.post_data_buffer,
                        headers={k: v for k, v in wanted.headers.items() if k in _PASSED},
                    )
                )
            except FetchError as error:
                log.debug("%s inside a rendered page: %s", error.reason, wanted.url)
                await route.abort("failed")
                return
            headers, body = _headers(found), found.body
            if kind == "document":
                # The crawler's reading of the encoding holds, whatever the page says of itself.
                headers["content-type"] = "text/html; charset=utf-8"
                body = found.text().encode("utf-8", "replace")
            await route.fulfill(status=found.status, headers=headers, body=body)

        async def guarded(route: Route) -> None:
            from playwright.async_api import Error

            traffic.open += 1
            try:
                await answer(route)
            except Error:
                # The page was closed while its request was on the way.
                log.debug("a rendered page closed before its request was answered")
            finally:
                traffic.open -= 1

        return guarded

    async def _started(self) -> Browser:
        if self._browser is not None and (
            self._pages >= self._config.recycle_pages or not self._browser.is_connected()
        ):
            await self._stop_browser()
        if self._browser is None:
            self._browser = await self._launch()
            self._pages = 0
        return self._browser

    async def _launch(self) -> Browser:
        try:
            from playwright.async_api import Error, async_playwright
            from playwright.async_api import TimeoutError as TooSlow
        except ImportError as error:
            raise FetchError(
                "no_browser", "Playwright is not installed; install the extra `render`."
            ) from error
        executable = find_chromium(self._config.browser)
        try:
            if self._playwright is None:
                self._playwright = await async_playwright().start()
            return await self._playwright.chromium.launch(
                executable_path=executable,
                args=chromium_flags(),
                chromium_sandbox=os.geteuid() != 0,
                handle_sigint=False,
            )
        except TooSlow as error:
            # A busy machine, not a missing browser: the source must not be given up.
            raise FetchError(
                "timeout", "Chromium took too long to start.", retry_after=0
            ) from error
        except (Error, OSError) as error:
            raise FetchError(
                "no_browser",
                "no Chromium could be started: install `chromium`, run `playwright install "
                "chromium`, or set crawl.browser; rendered sources are skipped.",
            ) from error

    async def _stop_browser(self) -> None:
        browser, self._browser = self._browser, None
        if browser is not None:
            await _quietly(browser.close())

    async def close(self) -> None:
        """End Chromium and Playwright's driver."""
        await self._stop_browser()
        driver, self._playwright = self._playwright, None
        if driver is not None:
            # The driver ends any browser that did not close by itself.
            await _quietly(driver.stop())


async def _quietly(closing: Awaitable[None]) -> bool:
    """Close within the time limit; a browser that crashed has nothing left to close.

    Not with `asyncio.wait_for`, which may drop a cancellation (see SourceRunner._wait).
    """
    from playwright.async_api import Error

    try:
        async with asyncio.timeout(_CLOSE):
            await closing
    except (Error, TimeoutError, OSError):
        log.warning("Chromium did not close by itself")
        return False
    return True


def _headers(found: Answer) -> dict[str, str]:
    """Headers for the page; the body is unpacked already and its length is set anew."""
    dropped = ("content-encoding", "content-length", "transfer-encoding", "connection")
    return {key: value for key, value in found.headers.items() if key not in dropped}


async def _collect(
    page: Page,
    source: SourceConfig,
    enough: Callable[[Sequence[Found]], bool],
    traffic: _Traffic,
    patience: float,
) -> Sequence[Found]:
    """Wait for items, then scroll until there are enough, no more come, or `pages` scrolls.

    While the page waits for an answer more may come: the looks at it do not count, for `patience`
    seconds at most, as some pages keep a request open for ever.
    """
    fields = {
        name: getattr(source, name) for name in ("id", "link", "title", "time", "text", "author")
    }
    found: Sequence[Found] = ()
    still = scrolls = 0
    changed = time.monotonic()
    while True:
        seen = [
            Found(**{key: str(value)[:100_000] for key, value in one.items()})
            for one in await _evaluate(page, source.items, fields)
        ]
        if not traffic.open or time.monotonic() - changed > patience:
            still += 1
        if len(seen) > len(found):
            found, still, changed = seen, 0, time.monotonic()
            if enough(found) or scrolls >= source.pages:
                return found
            scrolls += 1
            await page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
        elif found and still >= _STILL:
            return found
        elif not found and still >= _STILL * 4:
            raise FetchError(
                "empty", f"{source.url}: no item {source.items or 'a[href]'!r} appeared."
            )
        await asyncio.sleep(_QUIET)


async def _evaluate(page: Page, items: str | None, fields: dict[str, Any]) -> list[dict[str, str]]:
    result: Any = await page.evaluate(_EXTRACT, [items, fields])
    if not isinstance(result, list):
        raise FetchError("parse", f"the page answered {json.dumps(type(result).__name__)}.")
    return result
