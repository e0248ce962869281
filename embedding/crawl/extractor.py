"""Pages and listings are read outside the event loop: in worker processes, or in a thread."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from embedding.crawl.extract import Extracted, read_page
from embedding.crawl.extract_worker import ask_listing, decode, decode_listing
from embedding.crawl.fetcher import Request, Response
from embedding.kernel.children import IDLE_SECONDS, Child, ChildPool, Reply
from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, ListingPage
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import read_listing

_END = re.compile(r"[.!?。…][\"'”’)\]]*(?=\s)|\n")
_BLANK = re.compile(r"\s")
_NEAR = 0.8
"""A sentence that ends before this share of the limit is too far back to cut there."""


def shortened(text: str, most: int) -> str:
    """The first `most` characters at most, to the end of a sentence, else of a word."""
    if len(text) <= most:
        return text
    least = int(most * _NEAR)
    for end in (_END, _BLANK):
        # One character more: it says whether a sentence or word ends right at the limit.
        ends = [match.end() for match in end.finditer(text, least, most + 1)]
        ends = [position for position in ends if position <= most + (end is _BLANK)]
        if ends:
            return text[: ends[-1]].rstrip()
    return text[:most]


T = TypeVar("T")
_Answer = TypeVar("_Answer", Response, FetchedPage)

_DEEPEST = 2
"""Pages that may stand before an article, as a refresh to a frameset."""

_READABLE = ("text/", "application/xhtml", "application/xml")
_WORKER = "embedding.crawl.extract_worker"
_SLICES = 20
_STARTING = 60.0
"""Seconds more that the first page of a process may take: it loads its libraries."""


class _NoArticleError(FetchError):
    """The page has no article; `url` stands in its place."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__("empty", message)
        self.url = url


class Extractor(ChildPool):
    """Reads pages and listings in `processes` processes of their own; with 0 in a thread.

    A page that takes longer than `limit` seconds, or kills its process, is refused alone and may be
    tried again: a busy machine is slow, and may kill. Its process is replaced. Processes end
    when nothing was read for `idle` seconds. Of a text the first `most` characters are kept.
    """

    def __init__(
        self, processes: int, limit: float, most: int, *, idle: float = IDLE_SECONDS
    ) -> None:
        super().__init__(max(1, processes), idle)
        self._in_processes = processes > 0
        self._limit = limit
        self._most = most
        self._thread = asyncio.Semaphore()

    async def read(
        self,
        answer: Response | FetchedPage,
        zone: str,
        least: int,
        authors: Sequence[str] = (),
        read_at: datetime | None = None,
    ) -> Extracted:
        """What a page holds; times without a zone are in `zone`.

        authors  names that the listing gave; they are taken out of the text
        read_at  event time of the fetch, to which `5분 전` refers

        Raises FetchError (`not_html`; `empty` for fewer than `least` characters; see `read_page`).
        """
        kind = answer.headers.get("content-type", "text/html")
        if not kind.lower().startswith(_READABLE):
            raise FetchError("not_html", f"{answer.url}: is {kind.partition(';')[0]}, not HTML.")
        if self._in_processes:
            header: dict[str, Any] = {"type": kind, "url": answer.url, "zone": zone}
            header |= {"authors": list(authors), "read_at": read_at}
            extracted = decode(*await self._ask(answer.url, header, answer.body))
        else:
            page = (answer.body, kind, answer.url, zone, authors, read_at)
            extracted = await self._in_thread(answer.url, read_page, *page)
        if not extracted.text or len(extracted.text) < least:
            message = f"{answer.url}: fewer than {least} characters of text."
            if extracted.shows:
                raise _NoArticleError(message, extracted.shows)
            raise FetchError("empty", message)
        return replace(extracted, text=shortened(extracted.text, self._most))

    async def follow(
        self,
        get: Callable[[Request], Awaitable[_Answer]],
        request: Request,
        zone: str,
        least: int,
        authors: Sequence[str] = (),
        read_at: datetime | None = None,
    ) -> tuple[_Answer, Extracted]:
        """Fetch and `read` a page; one without an article leads to what its frame or refresh shows.

        Returns the answer that held the article, too. Raises FetchError as `get` and `read` do.
        """
        for _ in range(_DEEPEST):
            answer = await get(request)
            try:
                return answer, await self.read(answer, zone, least, authors, read_at)
            except _NoArticleError as error:
                request = replace(request, url=error.url)
        answer = await get(request)
        return answer, await self.read(answer, zone, least, authors, read_at)

    async def listing(self, source: SourceConfig, page: FetchedPage) -> ListingPage:
        if not self._in_processes:
            return await self._in_thread(page.url, read_listing, source, page)
        return decode_listing((await self._ask(page.url, *ask_listing(source, page)))[0])

    async def _in_thread(self, url: str, call: Callable[..., T], *arguments: Any) -> T:
        async with self._thread:
            return await self._within(asyncio.to_thread(call, *arguments), url, 0.0)

    async def _ask(self, url: str, header: dict[str, Any], body: bytes) -> Reply:
        """The answer of a process; FetchError (`parse`) where it gives none, and it is replaced."""
        try:
            async with self._borrowed() as process:
                extra = 0.0 if process.asked else _STARTING
                return await self._within(process.ask(header, body), url, extra)
        except (OSError, EOFError, ValueError) as error:
            message = f"{url}: the page ended its extraction process."
            raise FetchError("parse", message, retry_after=0) from error

    async def _within(self, call: Awaitable[T], url: str, extra: float) -> T:
        """What `call` gives; FetchError (`parse`) after the limit.

        The limit is counted in slices. While the event loop stands still, as behind a locked
        database, one slice passes at most: a page that was read meanwhile is not refused.
        """
        reading = asyncio.ensure_future(call)
        try:
            for _ in range(_SLICES):
                seconds = (self._limit + extra) / _SLICES
                if (await asyncio.wait({reading}, timeout=seconds))[0]:
                    return reading.result()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        message = f"{url}: reading it took longer than {self._limit:g} s."
        raise FetchError("parse", message, retry_after=0)

    async def _spawn(self) -> Child:
        return await Child.start(_WORKER, quiet=True)
