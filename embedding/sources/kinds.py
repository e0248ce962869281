"""What kinds of source declare of themselves, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from embedding.kernel.errors import ConfigError
from embedding.kernel.registry import Registry

if TYPE_CHECKING:
    from embedding.sources.base import Adapter, FetchedPage, ListingPage, Pseudonyms
    from embedding.sources.config import SourceConfig


def make_adapter(source: SourceConfig, pseudonyms: Pseudonyms) -> Adapter:
    """The adapter of `source.kind`."""
    return SOURCES.get(source.kind)(source, pseudonyms)


def read_listing(source: SourceConfig, page: FetchedPage) -> ListingPage:
    """What an answer of a feed, a sitemap or a page of links holds; raises FetchError.

    May take long for a page that was made for it: see `Web.listing`.
    """
    listing = getattr(SOURCES.get(source.kind), "listing", None)
    if not SOURCES.traits(source.kind).listing or listing is None:
        raise ConfigError(f"source kind {source.kind!r} has no listing of its own.")
    answer: ListingPage = listing(source, page)
    return answer


COMMON_SETTINGS = (
    *("name", "kind", "group", "language", "timezone", "undated", "every", "weight", "max_items"),
)
"""Settings of every source."""
WEB = ("url", "rate", "proxy", "cookies")
"""Settings of every source that is fetched."""
ITEM = ("items", "id", "link", "title", "time", "text", "author")
"""Where the parts of an item are."""


@dataclass(frozen=True, kw_only=True)
class SourceTraits:
    """What a kind of source understands and does. Settings that it does not name are refused."""

    settings: tuple[str, ...]
    """Settings of `SourceConfig` that it understands."""

    defaults: Mapping[str, str] = field(default_factory=dict)
    """Values of settings that are left out, where they differ from those of `SourceConfig`."""

    check: Callable[[SourceConfig], None] = field(default=lambda _: None, repr=False)
    """Raises ValueError, which says why, for settings that cannot work together."""

    noun: str = ""
    """What a listing of it is called in a sentence, as in `a feed`."""

    schemes: tuple[str, ...] = ("http", "https")
    """How its `url` may begin. What is no web address is read without robots.txt and rates."""

    listing: bool = False
    """One answer of `url` is one listing: its adapter has `listing(source, page)`."""

    discoverable: bool = False
    """Listings of it are looked for on the web, and compared with those that are read."""

    browser: bool = False
    """Its pages are rendered by a browser, which costs as much as two other sources."""

    def contradiction(self) -> str:
        if not set(COMMON_SETTINGS) <= set(self.settings):
            return f"settings without {', '.join(COMMON_SETTINGS)}, which every source has"
        if ("url" in self.settings) is ("path" in self.settings):
            return "settings name one of url and path: where it is read from"
        if self.discoverable and not (self.listing and self.noun):
            return "discoverable goes with listing and a noun"
        return ""


SOURCES: Registry[Callable[[SourceConfig, Pseudonyms], Adapter], SourceTraits] = Registry(
    "source kind",
    "yeoron.sources",
    {
        "comments": "embedding.sources.comments",
        "feed": "embedding.sources.feed",
        "kafka": "embedding.sources.kafka",
        "mastodon": "embedding.sources.mastodon",
        "page": "embedding.sources.page",
        "redis": "embedding.sources.streamed",
        "rendered": "embedding.sources.rendered",
        "replayed": "embedding.sources.streamed",
        "sitemap": "embedding.sources.sitemap",
    },
)
"""All kinds of source: those built in, and those of other packages."""
