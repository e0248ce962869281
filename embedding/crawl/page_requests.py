"""What a rendered page asks for, answered by the crawler's own client."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from embedding.crawl.addresses import host_of
from embedding.crawl.assetcache import StaticFiles
from embedding.crawl.fetcher import Fetcher, Request, Response
from embedding.crawl.unchanged import Answered, PageParts
from embedding.kernel.errors import FetchError
from embedding.sources.answers import PageAnswers
from embedding.sources.config import SourceConfig

if TYPE_CHECKING:
    from playwright.async_api import Frame, Route
    from playwright.async_api import Request as PageRequest

log = logging.getLogger(__name__)

_FETCHED = ("document", "script", "stylesheet", "xhr", "fetch", "manifest", "other")
_SHARED = ("script", "stylesheet")
_PASSED = ("accept", "content-type", "referer", "x-requested-with")
_READ = ("xhr", "fetch")
_READING = ("GET", "HEAD")
_EMPTY = ("", "about:blank")
"""Addresses of a frame that shows nothing yet."""


class PageRequests:
    """Route handler of one page. Robots, rates, sizes and the address guard hold for each request.

    Images, media and fonts are refused, and everything after `limit` requests.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        statics: StaticFiles,
        request: Request,
        first: Response,
        answers: PageAnswers,
        *,
        parts: PageParts,
        known: Answered,
        source: SourceConfig,
        limit: int,
    ) -> None:
        self._fetcher = fetcher
        self._statics = statics
        self._request = request
        self._first = first.url
        self._waiting: dict[str, Response] = {first.url: first}
        self._known = dict(known)
        self._parts = parts
        self._answers = answers
        self._source = source
        self._left = limit
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
            found = self._waiting.pop(url, None) or await self._found(wanted)
            headers, body = _headers(found), found.body
            if kind == "document":
                # The crawler's reading of the encoding holds, whatever the page says of itself.
                headers["content-type"] = "text/html; charset=utf-8"
                body = found.text().encode("utf-8", "replace")
        except FetchError as error:
            log.debug("%s inside a rendered page: %s", error.reason, url)
            await route.abort("failed")
            return
        if kind in _READ:
            await asyncio.to_thread(self._answers.take, url, found.body)
        await route.fulfill(status=found.status, headers=headers, body=body)

    async def _found(self, wanted: PageRequest) -> Response:
        cookies = self._request.cookies if self._for_operator(wanted) else {}
        shared = wanted.resource_type in _SHARED and wanted.method == "GET"
        # What was sent to the operator is no other frame's to see.
        shared = shared and cookies == self._request.cookies
        name = self._source.name
        kept = self._statics.get(name, wanted.url, time.monotonic()) if shared else None
        if kept is not None:
            return kept
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
                self._parts.add(request, answer)
        if shared:
            self._statics.put(name, wanted.url, answer, time.monotonic())
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
        opened = wanted.is_navigation_request() and above is not None and frame.url in _EMPTY
        asking = above if opened else frame
        while asking is not None:
            if not self._own(self._shown(asking)):
                return False
            asking = asking.parent_frame
        # The page may have moved on a moment ago: what it says of itself must not differ.
        origins = (wanted.headers.get(name) for name in ("origin", "referer"))
        return all(self._own(url) for url in origins if url)

    def _shown(self, frame: Frame) -> str:
        """Its address; the page's own before the browser has said so."""
        return self._first if frame.parent_frame is None and frame.url in _EMPTY else frame.url

    def _own(self, url: str) -> bool:
        return host_of(url) == host_of(self._request.source)


def _headers(found: Response) -> dict[str, str]:
    """Headers for the page; the body is unpacked already and its length is set again."""
    dropped = ("content-encoding", "content-length", "transfer-encoding", "connection")
    return {key: value for key, value in found.headers.items() if key not in dropped}
