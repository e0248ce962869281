"""The crawler process of a node: fetch, extract, mask, tokenise, put into the queue.

Text lives in the memory of this process and of those that extract and prepare text for it, between
fetching and tokenising, and nowhere else.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.crawl.lease import Heartbeat, Incarnation, LeaseView
from embedding.crawl.staleness import CrawlReport
from embedding.database.patience import opened
from embedding.exchange.channel import ask
from embedding.kernel.errors import FencedError, UnavailableError
from embedding.kernel.logs import begin_logging
from embedding.kernel.processes import end_with_parent
from embedding.kernel.stopping import stop_on_signals
from embedding.kernel.tracing import NO_TRACES, Traces, open_traces
from embedding.stream.faults import PeerLost, QueueClosed
from embedding.stream.queue import BlockQueue
from embedding.worker.crawling.batches import (
    BackgroundTasks,
    BlockSink,
    InFlightDocuments,
    TextBatches,
)
from embedding.worker.crawling.rereading import Rereading
from embedding.worker.crawling.unacknowledged import decode_offset
from embedding.worker.spec import NodeSpec

logger = logging.getLogger(__name__)

T = TypeVar("T")

SOON_SECONDS = 0.5
"""The next heartbeat while something waits for it."""
STUCK_BEATS = 40
"""Beats after which a source that cannot be given up makes the node start again."""


class LeaseKeeper:
    """The node's side of the leases: heartbeats, and what is read because of them.

    Runs in the crawler's loop until the process ends. A source that another incarnation held is
    read only when it is known what the server learnt from that incarnation: of this node, the
    gradient process says it; of another node, the server is asked, which from then on takes no push
    of that incarnation any more.
    """

    def __init__(
        self,
        spec: NodeSpec,
        frontier: Frontier,
        crawler: Crawler,
        underway: InFlightDocuments,
        rereading: Rereading,
    ) -> None:
        self._rereading = rereading
        self.incarnation = Incarnation(spec.name, spec.incarnation)
        self.view: LeaseView | None = None
        self.ready = False
        """Whether everything that is held is read: what is pending is known."""
        self._spec = spec
        self._config = spec.crawl.leases
        self._frontier = frontier
        self._leases = frontier.leases(self._config)
        self._crawler = crawler
        self._patience = crawler.patience
        self._underway = underway
        self._leaving: dict[str, float] = {}
        self._quiet: set[str] = set()
        frontier.held_by(self.incarnation)

    @property
    def owing(self) -> bool:
        """Whether somebody may still ask what earlier incarnations of this node have pushed."""
        return self.view is None or self.view.owing

    async def run(self, offset: str) -> None:
        """Give heartbeats; FencedError when what the node held is another's.

        offset  what the server had learnt from incarnations of this node before
        """
        own = decode_offset(offset)
        if not await self._ask(self._leases.sources):
            await self._ask(self._leases.publish, self._spec.sources)
        heartbeat, beaten = Heartbeat(first=True, peers=self._spec.peers), time.monotonic()
        while True:
            view = await self._ask(self._leases.beat, self.incarnation, heartbeat)
            if view.replaced:
                raise FencedError(
                    f"{self.incarnation.node}: another incarnation of the node has begun, or "
                    "its sources were "
                    "given to others; it starts again."
                )
            self.view = view
            cleared = await self._clear_debts(view, own)
            await self._read(view.reading)
            self.ready = not view.debts
            released = await self._release(view.leaving - frozenset(view.debts))
            busy = view.debts or view.leaving
            await asyncio.sleep(SOON_SECONDS if busy else self._config.beat)
            now = time.monotonic()
            heartbeat = Heartbeat(
                holds=view.held,
                tokens=self._underway.tokens(),
                seconds=now - beaten,
                released=released,
                cleared=cleared,
            )
            beaten = now

    async def _ask(self, call: Callable[..., T], *arguments: Any) -> T:
        return await self._patience.ask(call, *arguments, aside=True)

    async def _read(self, names: frozenset[str]) -> None:
        sources = await self._ask(self._leases.sources, sorted(names)) if names else []
        await self._crawler.read(sources)

    async def _clear_debts(self, view: LeaseView, own: frozenset[int]) -> frozenset[str]:
        """The sources of which all is known that earlier holders had pushed."""
        learnt: dict[Incarnation, frozenset[int] | None] = {}
        cleared = set()
        for source, incarnations in view.debts.items():
            for incarnation in incarnations:
                if incarnation not in learnt:
                    of_this_node = incarnation.node == self.incarnation.node
                    learnt[incarnation] = (
                        own if of_this_node else await asyncio.to_thread(self._fence, incarnation)
                    )
            known = [learnt[incarnation] for incarnation in incarnations]
            if None in known:
                continue
            done = frozenset[int]().union(*(each for each in known if each is not None))
            await self._ask(self._frontier.recover, [source], done, incarnations[-1].mark)
            self._rereading.inherited |= {(dead.mark, source) for dead in incarnations}
            cleared.add(source)
        return frozenset(cleared)

    def _fence(self, incarnation: Incarnation) -> frozenset[int] | None:
        """What the server has of an incarnation that was given up; None while some of it may be
        lost.
        """
        body = {"node": incarnation.node, "incarnation": incarnation.mark}
        try:
            answer = ask(self._spec.server, self._spec.exchange, "fence", body)
        except UnavailableError:
            return None
        if answer["durable"] < answer["sequence"]:
            return None
        return decode_offset(answer["offset"])

    async def _release(self, leaving: Iterable[str]) -> frozenset[str]:
        """The sources of those to give up of which nothing is under way."""
        now, names = self._patience.clock(), frozenset(leaving)
        self._leaving = {name: self._leaving.get(name, now) for name in names}
        quiet = {
            name
            for name in names
            if not self._crawler.waiting(name) and not self._underway.of(name)
        }
        # Twice in a row: a document may be on its way from the crawler at this moment.
        free, self._quiet = quiet & self._quiet, quiet
        for name, since in self._leaving.items():
            if name not in free and now - since > STUCK_BEATS * self._config.beat:
                raise FencedError(
                    f"{self.incarnation.node}: documents of {name}, which another node shall "
                    "read, are "
                    "not acknowledged; it starts again."
                )
        if free:
            # What was fetched and never handed on.
            await self._ask(self._frontier.recover, sorted(free))
        return frozenset(free)


TICK_SECONDS = 0.1
_AGAIN_SECONDS = 0.5
"""Seconds between two looks for text that is to be read again."""


class CrawlProcess:
    """Joins crawler, text processes and queue in one asyncio loop."""

    def __init__(
        self,
        spec: NodeSpec,
        queue: BlockSink,
        stop: threading.Event,
        frontier: Frontier,
        traces: Traces = NO_TRACES,
    ) -> None:
        self.spec = spec
        self.queue = queue
        self.stop = stop
        self.frontier = frontier
        self.crawler = Crawler((), spec.crawl, self.frontier)
        self.in_flight = InFlightDocuments()
        self.rereading = Rereading(self.frontier, self.crawler.patience)
        self.leases = LeaseKeeper(spec, self.frontier, self.crawler, self.in_flight, self.rereading)
        self.tasks = BackgroundTasks()
        self.batches = TextBatches(
            spec,
            queue,
            stop,
            in_flight=self.in_flight,
            clock=self.crawler.clock,
            tasks=self.tasks,
            traces=traces,
            rereading=self.rereading,
        )
        self._finished = 0
        self._done: asyncio.Task[None] | None = None
        self._sources: CrawlReport = {}
        self._report_at = 0.0
        self._prepared = False

    async def run(self) -> None:
        """Until told to stop, or until the gradient process is gone."""
        work = (self._tick(), self._read(), self._lease(), self._read_again())
        tasks = [asyncio.create_task(each) for each in work]
        self.tasks.start(self.prepare())
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except (PeerLost, QueueClosed):
            logger.info("%s: the gradient process is gone; the crawler ends", self.spec.name)
        finally:
            self.crawler.stop()
            tasks.extend(self.tasks.all())
            for task in reversed(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.batches.text.close()

    async def prepare(self) -> None:
        """Load the morpheme analyser, which takes seconds, before a document waits for it."""
        await self.batches.text.prepare()
        self._prepared = True

    async def _lease(self) -> None:
        """Read this node's sources once the gradient process has reported what the server has."""
        while (report := self.queue.latest_report() or {}).get("offset") is None:
            if not self.queue.alive:
                raise PeerLost("the gradient process ended before it had greeted the server.")
            await asyncio.sleep(TICK_SECONDS)
        await self.leases.run(str(report["offset"]))

    async def _read(self) -> None:
        async for document in self.crawler.documents():
            await self.batches.add(document)

    async def _read_again(self) -> None:
        """Follow what the gradient process asks for of dead processes' text."""
        while True:
            await asyncio.sleep(_AGAIN_SECONDS)
            if self.leases.ready and self.leases.view is not None:
                asked = self.queue.latest_report() or {}
                await self.rereading.follow(asked, self.leases.view.held)

    async def _tick(self) -> None:
        while not self.stop.is_set():
            await asyncio.sleep(TICK_SECONDS)
            now = time.monotonic()
            await self.batches.send_old(now)
            self.tasks.look()
            self._acknowledge()
            if now - self._report_at >= self.spec.node.report_seconds:
                self._report_at = now
                self.queue.send_report(self._report())

    def _acknowledge(self) -> None:
        """Documents whose push is in a checkpoint are done; nothing waits for the database."""
        report = self.queue.latest_report() or {}
        self.in_flight.accepted(self.queue.acknowledged(0.0))
        if self._done is not None and not self._done.done():
            return
        keys = self.in_flight.durable(int(report.get("durable", 0)))
        if keys:
            self._done = self.tasks.start(self._finish(keys))

    async def _finish(self, keys: Sequence[str]) -> None:
        await self.crawler.patience.ask(self.crawler.acknowledge, keys, aside=True)
        self._finished += len(keys)

    def _report(self) -> dict[str, object]:
        report: dict[str, object] = {
            **self.batches.figures(),
            "prepared": self._prepared,
            "finished": self._finished,
            "owing": self.leases.owing,
            "again": self.rereading.report(),
            "frontier_away_s": 0.0,
        }
        if self.leases.view is not None:
            report["reading"] = self.leases.view.figures()
        if self.leases.ready:
            sources = self.crawler.patience.attempt(self.crawler.report)
            if sources is not None:
                for name, figures in sources.items():
                    # What the server has is not waited for, though no checkpoint may hold it yet.
                    figures["pending"] -= self.in_flight.pushed(name)
                self._sources = sources
            report["sources"] = self._sources
        # How much waits is not known while the database is away: the last report still holds.
        away = report["frontier_away_s"] = round(self.crawler.patience.away, 1)
        clock = self.crawler.clock()
        known = clock.knots or self.spec.crawl.replay_clock_url is None
        if known and self.leases.ready and not away:
            # Until the replay clock was read, wall time would pass for event time and close
            # every window of the past; and so would a time without the sources that are behind it.
            report["event_now"] = clock.event_now()
        return report


def crawl_forever(spec_json: str, queue: BlockQueue) -> None:
    """Target of the crawler process."""
    spec = NodeSpec.model_validate_json(spec_json)
    begin_logging("crawler", node=spec.name)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    end_with_parent()
    stop = stop_on_signals()
    traces = open_traces("crawler", spec.name)
    try:
        frontier = opened(partial(Frontier, spec.crawl.frontier.get_secret_value()), stop.wait)
        if frontier is not None:
            asyncio.run(CrawlProcess(spec, queue, stop, frontier, traces).run())
    finally:
        queue.close()
        traces.close()
