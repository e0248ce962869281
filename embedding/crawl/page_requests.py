"""What a rendered page asks for, answered by the crawler's own client."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from embedding.crawl.addresses import host_of
from embedding.crawl.fetcher import Fetcher, Request, Response
from embedding.kernel.errors import FetchError
from embedding.sources.answers import PageAnswers
from embedding.sources.base import Found
from embedding.sources.config import SourceConfig

if TYPE_CHECKING:
    from playwright.async_api import Request as PageRequest
    from playwright.async_api import Route

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


class StaticFiles:
    """Least recently used first out, at most `limit` bytes. Times are seconds of one clock."""

    def __init__(self, limit: int = 16 * 1024 * 1024) -> None:
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[tuple[str, str], tuple[float, Response]] = OrderedDict()

    def get(self, source: str, url: str, now: float) -> Response | None:
        """What `source` may use for `url` without asking again."""
        key = (source, url)
        until, answer = self._kept.get(key, (0.0, None))
        if answer is None:
            return None
        if until <= now:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return answer

    def put(self, source: str, url: str, answer: Response, now: float) -> None:
        """Keep an answer for as long as it says, unless it forbids it or is too large."""
        control = answer.headers.get("cache-control", "").lower()
        stated = _MAX_AGE.search(control)
        lasts = min(float(stated[1]), _LONGEST) if stated else _HEURISTIC
        lasts = 0.0 if _NEVER.search(control) else lasts
        if answer.status != 200 or lasts <= 0 or len(answer.body) > self._limit // 4:
            return
        self._drop((source, url))
        self._kept[source, url] = (now + lasts, answer)
        self._size += len(answer.body)
        while self._size > self._limit:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[str, str]) -> None:
        _, answer = self._kept.pop(key, (0.0, None))
        self._size -= len(answer.body) if answer else 0


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
            await asyncio.to_thread(self._answers.take, url, answer.body)
        await route.fulfill(status=answer.status, headers=headers, body=body)

    async def _fetched(self, wanted: PageRequest) -> Response:
        cookies = self._request.cookies if self._for_operator(wanted) else {}
        shared = wanted.resource_type in _SHARED and wanted.method == "GET"
        # What was sent to the operator is no other frame's to see.
        shared = shared and cookies == self._request.cookies
        name = self._source.name
        if shared and (known := self._statics.get(name, wanted.url, time.monotonic())):
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
            # The page's own before the browser has said so.
            unsaid = asking.parent_frame is None and asking.url in _EMPTY
            if not self._own(self._first if unsaid else asking.url):
                return False
            asking = asking.parent_frame
        # The page may have moved on a moment ago: what it says of itself must not differ.
        origins = (wanted.headers.get(name) for name in ("origin", "referer"))
        return all(self._own(url) for url in origins if url)

    def _own(self, url: str) -> bool:
        return host_of(url) == host_of(self._request.source)
