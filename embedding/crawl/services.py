"""What all sources of one crawler share."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime

from embedding.crawl.arrivals import ArrivalQueue
from embedding.crawl.browser import BrowserPool
from embedding.crawl.config import CrawlConfig
from embedding.crawl.extractor import Extractor
from embedding.crawl.fetcher import Fetcher
from embedding.crawl.frontier import Frontier
from embedding.crawl.origins import ORIGINS, Publication
from embedding.crawl.patience import Patience
from embedding.crawl.polling import PollQueue
from embedding.crawl.replay import ReplayClock
from embedding.crawl.shingles import NearDuplicates
from embedding.kernel.records import Document
from embedding.sources.base import Pseudonyms
from embedding.sources.config import SourceConfig

_AHEAD = 86400.0
"""Seconds by which a publish time may lie in the future before it is taken for nonsense."""
_CLOSING = 4.0

_MOST = 20_000
"""Addresses; of too many the first are forgotten."""


class NamedAuthors:
    """Names by address, from the listing to the page; in memory alone."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._held: dict[str, tuple[str, ...]] = {}

    def note(self, found: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        """A listing gave these authors to these addresses."""
        self._held |= {key: names for key, names in found if names}
        while len(self._held) > self._most:
            del self._held[next(iter(self._held))]

    def take(self, key: str) -> tuple[str, ...]:
        """The authors of an address, which are forgotten."""
        return self._held.pop(key, ())


class DocumentQueue(asyncio.Queue[Document]):
    """Documents that wait for the consumer."""

    def holds(self, source: str) -> bool:
        """Whether one of them is of this source."""
        return any(document.source == source for document in self._queue)  # type: ignore[attr-defined]


class Services:
    """Client, browser, extraction, duplicates, clock and the bounded queue of documents."""

    def __init__(
        self,
        config: CrawlConfig,
        frontier: Frontier,
        patience: Patience | None = None,
        pseudonyms: Pseudonyms | None = None,
    ) -> None:
        self.config = config
        self.pseudonyms = pseudonyms or make_pseudonyms(config)
        """What names of authors become; with a random key each has its own."""
        self.frontier = frontier
        self.patience = patience or Patience()
        self.fetcher = Fetcher(config)
        self.browsers = BrowserPool(config, self.fetcher)
        self.extractor = Extractor(
            config.extract_processes, config.extract_timeout, config.max_chars
        )
        self.replay = ReplayClock(config.replay_clock_url, config.replay_clock_every)
        self.queue = DocumentQueue(config.queue)
        self.named = NamedAuthors()
        self.poll_queue = PollQueue(config, frontier.polls(), self.patience)
        self.arrivals = ArrivalQueue(
            frontier, NearDuplicates(config.near_threshold, config.near_window), self.patience
        )

    def published(self, fetched: datetime, *times: datetime | None) -> datetime | None:
        """The last of `times` that does not lie in the future; give the most trusted last.

        fetched  when the page was fetched; on a replayed clock its event time counts
        """
        latest = self.replay.now.event_now(fetched.timestamp()) + _AHEAD
        plausible = (one for one in reversed(times) if one and one.timestamp() <= latest)
        return next(plausible, None)

    def publication(
        self, source: SourceConfig, fetched: datetime, *candidates: Publication
    ) -> Publication:
        """The most trusted plausible time, else what the source's `undated` says: the event time
        at which it was fetched, or none."""
        trusted = sorted(candidates, key=lambda one: ORIGINS.index(one.origin))
        when = self.published(fetched, *(one.at for one in reversed(trusted)))
        if when is not None:
            return next(one for one in trusted if one.at == when)
        if source.undated == "fetched":
            now = self.replay.now.event_now(fetched.timestamp())
            return Publication(datetime.fromtimestamp(now, UTC), "fetched")
        return Publication()

    async def close(self) -> None:
        """End everything within some seconds."""
        closing = asyncio.gather(
            self.fetcher.close(),
            self.browsers.close(),
            self.extractor.close(),
            self.arrivals.close(),
            return_exceptions=True,
        )
        await asyncio.wait([closing], timeout=_CLOSING)


def make_pseudonyms(config: CrawlConfig) -> Pseudonyms:
    """With the configured key, else with a random one that nobody learns."""
    key = config.pseudonym_key.get_secret_value().encode()
    return Pseudonyms(key or secrets.token_bytes(32))
