"""Which adapter lists which kind of source."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from embedding.kernel.errors import ConfigError
from embedding.sources.base import Adapter, FetchedPage, ListingPage, Pseudonyms
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import SOURCES


@runtime_checkable
class Lists(Protocol):
    """An adapter with the trait `listing`."""

    @staticmethod
    def listing(source: SourceConfig, page: FetchedPage) -> ListingPage:
        """What one answer of its listing holds; raises FetchError."""
        ...


def make_adapter(source: SourceConfig, pseudonyms: Pseudonyms) -> Adapter:
    """The adapter of `source.kind`."""
    return SOURCES.get(source.kind)(source, pseudonyms)


def read_listing(source: SourceConfig, page: FetchedPage) -> ListingPage:
    """What an answer of a feed, a sitemap or a page of links holds; raises FetchError.

    May take long for a page that was made for it: see `Web.listing`.
    """
    adapter = SOURCES.get(source.kind)
    if not SOURCES.traits(source.kind).listing or not isinstance(adapter, Lists):
        raise ConfigError(f"source kind {source.kind!r} has no listing of its own.")
    return adapter.listing(source, page)
