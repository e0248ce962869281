"""What all sources of one crawler share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import httpx
from cachetools import FIFOCache

from embedding.crawl.addresses import host_of
from embedding.crawl.browser import BrowserPool
from embedding.crawl.config import CrawlConfig
from embedding.crawl.extractor import Extractor
from embedding.crawl.fetcher import Fetcher
from embedding.crawl.frontier import Frontier, SourceStates
from embedding.crawl.origins import ORIGINS, Publication
from embedding.crawl.schedule import PollSchedule
from embedding.crawl.shingles import NearDuplicates
from embedding.crawl.tables import Fetched
from embedding.database.patience import Patience
from embedding.kernel.clock import EventClock
from embedding.kernel.records import Document
from embedding.sources.base import Pseudonyms
from embedding.sources.config import SourceConfig

# What was read becomes known to the frontier: one transaction for all that comes within a moment.
#
# A page that was read is looked up by its addresses and by its text, and then recorded as fetched
# or as a duplicate. With a transaction a page this was half of the crawler's own processor time.
_MOMENT = 0.05
"""Seconds that the first of a group waits for others."""


_Waiting = tuple[Fetched, "asyncio.Future[str | None]"]


class ArrivalQueue:
    """Inside one event loop. Nobody hands a document on before `resolve` has returned."""

    def __init__(
        self, frontier: Frontier, near: NearDuplicates, patience: Patience | None = None
    ) -> None:
        self._frontier = frontier
        self._near = near
        self._patience = patience or Patience()
        self._waiting: list[_Waiting] = []
        self._resolving: set[asyncio.Task[None]] = set()

    async def resolve(self, arrival: Fetched) -> str | None:
        """None when it is recorded as fetched; else why it is done already: `duplicate` (its text
        or one of its addresses was read before) or `near_duplicate`.

        Waits while the database is away. Whoever is cancelled here has recorded nothing.
        """
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[str | None] = loop.create_future()
        if not self._waiting:
            loop.call_later(_MOMENT, self._begin)
        # Whoever is cancelled from here on stays in the group, which is judged whole.
        self._waiting.append((arrival, outcome))
        return await outcome

    async def close(self) -> None:
        for task in self._resolving:
            task.cancel()
        await asyncio.gather(*self._resolving, return_exceptions=True)

    def _begin(self) -> None:
        group, self._waiting = self._waiting, []
        task = asyncio.get_running_loop().create_task(self._resolve_all(group))
        self._resolving.add(task)
        task.add_done_callback(self._resolving.discard)

    async def _resolve_all(self, group: Sequence[_Waiting]) -> None:
        try:
            judged = await self._patience.ask(self._judge, group)
        except Exception as error:  # noqa: BLE001  (it is the waiters' to handle)
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
            return
        for (arrival, future), reason in judged:
            if not future.done():
                future.set_result(reason)
            elif reason is None:
                # Whoever waited was cancelled while the database was asked in a thread.
                self._patience.attempt(self._frontier.reopen, arrival.key)

    def _judge(self, group: Sequence[_Waiting]) -> list[tuple[_Waiting, str | None]]:
        """Judge what somebody still waits for: the database may have been away for long."""
        now = time.time()
        left = [waiting for waiting in group if not waiting[1].done()]
        codes = {read.content_hash for read, _ in left if read.content_hash}
        known = self._frontier.with_content(codes)
        judged: list[tuple[_Waiting, str | None]] = []
        for read, outcome in left:
            reason = self._reason(read, known, now)
            judged.append(((read, outcome), reason))
            if reason is None and read.content_hash:
                known.setdefault(read.content_hash, set()).add(read.key)
        self._frontier.record(
            [read for (read, _), reason in judged if reason is None],
            [(read, reason) for (read, _), reason in judged if reason is not None],
            now,
        )
        return judged

    def _reason(self, read: Fetched, known: dict[str, set[str]], now: float) -> str | None:
        key, source, code = read.key, read.source, read.content_hash
        if key in self._frontier.again:
            return None  # it was no duplicate when it was read first
        if not all(self._frontier.alias(name, key, source, now) for name in read.names):
            return "duplicate"
        if code is None:
            return None
        if known.get(code, set()) - {key}:
            return "duplicate"
        return "near_duplicate" if self._near.seen(key, read.sketch) else None


log = logging.getLogger(__name__)


def read_clock(data: Any) -> EventClock:
    """`{"knots": [[event, wall], …]}` as a clock; raises ValueError."""
    knots = data.get("knots") if isinstance(data, dict) else None
    if not isinstance(knots, list):
        raise ValueError("no list `knots`")
    try:
        pairs = sorted((float(event), float(wall)) for event, wall in knots)
    except TypeError as error:
        raise ValueError("knots are not pairs of numbers") from error
    return EventClock(tuple(pairs))


class ReplayClock:
    """Reads the clock's address again and again; identity when there is none."""

    EVERY_S = 1.0

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._warned = False
        self.now = EventClock()
        """The latest clock."""

    async def follow(self) -> None:
        """Read until cancelled; while the address fails, the clock read last stays."""
        if self._url is None:
            return
        # The simulation's own control address: no robots, no rate, and loopback is its place.
        async with httpx.AsyncClient(timeout=5.0, trust_env=False) as client:
            while True:
                await self._read(client, self._url)
                await asyncio.sleep(self.EVERY_S)

    async def _read(self, client: httpx.AsyncClient, url: str) -> None:
        try:
            answer = await client.get(url)
            answer.raise_for_status()
            self.now = read_clock(answer.json())
            self._warned = False
        except (httpx.HTTPError, ValueError) as error:
            if not self._warned:
                log.warning("replay clock %s: not readable (%s)", url, type(error).__name__)
            self._warned = True

    async def first(self) -> None:
        """Read once, so that the first documents are judged by the right time."""
        if self._url is not None:
            async with httpx.AsyncClient(timeout=5.0, trust_env=False) as client:
                await self._read(client, self._url)


