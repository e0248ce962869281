"""What one source's adapter sees of the crawler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from embedding.crawl.addresses import canonical
from embedding.crawl.browser import BrowserPool
from embedding.crawl.extractor import Extractor
from embedding.crawl.fetcher import Fetcher, Request
from embedding.crawl.frontier import Frontier
from embedding.crawl.keys import item_key
from embedding.crawl.patience import Patience
from embedding.crawl.replay import ReplayClock
from embedding.kernel.clock import EventClock
from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage, Found, ListingPage, event_time
from embedding.sources.config import SourceConfig


class SourceWeb:
    """`Web` for one source: its rate, proxy and cookies, and conditional requests for listings."""

    def __init__(
        self,
        source: SourceConfig,
        fetcher: Fetcher,
        extractor: Extractor,
        browsers: BrowserPool,
        frontier: Frontier,
        replay: ReplayClock,
        patience: Patience | None = None,
    ) -> None:
        self._source = source
        self._fetcher = fetcher
        self._extractor = extractor
        self._browsers = browsers
        self._frontier = frontier
        self._replay = replay
        self._patience = patience or Patience()
        # Validators count only once all of a listing was taken, and never outlive the process:
        # a listing that is "not modified" must not hide what a crash lost.
        self._kept: dict[str, tuple[str | None, str | None]] = {}
        self._fresh: dict[str, tuple[str | None, str | None]] = {}
        self._relisting = False
        self._gap = False
        self.changed = False
        """Whether this poll read anything that was not the same as the time before."""
        self.requests = 0
        """Listing pages that this poll asked for; a rendered page counts as one."""

    async def begin(self) -> None:
        """A poll starts; until `commit` it counts as broken off, with a gap to read again."""
        self._fresh = {}
        self.changed = False
        self.requests = 0
        waiting = await self._patience.ask(self._frontier.relist, self._source.name)
        self._relisting = self._gap or waiting > 0
        self._gap = True

    def commit(self) -> None:
        """The poll was taken whole: unchanged listings need not be read again."""
        self._kept.update(self._fresh)
        self._gap = False

    def request(self, url: str) -> Request:
        """A request on behalf of the source."""
        return Request(
            url,
            rate=self._source.rate,
            proxy=self._source.proxy_address,
            cookies=self._source.cookie_values,
            source=self._source.url,
        )

    async def get(self, url: str, *, accept: str = "*/*") -> FetchedPage | None:
        """See `Web.get`."""
        self.requests += 1
        etag, modified = (None, None) if self._relisting else self._kept.get(url, (None, None))
        answer = await self._fetcher.fetch(
            replace(self.request(url), accept=accept, etag=etag, last_modified=modified)
        )
        if answer.status == 304:
            return None
        self.changed = True
        headers = answer.headers
        self._fresh[url] = (headers.get("etag"), headers.get("last-modified"))
        return answer.page(event_time(self))

    async def listing(self, source: SourceConfig, page: FetchedPage) -> ListingPage:
        """See `Web.listing`."""
        return await self._extractor.listing(source, page)

    async def render(
        self, url: str, *, enough: Callable[[Sequence[Found]], bool]
    ) -> Sequence[Found]:
        """See `Web.render`."""
        self.requests += 1
        try:
            found = await self._browsers.render(self._source, self.request(url), enough)
        except FetchError as error:
            # A board without a post is a listing that names nothing, as a feed without an entry is.
            if error.reason != "empty":
                raise
            found = ()
        self.changed = True
        return found

    def all_known(self, keys: Sequence[str]) -> bool:
        """See `Web.all_known`."""
        if self._relisting:
            return False
        pages = frozenset(canonical(key) for key in keys)
        items = frozenset(item_key(key, self._source.url) for key in keys)
        # Without the database nothing is known: then the listing is read to its end.
        known = partial(self._patience.attempt, self._frontier.known)
        # Pages and items of the source's own site have the same keys, which are asked for once.
        return any(known(list(one)) == len(one) for one in dict.fromkeys((pages, items)))

    def clock(self) -> EventClock:
        """See `Web.clock`."""
        return self._replay.now
