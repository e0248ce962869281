"""Pages whose items appear only after their scripts ran."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Sequence

from embedding.sources.base import (
    Found,
    ListedItem,
    Pseudonyms,
    Reference,
    SourceAdapter,
    Web,
    event_time,
)
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
class RenderedAdapter(SourceAdapter):
    """Lists the items of a rendered page: inline texts, or links when no text is found there."""

    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        super().__init__(source, pseudonyms)
        self._links = re.compile(source.links or "")

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        self.complete = False
        most = self.source.max_items

        def enough(shown: Sequence[Found]) -> bool:
            # Boards show the newest first: once the lowest item is known, so is all below it.
            keys = [self._key(item) for item in shown[-1:]]
            return len(shown) >= most or bool(keys and web.all_known(keys))

        by_shape = self.source.answers and not self.source.items
        shown = await web.render(self.source.url, enough=enough)
        now = event_time(web)
        for item in shown[:most]:
            when = parse_time(item.time, self.source.timezone, now)
            if self.source.text or (by_shape and item.text):
                if item.text.strip():
                    yield self.inline(self._key(item), item.text, when, item.title, item.author)
            else:
                link = join(self.source.url, item.link)
                if link and self._links.search(link):
                    yield Reference(link, when, item.title)
        self.complete = True

    def _key(self, item: Found) -> str:
        """The item's own address, or the page's with the item's id, or with a digest of it."""
        link = join(self.source.url, item.link)
        if link and link != self.source.url:
            return link
        page = self.source.url.partition("#")[0]
        if item.id:
            return f"{page}#item-{item.id}"
        # `5분 전` is another text at the next poll: only a time that stays belongs to the item.
        stays = parse_time(item.time, self.source.timezone) is not None
        content = f"{item.author}\0{item.time if stays else ''}\0{item.text}".encode()
        return f"{page}#item-{hashlib.blake2b(content, digest_size=12).hexdigest()}"
