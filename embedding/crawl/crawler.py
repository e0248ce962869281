"""The crawler: all sources of a node, as one stream of documents."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Sequence

from embedding.crawl.config import CrawlConfig
from embedding.crawl.frontier import Frontier
from embedding.crawl.runner import SourceRunner
from embedding.crawl.services import Services, make_pseudonyms
from embedding.crawl.staleness import CrawlReport
from embedding.database.patience import Patience
from embedding.kernel.clock import EventClock
from embedding.kernel.errors import ConfigError
from embedding.kernel.records import Document
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import make_adapter

_CLOSING = 4.0
_AGAIN = 0.2
"""Seconds after which a task that goes on is cancelled once more."""

log = logging.getLogger(__name__)


class Crawler:
    """Polls and fetches until `stop`; holds at most `config.queue` documents in memory.

    The frontier belongs to the caller, who closes it. Raises ConfigError when two sources share
    a name.
    """

    def __init__(
        self, sources: Sequence[SourceConfig], config: CrawlConfig, frontier: Frontier
    ) -> None:
        names = [source.name for source in sources]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ConfigError(f"source {twice[0]!r} is given twice; names are unique.")
        self._pseudonyms = make_pseudonyms(config)
        self._adapters = [make_adapter(source, self._pseudonyms) for source in sources]
        self._config = config
        self._frontier = frontier
        self.patience = Patience()
        """How calls of the frontier wait while its database is away."""
        self._services: Services | None = None
        self._runners: dict[str, SourceRunner] = {}
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = asyncio.Event()
        self._stopped = False

    async def documents(self) -> AsyncIterator[Document]:
        """Documents as they are found, until `stop`. May be read once.

        Fetching pauses when nobody reads. What was fetched and not acknowledged by the last
        process is fetched again. No failure of a source ends the stream.
        """
        if self._services is not None:
            raise ConfigError("a crawler's documents() can be read once; make another crawler.")
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._services = services = Services(
            self._config, self._frontier, self.patience, self._pseudonyms
        )
        names = [adapter.source.name for adapter in self._adapters]
        await self.patience.ask(self._frontier.recover, names)
        await services.replay.first()
        tasks = [asyncio.create_task(services.replay.follow())]
        for adapter in self._adapters:
            self._begin(SourceRunner(adapter, services))
        self._ready.set()
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            while not self._stopped:
                document = await _next(services.queue, stopping)
                if document is None:
                    break
                yield document
        finally:
            await _end([*tasks, *itertools.chain(*self._tasks.values()), stopping])
            await services.close()

    async def read(self, sources: Sequence[SourceConfig]) -> None:
        """Read these sources from now on and no others; waits until somebody reads `documents`.

        What a source that is given up has fetched is still delivered.
        """
        await self._ready.wait()
        wanted = {source.name: source for source in sources}
        known = {name: runner.source for name, runner in self._runners.items()}
        fresh = [source for name, source in wanted.items() if known.get(name) != source]
        adapters = [make_adapter(source, self._pseudonyms) for source in fresh]
        gone = [name for name, source in known.items() if wanted.get(name) != source]
        await _end([task for name in gone for task in self._tasks.pop(name)])
        for name in gone:
            del self._runners[name]
        for adapter in adapters:
            self._begin(SourceRunner(adapter, self._running()))

    def waiting(self, source: str) -> bool:
        """Whether documents of a source that is given up are still to be delivered."""
        return self._services is not None and self._services.queue.holds(source)

    def _running(self) -> Services:
        if self._services is None:
            raise ConfigError("a crawler reads sources only while documents() is read.")
        return self._services

    def _begin(self, runner: SourceRunner) -> None:
        self._runners[runner.source.name] = runner
        self._tasks[runner.source.name] = [
            asyncio.create_task(runner.poll_forever()),
            asyncio.create_task(runner.fetch_forever()),
        ]

    def acknowledge(self, keys: Sequence[str]) -> None:
        """Mark learnt documents (by `Document.url`) done. Safe from any thread.

        Raises what the database raises, as `report` does.
        """
        self._frontier.acknowledge(keys, time.time())

    def clock(self) -> EventClock:
        """The replay clock read last; identity without `replay_clock_url`."""
        return self._services.replay.now if self._services else EventClock()

    def report(self) -> CrawlReport:
        """Counters by source since the start, JSON-safe. Safe from any thread."""
        runners = dict(self._runners)
        pending = self._frontier.backlog(runners)
        return {
            name: runner.counters.report(
                pending[name] + runner.in_hand,
                runner.watch,
                self._running().poll_queue.report(name),
            )
            for name, runner in runners.items()
        }

    def stop(self) -> None:
        """End `documents()` within some seconds. Safe from any thread, and more than once."""
        self._stopped = True
        if self._loop is not None and self._stopping is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)


async def _next(queue: asyncio.Queue[Document], stopping: asyncio.Task[bool]) -> Document | None:
    if not queue.empty():
        return queue.get_nowait()
    getting = asyncio.create_task(queue.get())
    try:
        await asyncio.wait({getting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return getting.result() if getting.done() else None
    finally:
        getting.cancel()


async def _end(tasks: Sequence[asyncio.Task[object]]) -> None:
    """Cancel tasks and wait for them, but not for ever.

    Libraries lose a cancellation now and then, so whoever goes on is told again: a task that
    outlived its crawler would take addresses from the next one and hand them to nobody.
    """
    waiting = set(tasks)
    deadline = time.monotonic() + _CLOSING
    while waiting and time.monotonic() < deadline:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=_AGAIN)
    if waiting:
        log.error("%d tasks of the crawler did not end", len(waiting))
