"""Pages whose items appear only after their scripts ran."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from embedding.sources.base import Found, Inline, ListedItem, Pseudonyms, Reference, Web, event_time
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import COMMON_SETTINGS, ITEM, SOURCES, WEB, SourceTraits
from embedding.sources.links import join
from embedding.sources.times import parse_time


def check_items(source: SourceConfig) -> None:
    """ValueError for texts that are looked for in no item."""
    if source.text and not (source.items or source.named_answers):
        raise ValueError("`text` needs `items`, the selector of one item")


@SOURCES.register(
    "rendered",
    SourceTraits(
        settings=(*COMMON_SETTINGS, *WEB, "links", "pages", *ITEM, "answers", "post_cookies"),
        check=check_items,
        noun="a rendered page",
        browser=True,
    ),
)
class RenderedAdapter:
    """Lists the items of a rendered page: inline texts, or links when no text is found there."""

    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        self.source = source
        self.complete = False
        self._pseudonyms = pseudonyms
        self._links = re.compile(source.links or "")

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        self.complete = False
        most = self.source.max_items

        def enough(found: Sequence[Found]) -> bool:
            # Boards show the newest first: once the lowest item is known, so is all below it.
            keys = [self._key(one) for one in found[-1:]]
            return len(found) >= most or bool(keys and web.all_known(keys))

        by_shape = self.source.answers and not self.source.items
        found = await web.render(self.source.url, enough=enough)
        now = event_time(web)
        for one in found[:most]:
            inline = self.source.text or (by_shape and one.text)
            item = self._inline(one, now) if inline else self._reference(one, now)
            if item is not None:
                yield item
        self.complete = True

    def _reference(self, one: Found, now: datetime) -> Reference | None:
        link = join(self.source.url, one.link)
        if not link or not self._links.search(link):
            return None
        return Reference(link, parse_time(one.time, self.source.timezone, now), one.title)

    def _inline(self, one: Found, now: datetime) -> Inline | None:
        if not one.text.strip():
            return None
        return Inline(
            key=self._key(one),
            text=one.text,
            published_at=parse_time(one.time, self.source.timezone, now),
            title=one.title,
            author=self._pseudonyms.grouped(self.source.name, one.author),
        )

    def _key(self, one: Found) -> str:
        """The item's own address, or the page's with the item's id, or with a digest of it."""
        link = join(self.source.url, one.link)
        if link and link != self.source.url:
            return link
        page = self.source.url.partition("#")[0]
        if one.id:
            return f"{page}#item-{one.id}"
        # `5분 전` is another text at the next poll: only a time that stays belongs to the item.
        stays = parse_time(one.time, self.source.timezone) is not None
        content = f"{one.author}\0{one.time if stays else ''}\0{one.text}".encode()
        return f"{page}#item-{hashlib.blake2b(content, digest_size=12).hexdigest()}"
