"""Comments from a JSON endpoint that is read with cursors, and what other such endpoints share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import ClassVar
from urllib.parse import urlencode, urlsplit, urlunsplit

from embedding.kernel.errors import FetchError
from embedding.sources.base import (
    FetchedPage,
    Inline,
    ListedItem,
    Pseudonyms,
    SourceAdapter,
    Web,
    event_time,
)
from embedding.sources.config import SourceConfig
from embedding.sources.dotted import dotted, dotted_text, page_json
from embedding.sources.kinds import COMMON_SETTINGS, ITEM, SOURCES, WEB, SourceTraits
from embedding.sources.links import join
from embedding.sources.markup import plain_text
from embedding.sources.times import parse_time


class CursorAdapter(SourceAdapter):
    """Reads the answers of an endpoint, cursor after cursor, newest or oldest text first."""

    WHOLE: ClassVar = True
    """Each answer is handed over whole: a cursor cannot point into its middle."""

    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        super().__init__(source, pseudonyms)
        self._cursor = ""

    def _address(self, cursor: str) -> str:
        """Where the answer behind `cursor` is; behind "" it is the first one."""
        raise NotImplementedError

    def _read(self, page: FetchedPage, now: datetime) -> tuple[Sequence[Inline], str]:
        """The texts of an answer, and the cursor of the next one; "" at the end."""
        raise NotImplementedError

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        """Texts until the cursors end or, newest first, until all of an answer are known."""
        self.complete = False
        left, oldest_first = self.source.max_items, self.source.order == "oldest"
        cursor = self._cursor if oldest_first else ""
        for _ in range(self.source.pages):
            page = await web.get(self._address(cursor), accept="application/json")
            if page is None:
                break
            texts, following = await asyncio.to_thread(self._read, page, event_time(web))
            # An answer without a wanted text says nothing of those behind it.
            known = texts and not oldest_first and web.all_known([text.key for text in texts])
            for text in texts if self.WHOLE else texts[:left]:
                yield text
            left -= len(texts)
            if known or following in ("", cursor):
                break
            cursor = self._cursor = following
            if left <= 0:
                return
        else:
            return
        self.complete = True


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
class CommentsAdapter(CursorAdapter):
    """Lists comments, newest or oldest first, cursor after cursor."""

    def _address(self, cursor: str) -> str:
        if not cursor:
            return self.source.url
        if cursor.startswith(("http://", "https://", "/", "?")):
            return join(self.source.url, cursor) or self.source.url
        parts = urlsplit(self.source.url)
        name = self.source.cursor or "cursor"
        others = [
            pair for pair in parts.query.split("&") if pair and pair.partition("=")[0] != name
        ]
        return urlunsplit(parts._replace(query="&".join([*others, urlencode({name: cursor})])))

    def _read(self, page: FetchedPage, now: datetime) -> tuple[Sequence[Inline], str]:
        source, answer, comments = self.source, page_json(page), []
        items = dotted(answer, source.items)
        if not isinstance(items, list):
            raise FetchError(
                "parse", f"{page.url}: no list of comments under {source.items!r} in the answer."
            )
        for item in items:
            identity = dotted_text(item, source.id)
            text = plain_text(dotted_text(item, source.text))
            if not identity or not text:
                continue
            # Without a page of their own comments belong to the endpoint, whatever the cursor.
            of = join(page.url, dotted_text(item, source.link)) or source.url
            comments.append(
                self.inline(
                    f"{of.partition('#')[0]}#comment-{identity}",
                    text,
                    parse_time(dotted(item, source.time), source.timezone, now),
                    dotted_text(item, source.title),
                    dotted_text(item, source.author),
                )
            )
        return comments, dotted_text(answer, source.next)
