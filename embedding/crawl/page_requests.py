"""What a rendered page asks for, answered by the crawler's own client."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from embedding.crawl.fetcher import Answer, Fetcher, Request
from embedding.crawl.statics import StaticFiles
from embedding.errors import FetchError
from embedding.sources.answers import PageAnswers

if TYPE_CHECKING:
    from playwright.async_api import Request as PageRequest
    from playwright.async_api import Route

log = logging.getLogger(__name__)

_FETCHED = ("document", "script", "stylesheet", "xhr", "fetch", "manifest", "other")
_SHARED = ("script", "stylesheet")
_PASSED = ("accept", "content-type", "referer", "x-requested-with")
_READ = ("xhr", "fetch")


class PageRequests:
    """Route handler of one page. Robots, rates, sizes and the address guard hold for each request.

    Images, media and fonts are refused, and everything after `limit` requests.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        statics: StaticFiles,
        request: Request,
        first: Answer,
        answers: PageAnswers,
        *,
        source: str,
        limit: int,
    ) -> None:
        self._fetcher = fetcher
        self._statics = statics
        self._request = request
        self._waiting: dict[str, Answer] = {first.url: first}
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
            self._answers.take(url, found.body)
        await route.fulfill(status=found.status, headers=headers, body=body)

    async def _found(self, wanted: PageRequest) -> Answer:
        shared = wanted.resource_type in _SHARED and wanted.method == "GET"
        kept = self._statics.get(self._source, wanted.url, time.monotonic()) if shared else None
        if kept is not None:
            return kept
        answer = await self._fetcher.fetch(
            replace(
                self._request,
                url=wanted.url,
                accept=wanted.headers.get("accept", "*/*"),
                method=wanted.method,
                body=wanted.post_data_buffer,
                headers={k: v for k, v in wanted.headers.items() if k in _PASSED},
            )
        )
        if shared:
            self._statics.put(self._source, wanted.url, answer, time.monotonic())
        return answer


def _headers(found: Answer) -> dict[str, str]:
    """Headers for the page; the body is unpacked already and its length is set anew."""
    dropped = ("content-encoding", "content-length", "transfer-encoding", "connection")
    return {key: value for key, value in found.headers.items() if key not in dropped}
