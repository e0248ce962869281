"""RSS and Atom feeds."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import feedparser

from embedding.errors import FetchError
from embedding.sources.base import Item, Page, Reference, Web
from embedding.sources.config import SourceConfig
from embedding.sources.links import join
from embedding.sources.times import parse_time

_ACCEPT = "application/rss+xml, application/atom+xml, application/xml;q=0.9, */*;q=0.5"
_ENCODING = re.compile(r"^(\s*<\?xml[^>]*?)\s+encoding\s*=\s*(['\"])[^'\"]*\2", re.IGNORECASE)
_DEFECTS = (ValueError, TypeError, LookupError, AttributeError, AssertionError, RecursionError)
"""What feedparser raises for some feeds instead of reading what it can."""


class FeedAdapter:
    """Lists the entries of one RSS or Atom feed."""

    def __init__(self, source: SourceConfig) -> None:
        self.source = source
        self.complete = False
        self._links = re.compile(source.links or "")

    async def poll(self, web: Web) -> AsyncIterator[Item]:
        """Entries of the feed; nothing when it has not changed."""
        self.complete = False
        page = await web.get(self.source.url, accept=_ACCEPT)
        if page is not None:
            references = await asyncio.to_thread(self._read, page)
            for reference in references[: self.source.max_items]:
                yield reference
        self.complete = True

    def _read(self, page: Page) -> list[Reference]:
        # The page is decoded already: an encoding in its prolog can only be wrong now.
        text = _ENCODING.sub(r"\1", page.text, count=1)
        try:
            feed = feedparser.parse(
                text.encode(), response_headers={"content-type": "application/xml; charset=utf-8"}
            )
        except _DEFECTS as error:
            raise FetchError("parse", f"{page.url}: the feed cannot be read.") from error
        if not feed.entries and (feed.bozo or not feed.get("version")):
            raise FetchError("parse", f"{page.url}: not an RSS or Atom feed.")
        found = (self._reference(entry, page.url) for entry in feed.entries)
        return [reference for reference in found if reference is not None]

    def _reference(self, entry: Any, base: str) -> Reference | None:
        link = join(base, entry.get("link"))
        if not link or not self._links.search(link):
            return None
        times = (
            parse_time(entry.get(name), self.source.timezone)
            for name in ("published", "created", "updated")
        )
        when = next((time for time in times if time is not None), None)
        return Reference(link, when, entry.get("title") or "")
