"""RSS, Atom and JSON feeds."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import islice
from typing import Any

from embedding.kernel.errors import FetchError
from embedding.sources.base import (
    FetchedPage,
    ListedItem,
    ListingPage,
    Reference,
    SourceAdapter,
    Web,
)
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import COMMON_SETTINGS, SOURCES, WEB, SourceTraits
from embedding.sources.links import join
from embedding.sources.times import parse_time

_ACCEPT = (
    "application/rss+xml, application/atom+xml, application/feed+json, "
    "application/xml;q=0.9, */*;q=0.5"
)
_JSON_NAMES = {
    "link": "url",
    "id": "id",
    "title": "title",
    "published": "date_published",
    "updated": "date_modified",
    "author": "author",
    "authors": "authors",
}
_JSON_VERSION = re.compile("https?://jsonfeed.org/version/")
_ENCODING = re.compile(
    rb"""^(\s*<\?xml[^>]{0,200}?)\s+encoding\s*=\s*(['"])[^'"]*\2""", re.IGNORECASE
)
_DEFECTS = (ValueError, TypeError, LookupError, AttributeError, AssertionError, RecursionError)
"""What feedparser raises for some feeds instead of reading what it can."""


def read_feed(source: SourceConfig, page: FetchedPage) -> ListingPage:
    """The first `max_items` entries whose address matches; raises FetchError (`parse`)."""
    text = page.text.lstrip()
    entries: Sequence[Mapping[str, Any]] | None
    if text.startswith("{"):
        entries = _json_entries(text)
    else:
        feed = parse_feed(text.encode(), page.url)
        known = feed.entries or (feed.get("version") and not feed.bozo)
        entries = list(feed.entries) if known else None
    if entries is None:
        raise FetchError("parse", f"{page.url}: not an RSS, Atom or JSON feed.")
    links = re.compile(source.links or "")
    references = (_reference(entry, page.url, links, source.timezone) for entry in entries)
    return ListingPage(tuple(islice(filter(None, references), source.max_items)))


@SOURCES.register(
    "feed",
    SourceTraits(
        settings=(*COMMON_SETTINGS, *WEB, "links"), noun="a feed", listing=True, discoverable=True
    ),
)
class FeedAdapter(SourceAdapter):
    """Lists the entries of one RSS, Atom or JSON feed."""

    listing = staticmethod(read_feed)

    async def poll(self, web: Web) -> AsyncIterator[ListedItem]:
        self.complete = False
        page = await web.get(self.source.url, accept=_ACCEPT)
        if page is not None:
            for reference in (await web.listing(self.source, page)).references:
                yield reference
        self.complete = True


def _reference(entry: Any, base: str, links: re.Pattern[str], zone: str) -> Reference | None:
    # An empty <link> may stand beside a guid that is the address.
    identity = string_of(entry.get("id")).strip()
    own = identity if identity.lower().startswith(("http://", "https://")) else ""
    link = join(base, string_of(entry.get("link"))) or join(base, own)
    if not link or not links.search(link):
        return None
    times = (parse_time(entry.get(name), zone) for name in ("published", "created", "updated"))
    when = next((time for time in times if time is not None), None)
    several = entry.get("authors")
    authors = [entry.get("author"), *(several if isinstance(several, list) else ())][:20]
    names = (author.get("name") if isinstance(author, Mapping) else author for author in authors)
    people = dict.fromkeys(name for name in names if isinstance(name, str) and name.strip())
    return Reference(link, when, string_of(entry.get("title")), tuple(people))


def parse_feed(data: bytes, name: str) -> Any:
    """What feedparser makes of a feed in UTF-8; raises FetchError (`parse`) with its name."""
    import feedparser  # slow; settings name feeds where none is read

    try:
        # The text is UTF-8 by now: an encoding in its prolog can only be wrong.
        return feedparser.parse(
            _ENCODING.sub(rb"\1", data, count=1),
            response_headers={"content-type": "application/xml; charset=utf-8"},
        )
    except _DEFECTS as error:
        raise FetchError("parse", f"{name}: the feed cannot be read.") from error


def _json_entries(text: str) -> Sequence[Mapping[str, Any]] | None:
    """Items of a JSON feed (jsonfeed.org, 1 and 1.1) under RSS's names; None when it is none."""
    try:
        feed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    items = feed.get("items")
    if not _JSON_VERSION.match(str(feed.get("version"))) or not isinstance(items, list):
        return None
    return [
        {ours: item.get(theirs) for ours, theirs in _JSON_NAMES.items()}
        for item in items
        if isinstance(item, dict)
    ]


def string_of(value: object) -> str:
    """The value where it is a string, else ""."""
    return value if isinstance(value, str) else ""
