"""What all sources of one crawler share."""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from embedding.crawl.addresses import host_of
from embedding.crawl.arrivals import ArrivalQueue
from embedding.crawl.browser import BrowserPool
from embedding.crawl.config import CrawlConfig
from embedding.crawl.extractor import Extractor
from embedding.crawl.fetcher import Fetcher
from embedding.crawl.frontier import Frontier
from embedding.crawl.learnt import SourceStates
from embedding.crawl.origins import ORIGINS, Publication
from embedding.crawl.patience import Patience
from embedding.crawl.replay import ReplayClock
from embedding.crawl.schedule import PollReport, PollRules, PollSchedule
from embedding.crawl.shingles import NearDuplicates
from embedding.kernel.records import Document
from embedding.sources.base import Pseudonyms
from embedding.sources.config import SourceConfig

_AHEAD = 86400.0
"""Seconds by which a publish time may lie in the future before it is taken for nonsense."""
_CLOSING = 4.0

_MOST = 20_000
"""Addresses; of too many the first are forgotten."""

_LOOK = 30.0
"""Seconds after which a waiting source looks whether what was learnt of others moved its turn."""


class PollQueue:
    """Says which source is polled next, inside one event loop."""

    def __init__(
        self, config: CrawlConfig, store: SourceStates, patience: Patience | None = None
    ) -> None:
        self._config = config
        self._store = store
        # Without the database polls go on; what was learnt is learnt again after a restart.
        self._patience = patience or Patience()
        self._schedule = PollSchedule(
            PollRules(
                host_rate=config.rate * config.poll_share,
                node_rate=math.inf if config.poll_rate is None else config.poll_rate,
                slowest=config.slowest,
                polls_per_change=config.polls_per_change,
            )
        )
        self._sooner: dict[str, asyncio.Event] = {}

    @contextmanager
    def taking_part(self, source: SourceConfig) -> Iterator[None]:
        """Schedule `source`, with what was learnt of it before, as long as this lasts."""
        host = host_of(source.url)
        rate = (source.rate or self._config.rate) * self._config.poll_share if host else math.inf
        now = time.monotonic()
        self._schedule.add(
            source.name,
            host or f"file {source.name}",
            source.every,
            now,
            weight=source.weight,
            rate=rate,
        )
        self._sooner[source.name] = asyncio.Event()
        try:
            found = self._patience.attempt(self._store.load, source.name, time.time())
            if found is not None:
                self._schedule.restore(source.name, found[0], now, found[1])
            yield
        finally:
            del self._sooner[source.name]
            self._schedule.remove(source.name)

    async def wait(self, name: str) -> None:
        """Until the source's next poll may start; it is to be ended by `polled` or `failed`."""
        sooner = self._sooner[name]
        while True:
            sooner.clear()
            left = self._schedule.ask(name, time.monotonic())
            if left <= 0:
                return
            # Not `asyncio.wait_for`, which may drop a cancellation (see SourceRunner._wait).
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, _LOOK)):
                    await sooner.wait()

    def polled(self, name: str, *, changed: bool, requests: int) -> None:
        """The poll succeeded; a change is a sign for the other listings of its host."""
        first = self._schedule.polled(name, changed=changed, requests=requests)
        if changed and not first:
            for other in self._schedule.signal(name):
                self._sooner[other].set()
        state = self._schedule.state(name, time.monotonic())
        self._patience.attempt(self._store.save, name, state, time.time())

    def failed(self, name: str, retry_after: float, requests: int) -> None:
        """The poll failed."""
        self._schedule.failed(name, time.monotonic(), retry_after, requests)

    def report(self, name: str) -> PollReport | None:
        """None for a source that takes no part now. Safe from any thread."""
        try:
            return self._schedule.report(name, time.monotonic())
        except KeyError:
            return None


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
