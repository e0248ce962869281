"""Pages and listings are read outside the event loop: in worker processes, or in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from embedding.crawl.extract import Extracted, read_page
from embedding.crawl.extract_worker import ask_listing, decode, decode_listing
from embedding.crawl.fetcher import Response
from embedding.crawl.shorten import shortened
from embedding.kernel.children import Child
from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, ListingPage
from embedding.sources.config import SourceConfig
from embedding.sources.registry import read_listing

T = TypeVar("T")

_READABLE = ("text/", "application/xhtml", "application/xml")
_WORKER = "embedding.crawl.extract_worker"
_STARTING = 60.0
"""Seconds more that the first page of a process may take: it loads its libraries."""


class _TooLongError(Exception):
    """Something took longer than it may."""


class Extractor:
    """Reads pages and listings in `processes` processes of their own; with 0 in a thread.

    One that takes longer than `limit` seconds, or that kills its process, is refused by itself; its
    process is replaced. Of a text the first `most` characters are kept.
    """

    def __init__(self, processes: int, limit: float, most: int) -> None:
        self._processes = processes
        self._limit = limit
        self._most = most
        self._idle: asyncio.LifoQueue[Child | None] = asyncio.LifoQueue()
        for _ in range(max(1, processes)):
            self._idle.put_nowait(None)
        self._started: set[Child] = set()

    async def read(
        self, answer: Response | FetchedPage, zone: str, least: int, authors: Sequence[str] = ()
    ) -> Extracted:
        """What a page holds; times without a zone are in `zone`.

        authors  names that the listing gave; they are taken out of the text

        Raises FetchError (`not_html`; `empty` for fewer than `least` characters; see `extract`).
        """
        kind = answer.headers.get("content-type", "text/html")
        if not kind.lower().startswith(_READABLE):
            raise FetchError("not_html", f"{answer.url}: is {kind.partition(';')[0]}, not HTML.")
        found = await self.extract(answer.body, kind, answer.url, zone, authors)
        if len(found.text) < least:
            raise FetchError("empty", f"{answer.url}: fewer than {least} characters of text.")
        return replace(found, text=shortened(found.text, self._most))

    async def extract(
        self, body: bytes, content_type: str, url: str, zone: str, authors: Sequence[str] = ()
    ) -> Extracted:
        """See `read_page`; raises FetchError (`bad_encoding`, `empty`, `parse`)."""
        if self._processes == 0:
            return await self._in_thread(url, read_page, body, content_type, url, zone, authors)
        header = {"type": content_type, "url": url, "zone": zone, "authors": list(authors)}
        return decode(await self._ask(url, header, body))

    async def listing(self, source: SourceConfig, page: FetchedPage) -> ListingPage:
        """See `read_listing`; raises FetchError."""
        if self._processes == 0:
            return await self._in_thread(page.url, read_listing, source, page)
        return decode_listing(await self._ask(page.url, *ask_listing(source, page)))

    async def _in_thread(self, url: str, call: Callable[..., T], *arguments: Any) -> T:
        place = await self._idle.get()
        try:
            return await self._within(asyncio.to_thread(call, *arguments), url, 0.0)
        except _TooLongError as error:
            raise FetchError("parse", str(error)) from error
        finally:
            self._idle.put_nowait(place)

    async def _ask(self, url: str, header: dict[str, Any], body: bytes) -> dict[str, Any]:
        """The answer of a process; FetchError (`parse`) where it gives none, and it is replaced."""
        process = await self._idle.get()
        try:
            extra = 0.0
            if process is None:
                process, extra = await self._start(), _STARTING
            return (await self._within(process.ask(header, body), url, extra))[0]
        except _TooLongError as error:
            await self._end(process)
            process = None
            raise FetchError("parse", str(error)) from error
        except (OSError, EOFError, ValueError) as error:
            await self._end(process)
            process = None
            raise FetchError("parse", f"{url}: the page ended its extraction process.") from error
        except asyncio.CancelledError:
            # Its answer is still to come and must not be taken for the next page's.
            if process is not None:
                process.kill()
            process = None
            raise
        finally:
            self._idle.put_nowait(process)

    async def _within(self, call: Awaitable[T], url: str, extra: float) -> T:
        # Not `asyncio.wait_for`, which may drop a cancellation (see SourceRunner._wait).
        try:
            async with asyncio.timeout(self._limit + extra):
                return await call
        except TimeoutError as error:
            raise _TooLongError(f"{url}: reading it took longer than {self._limit:g} s.") from error

    async def _start(self) -> Child:
        child = await Child.start(_WORKER, quiet=True)
        self._started.add(child)
        return child

    async def _end(self, child: Child | None) -> None:
        """Kill a process and wait until it is gone."""
        if child is not None:
            self._started.discard(child)
            await child.end()

    async def close(self) -> None:
        """End all processes."""
        await asyncio.gather(*map(self._end, list(self._started)), return_exceptions=True)
