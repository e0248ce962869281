"""The poll schedule at work: sources wait for their turn, and what is learnt outlives a restart."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from embedding.crawl.addresses import host_of
from embedding.crawl.config import CrawlConfig
from embedding.crawl.learnt import SourceStates
from embedding.crawl.patience import Patience
from embedding.crawl.schedule import PollReport, PollRules, PollSchedule
from embedding.sources.config import SourceConfig

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
