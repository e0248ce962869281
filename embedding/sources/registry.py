"""Which adapter lists which kind of source."""

from __future__ import annotations

from embedding.kernel.errors import ConfigError
from embedding.sources.base import Adapter, Listing, Page, Pseudonyms
from embedding.sources.comments import CommentsAdapter
from embedding.sources.config import KINDS, SourceConfig
from embedding.sources.feed import FeedAdapter, read_feed
from embedding.sources.page import PageAdapter, read_links
from embedding.sources.rendered import RenderedAdapter
from embedding.sources.replayed import ReplayedAdapter
from embedding.sources.sitemap import SitemapAdapter, read_map


def make_adapter(source: SourceConfig, pseudonyms: Pseudonyms) -> Adapter:
    """The adapter of `source.kind`."""
    match source.kind:
        case "feed":
            return FeedAdapter(source)
        case "sitemap":
            return SitemapAdapter(source)
        case "page":
            return PageAdapter(source)
        case "rendered":
            return RenderedAdapter(source, pseudonyms)
        case "comments":
            return CommentsAdapter(source, pseudonyms)
        case "replayed":
            return ReplayedAdapter(source, pseudonyms)
    raise ConfigError(f"source kind {source.kind!r} is unknown; accepted are {', '.join(KINDS)}.")


def read_listing(source: SourceConfig, page: Page) -> Listing:
    """What an answer of a feed, a sitemap or a page of links holds; raises FetchError.

    May take long for a page that was made for it: see `Web.listing`.
    """
    match source.kind:
        case "feed":
            return read_feed(source, page)
        case "sitemap":
            return read_map(source, page)
        case "page":
            return read_links(source, page)
    raise ConfigError(f"source kind {source.kind!r} has no listing of its own.")