_AHEAD = 86400.0
"""Seconds by which a publish time may lie in the future before it is taken for nonsense."""
_CLOSING = 4.0

_MOST_NAMED = 20_000
"""Addresses whose authors are remembered; of too many the first are forgotten."""

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
            host_rate=config.rate * config.poll_share,
            node_rate=math.inf if config.poll_rate is None else config.poll_rate,
            slowest=config.slowest,
            polls_per_change=config.polls_per_change,
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
            saved = self._patience.attempt(self._store.load, source.name, time.time())
            if saved is not None:
                state, away = saved
                self._schedule.restore(source.name, state, now, away)
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
        self._schedule.failed(name, time.monotonic(), retry_after, requests)

    def report(self, name: str) -> dict[str, Any] | None:
        """None for a source that takes no part now. Safe from any thread."""
        try:
            return self._schedule.report(name, time.monotonic())
        except KeyError:
            return None


class DocumentQueue(asyncio.Queue[Document]):
    """Documents that wait for the consumer."""

    def holds(self, source: str) -> bool:
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
        self.replay = ReplayClock(config.replay_clock_url)
        self.queue = DocumentQueue(config.queue)
        self.named: FIFOCache[str, tuple[str, ...]] = FIFOCache(_MOST_NAMED)
        """Names of authors by address, from the listing to the page; in memory alone."""
        self.poll_queue = PollQueue(config, frontier.polls(), self.patience)
        self.arrivals = ArrivalQueue(
            frontier, NearDuplicates(config.near_threshold, config.near_window), self.patience
        )

    def published(self, fetched: datetime, *times: datetime | None) -> datetime | None:
        """The last of `times` that does not lie in the future; give the most trusted last.

        fetched  when the page was fetched; on a replayed clock its event time counts
        """
        latest = self.replay.now.event_now(fetched.timestamp()) + _AHEAD
        return next((when for when in reversed(times) if when and when.timestamp() <= latest), None)

    def publication(
        self, source: SourceConfig, fetched: datetime, *candidates: Publication
    ) -> Publication:
        """The most trusted plausible time, else what the source's `undated` says: the event time
        at which it was fetched, or none."""
        trusted = sorted(candidates, key=lambda candidate: ORIGINS.index(candidate.origin))
        when = self.published(fetched, *(candidate.at for candidate in reversed(trusted)))
        if when is not None:
            return next(candidate for candidate in trusted if candidate.at == when)
        if source.undated == "fetched":
            now = self.replay.now.event_now(fetched.timestamp())
            return Publication(datetime.fromtimestamp(now, UTC), "fetched")
        return Publication()

    async def close(self) -> None:
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
    return Pseudonyms(config.pseudonym_key.get_secret_value().encode() or secrets.token_bytes(32))
