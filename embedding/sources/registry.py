"""Which adapter lists which kind of source."""

from __future__ import annotations

from embedding.errors import ConfigError
from embedding.sources.base import Adapter, Pseudonyms
from embedding.sources.comments import CommentsAdapter
from embedding.sources.config import KINDS, SourceConfig
from embedding.sources.feed import FeedAdapter
from embedding.sources.page import PageAdapter
from embedding.sources.rendered import RenderedAdapter
from embedding.sources.replayed import ReplayedAdapter
from embedding.sources.sitemap import SitemapAdapter


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
