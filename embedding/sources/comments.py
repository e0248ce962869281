"""Comments from a JSON endpoint that is read with cursors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from embedding.kernel.errors import FetchError
from embedding.sources.base import Inline, ListedItem, Pseudonyms, Web, event_time
from embedding.sources.config import SourceConfig
from embedding.sources.dotted import dotted, dotted_text, page_json
from embedding.sources.kinds import COMMON_SETTINGS, ITEM, SOURCES, WEB, SourceTraits
from embedding.sources.links import join
from embedding.sources.markup import plain_text
from embedding.sources.times import parse_time


@SOURCES.register(
    "comments",
    SourceTraits(
        settings=(*COMMON_SETTINGS, *WEB, "pages", *ITEM, "next", "cursor", "order"),
        defaults={
            "items": "comments",
            "id": "id",
            "text": "text",
            "time": "time",
            "author": "author",
            "next": "next",
            "cursor": "cursor",
        },
        noun="a list of comments",
    ),
)
class CommentsAdapter:
    """Lists comments, newest or oldest first, cursor after cursor."""

    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        self.source = source
        self.complete = False
        self._pseudonyms = pseudonyms
        self._cursor = ""

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        """Comments until the cursors end or, newest first, until all of an answer are known."""
        self.complete = False
        left = self.source.max_items
        oldest_first = self.source.order == "oldest"
        cursor = self._cursor if oldest_first else ""
        for _ in range(self.source.pages):
            page = await web.get(self._address(cursor), accept="application/json")
            if page is None:
                self.complete = True
                return
            answer = await asyncio.to_thread(page_json, page)
            found = await asyncio.to_thread(self._comments, answer, page.url, event_time(web))
            keys = [item.key for item in found]
            all_known = bool(keys) and not oldest_first and web.all_known(keys)
            # An answer is always handed over whole: a cursor cannot point into its middle.
            for item in found:
                yield item
            left -= len(found)
            following = dotted_text(answer, self.source.next)
            if all_known or not following or following == cursor:
                self.complete = True
                return
            cursor = self._cursor = following
            if left <= 0:
                return

    def _address(self, cursor: str) -> str:
        if not cursor:
            return self.source.url
        if cursor.startswith(("http://", "https://", "/", "?")):
            return join(self.source.url, cursor) or self.source.url
        parts = urlsplit(self.source.url)
        name = self.source.cursor or "cursor"
        kept = [pair for pair in parts.query.split("&") if pair and pair.partition("=")[0] != name]
        query = "&".join([*kept, urlencode({name: cursor})])
        return urlunsplit(parts._replace(query=query))

    def _comments(self, answer: Any, base: str, now: datetime) -> list[Inline]:
        items = dotted(answer, self.source.items)
        if not isinstance(items, list):
            raise FetchError(
                "parse", f"{base}: no list of comments under {self.source.items!r} in the answer."
            )
        found = (self._comment(item, base, now) for item in items)
        return [comment for comment in found if comment is not None]

    def _comment(self, item: Any, base: str, now: datetime) -> Inline | None:
        source = self.source
        identity = dotted_text(item, source.id)
        text = plain_text(dotted_text(item, source.text))
        if not identity or not text:
            return None
        # Without a page of their own comments belong to the endpoint, whatever the cursor.
        page = join(base, dotted_text(item, source.link)) or source.url
        return Inline(
            key=f"{page.partition('#')[0]}#comment-{identity}",
            text=text,
            published_at=parse_time(dotted(item, source.time), source.timezone, now),
            title=dotted_text(item, source.title),
            author=self._pseudonyms.grouped(source.name, dotted_text(item, source.author)),
        )
