"""Headlines of original documents: fetched again when a reader asks, shown at once where kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from embedding.crawl.config import CrawlConfig
from embedding.snapshots.evidence import Evidence
from embedding.web.headlinestore import HeadlineStore

if TYPE_CHECKING:
    from embedding.crawl.fetcher import Fetcher
    from embedding.crawl.headline import Headline

_MOST_BYTES = 2 * 1024 * 1024


class Headlines:
    """Fetches headlines by the crawler's client, made with the first one.

    kept  where they are kept; None: nowhere
    """

    def __init__(self, crawl: CrawlConfig, kept: HeadlineStore | None) -> None:
        limit = min(crawl.max_bytes, _MOST_BYTES)
        self._config = crawl.model_copy(update={"max_bytes": limit})
        self._kept = kept
        self._fetcher: Fetcher | None = None

    @property
    def keeps(self) -> bool:
        """Whether what was fetched is kept."""
        return self._kept is not None

    def known(self, urls: Sequence[str]) -> dict[str, str]:
        """Headlines that are kept of these pages."""
        return {} if self._kept is None else self._kept.find(urls)

    async def read(self, document: Evidence) -> Headline:
        """The headline of a page as it is now. All calls come from one event loop."""
        from embedding.crawl.fetcher import Fetcher
        from embedding.crawl.headline import fetch_headline

        self._fetcher = self._fetcher or Fetcher(self._config)
        found = await fetch_headline(self._fetcher, document.url)
        if self._kept is not None and found.state == "read":
            await asyncio.to_thread(self._kept.add, document.url, document.source, found.text)
        return found
