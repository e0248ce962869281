"""Public timelines of Mastodon and its kin (docs.joinmastodon.org/methods/timelines)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, Inline, ListedItem, Pseudonyms, Web
from embedding.sources.config import SourceConfig
from embedding.sources.dotted import dotted_text, page_json
from embedding.sources.kinds import COMMON_SETTINGS, SOURCES, WEB, SourceTraits
from embedding.sources.markup import plain_text
from embedding.sources.times import parse_time

_TIMELINE = "/api/v1/timelines/public"
_PAGE = 40
"""Posts of one answer: the most that servers give."""


@SOURCES.register(
    "mastodon", SourceTraits(settings=(*COMMON_SETTINGS, *WEB, "pages"), noun="a public timeline")
)
class MastodonAdapter:
    """Lists posts, newest first, until all of an answer are known.

    `url` is a server, or the address of another timeline there, as that of a tag. Posts that say
    they are in another language than the source's are passed over.
    """

    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        self.source = source
        self.complete = False
        self._pseudonyms = pseudonyms

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        self.complete = False
        left, before = self.source.max_items, ""
        for _ in range(self.source.pages):
            page = await web.get(self._address(before), accept="application/json")
            if page is None:
                self.complete = True
                return
            posts, found = await asyncio.to_thread(self._read, page)
            for item in found[:left]:
                yield item
            left -= len(found)
            # An answer without a wanted post says nothing of those behind it.
            if not posts or (found and web.all_known([one.key for one in found])):
                self.complete = True
                return
            before = dotted_text(posts[-1], "id")
            if left <= 0 or not before:
                return

    def _address(self, before: str) -> str:
        parts = urlsplit(self.source.url)
        path = parts.path if parts.path.strip("/") else _TIMELINE
        query = {"limit": str(_PAGE), **({"max_id": before} if before else {})}
        joined = "&".join(filter(None, (parts.query, urlencode(query))))
        return urlunsplit((parts.scheme, parts.netloc, path, joined, ""))

    def _read(self, page: FetchedPage) -> tuple[list[Any], list[Inline]]:
        posts = page_json(page)
        if not isinstance(posts, list):
            raise FetchError("parse", f"{page.url}: no list of posts in the answer.")
        return posts, [one for one in map(self._item, posts) if one is not None]

    def _item(self, post: Any) -> Inline | None:
        source = self.source
        text = plain_text(dotted_text(post, "content"))
        key = dotted_text(post, "url") or dotted_text(post, "uri")
        language = dotted_text(post, "language")
        foreign = bool(
            source.language
            and language
            and language.partition("-")[0].lower() != source.language.partition("-")[0].lower()
        )
        if not text or not key or foreign:
            return None
        return Inline(
            key=key,
            text=text,
            published_at=parse_time(dotted_text(post, "created_at"), source.timezone),
            title=dotted_text(post, "spoiler_text"),
            author=self._pseudonyms.grouped(source.name, dotted_text(post, "account.acct")),
        )
