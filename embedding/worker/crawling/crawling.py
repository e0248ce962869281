"""The crawler process of a node: fetch, extract, mask, tokenise, put into the queue.

Text lives in the memory of this process and of those that extract and prepare text for it, between
fetching and tokenising, and nowhere else.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.crawl.patience import opened
from embedding.crawl.report import CrawlReport
from embedding.kernel.logs import begin_logging
from embedding.kernel.records import Document, TokenBlock
from embedding.kernel.stopping import stop_on_signals
from embedding.kernel.tracing import NO_TRACES, Traces, open_traces
from embedding.stream.faults import PeerLost, QueueClosed, QueueFull
from embedding.stream.initial import InitialPriorities
from embedding.stream.queue import BlockQueue
from embedding.text.pool import TextPool
from embedding.worker.corpus.stages import Stages
from embedding.worker.crawling.inflight import InFlightDocuments
from embedding.worker.crawling.leasing import LeaseKeeper
from embedding.worker.lifetime import end_with_parent
from embedding.worker.spec import NodeSpec

logger = logging.getLogger(__name__)

_PUT_SECONDS = 0.5
TICK_SECONDS = 0.1


class Sink(Protocol):
    """Where token blocks go: the queue of a node, or whatever a dry run counts with."""

    def put(self, block: TokenBlock, timeout: float | None = None) -> None:
        """Take a block; raises QueueFull when there was no room for `timeout` seconds."""
        ...

    def acknowledged(self, timeout: float | None = None) -> Sequence[str]:
        """Keys of documents that need not be fetched again."""
        ...

    def send_report(self, report: dict[str, object]) -> None:
        """Take the crawler's figures."""
        ...

    def latest_report(self) -> dict[str, Any] | None:
        """`offset`: documents learnt in earlier incarnations of the node, as `unacknowledged.py`
        writes them; `durable`: how many of the keys acknowledged so far are done. None: nothing is
        known yet.
        """
        ...

    @property
    def alive(self) -> bool:
        """Whether anybody is there."""
        ...


@dataclass
class Batch:
    """Documents of one source that wait to be tokenised together."""

    documents: list[Document] = field(default_factory=list)
    since: float = 0.0


class CrawlProcess:
    """Joins crawler, text processes and queue in one asyncio loop."""

    def __init__(
        self,
        spec: NodeSpec,
        queue: Sink,
        stop: threading.Event,
        frontier: Frontier,
        traces: Traces = NO_TRACES,
    ) -> None:
        self.spec = spec
        self.traces = traces
        self.queue = queue
        self.stop = stop
        self.frontier = frontier
        self.crawler = Crawler((), spec.crawl, self.frontier)
        self.underway = InFlightDocuments()
        self.leases = LeaseKeeper(spec, self.frontier, self.crawler, self.underway)
        self.text = TextPool(
            spec.text,
            spec.node.text_processes,
            spec.node.text_timeout,
            warm=any(source.language in (None, "ko") for source in spec.sources),
        )
        self.initial = _initial(spec)
        self.stages = Stages()
        self.full_waits = 0
        self._batches: dict[str, Batch] = {}
        self._settled = 0
        self._places = asyncio.Semaphore(spec.node.text_processes)
        self._in_hand: set[asyncio.Task[None]] = set()
        self._done: asyncio.Task[None] | None = None
        self._sources: CrawlReport = {}
        self._report_at = 0.0
        self._prepared = False

    async def run(self) -> None:
        """Until told to stop, or until the gradient process is gone."""
        work = (self._tick(), self._read(), self._lease())
        tasks = [asyncio.create_task(each) for each in work]
        self._in_hand.add(asyncio.create_task(self.prepare()))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except (PeerLost, QueueClosed):
            logger.info("%s: the gradient process is gone; the crawler ends", self.spec.name)
        finally:
            self.crawler.stop()
            tasks.extend(self._in_hand)
            for task in reversed(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.text.close()

    async def prepare(self) -> None:
        """Load the morpheme analyser, which takes seconds, before a document waits for it."""
        await self.text.prepare()
        self._prepared = True

    async def _lease(self) -> None:
        """Once the gradient process has told what the server has: read what is this node's."""
        while (told := self.queue.latest_report() or {}).get("place") is None:
            if not self.queue.alive:
                raise PeerLost("the gradient process ended before it had greeted the server.")
            await asyncio.sleep(TICK_SECONDS)
        await self.leases.run(str(told["place"]))

    async def _read(self) -> None:
        async for document in self.crawler.documents():
            batch = self._batches.setdefault(document.source, Batch())
            if not batch.documents:
                batch.since = time.monotonic()
            batch.documents.append(document)
            self.underway.started(document.url, document.source)
            if len(batch.documents) >= self.spec.node.batch_documents:
                await self._send(document.source)

    async def _tick(self) -> None:
        while not self.stop.is_set():
            await asyncio.sleep(TICK_SECONDS)
            now = time.monotonic()
            for source, batch in list(self._batches.items()):
                # A text process that has nothing to do waits for no batch to fill.
                old = now - batch.since >= self.spec.node.batch_seconds
                if batch.documents and (old or not self._places.locked()):
                    await self._send(source)
            self._look()
            self._acknowledge()
            if now - self._report_at >= self.spec.node.report_seconds:
                self._report_at = now
                self.queue.send_report(self._report())

    def _acknowledge(self) -> None:
        """Documents whose push is in a checkpoint are done; nothing waits for the database."""
        told = self.queue.latest_report() or {}
        self.underway.accepted(self.queue.acknowledged(0.0))
        if self._done is not None and not self._done.done():
            return
        keys = self.underway.durable(int(told.get("durable", 0)))
        if keys:
            self._done = asyncio.create_task(self._finish(keys))
            self._in_hand.add(self._done)

    async def _finish(self, keys: Sequence[str]) -> None:
        await self.crawler.patience.ask(self.crawler.acknowledge, keys, aside=True)
        self._settled += len(keys)

    def _report(self) -> dict[str, object]:
        report: dict[str, object] = {
            "full_waits": self.full_waits,
            "tokenizer": self.text.digest,
            "text": self.text.report(),
            "stages": self.stages.report(),
            "prepared": self._prepared,
            "settled": self._settled,
            "owing": self.leases.owing,
            "frontier_away_s": 0.0,
        }
        if self.leases.standing is not None:
            report["reading"] = self.leases.standing.figures()
        if self.leases.ready:
            sources = self.crawler.patience.attempt(self.crawler.report)
            if sources is not None:
                for name, figures in sources.items():
                    # What the server has is not waited for, though no checkpoint may hold it yet.
                    figures["pending"] -= self.underway.pushed(name)
                self._sources = sources
            report["sources"] = self._sources
        # How much waits is not known while the database is away: what was told last still holds.
        away = report["frontier_away_s"] = round(self.crawler.patience.away, 1)
        clock = self.crawler.clock()
        known = clock.knots or self.spec.crawl.replay_clock_url is None
        if known and self.leases.ready and not away:
            # Until the replay clock was read, wall time would pass for event time and close
            # every window of the past; and so would a time without the sources that are behind it.
            report["event_now"] = clock.event_now()
        return report

    async def _send(self, source: str) -> None:
        """Have the source's batch tokenised; waits while every text process has a batch in hand."""
        await self._places.acquire()
        batch = self._batches.get(source)
        if batch is None or not batch.documents:
            self._places.release()
            return
        documents, batch.documents = batch.documents, []
        self._look()
        self._in_hand.add(asyncio.create_task(self._prepare(source, documents)))

    async def _prepare(self, source: str, documents: list[Document]) -> None:
        """Tokenise a batch and put it; it keeps its place while the queue is full."""
        try:
            clock = self.crawler.clock()
            available = [clock.wall(document.published_at.timestamp()) for document in documents]
            began = time.time()
            block = await self.text.block(documents, available)
            prepared = time.time()
            self.underway.read(source, block.n_tokens)
            if self.initial is not None:
                block = replace(block, priority=self.initial.priorities(block))
            await self._put(block)
            queued = time.time()
            self.stages.queued(block, queued)
            for key, first, fetched in zip(block.keys, available, block.fetched, strict=True):
                self.traces.document("fetch", (key,), first, float(fetched))
            self.traces.document("prepare", block.keys, began, prepared)
            self.traces.document("queue", block.keys, prepared, queued)
        finally:
            self._places.release()

    def _look(self) -> None:
        """Raise what went wrong with loading or with a batch."""
        for task in [task for task in self._in_hand if task.done()]:
            self._in_hand.discard(task)
            task.result()

    async def _put(self, block: TokenBlock) -> None:
        while not self.stop.is_set():
            try:
                await asyncio.to_thread(self.queue.put, block, _PUT_SECONDS)
                return
            except QueueFull:
                self.full_waits += 1


def _initial(spec: NodeSpec) -> InitialPriorities | None:
    """What ranks documents before they are learnt; None where replay ranks nothing."""
    if spec.stream.replay == "uniform" or not spec.node.replay_ratio:
        return None
    return InitialPriorities(
        spec.stream.replay,
        sample=spec.model.sample,
        min_count=spec.min_count,
        capacity=spec.text.statistics_words,
    )


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
