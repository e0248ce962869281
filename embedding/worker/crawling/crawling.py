"""The crawler process of a node: fetch, extract, mask, tokenise, put into the queue.

Text lives in the memory of this process and of those that extract and prepare text for it, between
fetching and tokenising, and nowhere else.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.crawl.lease import Heartbeat, Incarnation, LeaseView
from embedding.crawl.staleness import CrawlReport
from embedding.database.patience import Patience, opened
from embedding.exchange.peer import ask
from embedding.kernel.clock import EventClock
from embedding.kernel.errors import FencedError, UnavailableError
from embedding.kernel.logs import begin_logging
from embedding.kernel.processes import end_with_parent, stop_on_signals
from embedding.kernel.records import BlockLike, Document, TokenBlock
from embedding.kernel.tracing import NO_TRACES, Traces, open_traces
from embedding.stream.queue import BlockQueue, PeerLost, QueueClosed, QueueFull
from embedding.stream.replay import ranking
from embedding.text.pool import TextPool
from embedding.worker.crawling.unacknowledged import decode_offset
from embedding.worker.spec import NodeSpec

logger = logging.getLogger(__name__)

T = TypeVar("T")

_PUT_SECONDS = 0.5
TICK_SECONDS = 0.1
_AGAIN_SECONDS = 0.5
"""Seconds between two looks for text that is to be read again."""
_LATEST = 512
"""Documents of which is known how long they took."""
SOON_SECONDS = 0.5
"""The next heartbeat while something waits for it."""
STUCK_BEATS = 40
"""Beats after which a source that cannot be given up makes the node start again."""
_Key = tuple[str, str]
"""Source, and mark of the dead process whose documents are read again; "" of fresh ones."""
_Text = tuple[str, str]
"""Mark of the process, and the source."""


class Rereading:
    """Text of dead processes that is read again, for how it uses words alone.

    Only a process has text in its memory. When it dies before a window is compared, whoever reads
    its sources from then on reads its documents again: fetched like others, but neither learnt nor
    counted. Used from the crawler's loop alone.

    inherited  of whose sources this process took over: it has to know their text, too
    """

    def __init__(self, frontier: Frontier, patience: Patience) -> None:
        self.inherited: set[_Text] = set()
        self._frontier = frontier
        self._patience = patience
        self._begun: set[_Text] = set()
        self._sources: frozenset[str] = frozenset()
        self._gone: list[list[object]] = []
        self._read: set[str] = set()
        self._since: float | None = None
        self._waits = False

    def incarnation(self, key: str) -> str:
        """Mark of the dead process that learnt a document; "" of one that nobody did."""
        return self._frontier.again.get(key, "")

    async def put(self, keys: Collection[str]) -> None:
        """The gradient process has these documents, or will have them before the next report."""
        self._read.update(keys)
        for key in keys:
            self._frontier.again.pop(key, None)
        await self._patience.ask(self._frontier.was_read_again, list(keys), aside=True)

    async def follow(self, asked: Mapping[str, Any], reading: Collection[str]) -> None:
        """Begin to read what is asked for.

        asked  what the gradient process says: `lost`, text as [mark, source] that the server waits
               for; `since`, event time from which on it remembers text, null while unknown
        reading  sources that this process reads
        """
        sources, since = frozenset(reading), asked.get("since")
        lost = {(str(mark), str(source)) for mark, source in asked.get("lost") or ()}
        wanted = {text for text in lost | self.inherited if text[1] in sources} - self._begun
        self._waits = bool(wanted)
        if since is not None:
            for mark, source in sorted(wanted):
                await self._ask(self._frontier.read_again, source, mark, float(since))
                self._begun.add((mark, source))
        gone = await self._ask(self._frontier.gone_again, sources) if self._frontier.again else []
        self._gone += [list(text) for text in gone]
        if gone or sources != self._sources or (wanted and since is not None):
            self._sources = sources
            again = await self._ask(self._frontier.reading_again, sources)
            self._frontier.again.clear()
            self._frontier.again.update(
                {key: mark for key, mark in again.items() if key not in self._read}
            )
        self._waits = bool(wanted) and since is None
        if since is not None and since != self._since:
            await self._ask(self._frontier.forget_uses, sources, float(since))
            self._since = since

    def report(self) -> dict[str, object]:
        """For the gradient process: documents `put` so far, how many are `left`, which text was
        `begun`, and what is `gone`, as [mark, source, event time]."""
        return {
            "put": len(self._read),
            "left": len(self._frontier.again) + self._waits,
            "begun": [list(text) for text in sorted(self._begun)],
            "gone": self._gone[-10_000:],
        }

    async def _ask(self, call: Any, *arguments: Any) -> Any:
        return await self._patience.ask(call, *arguments, aside=True)


class Stages:
    """Seconds from publication to fetching, and from there to the queue of the gradient process."""

    def __init__(self) -> None:
        self._fetched = deque[float](maxlen=_LATEST)
        self._queued = deque[float](maxlen=_LATEST)

    def queued(self, available: Sequence[float], fetched: Sequence[float], now: float) -> None:
        """Documents were put into the queue at `now` (Unix seconds)."""
        for first, then in zip(available, fetched, strict=True):
            self._fetched.append(max(then - first, 0.0))
            self._queued.append(max(now - then, 0.0))

    def report(self) -> dict[str, dict[str, float]]:
        """JSON-safe: median and 95 % of each stage, in seconds; nothing before the first block."""
        named = {"published_to_fetched": self._fetched, "fetched_to_queued": self._queued}
        return {name: spread(values) for name, values in named.items() if values}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median and 95 % of some seconds."""
    middle, most = np.percentile(values, (50, 95))
    return {"p50_s": round(float(middle), 3), "p95_s": round(float(most), 3)}


class InFlightDocuments:
    """Of one crawler process; used from its loop alone.

    started ──(their block is pushed)──► accepted ──(the push is in a checkpoint)──► done
    """

    def __init__(self) -> None:
        self.done = 0
        self._source: dict[str, str] = {}
        self._by_source: Counter[str] = Counter()
        self._accepted: deque[str] = deque()
        self._pushed: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()

    def started(self, key: str, source: str) -> None:
        """The crawler handed a document on."""
        self._source[key] = source
        self._by_source[source] += 1

    def read(self, source: str, tokens: int) -> None:
        """A block of so many tokens was made."""
        self._tokens[source] += tokens

    def accepted(self, keys: Sequence[str]) -> None:
        """The server has taken their push, in this order."""
        for key in keys:
            self._accepted.append(key)
            self._pushed[self._source.get(key, "")] += 1

    def durable(self, documents: int) -> list[str]:
        """The first `documents` accepted are in a checkpoint: keys that are done now."""
        count = max(0, min(documents - self.done, len(self._accepted)))
        keys = [self._accepted.popleft() for _ in range(count)]
        for key in keys:
            source = self._source.pop(key, "")
            self._pushed[source] -= 1
            self._by_source[source] -= 1
        self.done += count
        return keys

    def of(self, source: str) -> int:
        return self._by_source[source]

    def pushed(self, source: str) -> int:
        """Those of them that the server has: learnt, though not in a checkpoint yet."""
        return self._pushed[source]

    def tokens(self) -> dict[str, int]:
        """Tokens by source since the last call."""
        counts, self._tokens = dict(self._tokens), Counter()
        return counts


class BlockSink(Protocol):
    """Where token blocks go: the queue of a node, or whatever a dry run counts with."""

    def put(self, block: BlockLike, timeout: float | None = None) -> None:
        """Take a block; raises QueueFull when there was no room for `timeout` seconds."""

    def acknowledged(self, timeout: float | None = None) -> Sequence[str]:
        """Keys of documents that need not be fetched again."""

    def send_report(self, report: dict[str, object]) -> None:
        """Take the crawler's figures."""

    def latest_report(self) -> dict[str, Any] | None:
        """`offset`: documents learnt in earlier incarnations of the node, as `unacknowledged.py`
        writes them; `durable`: how many of the keys acknowledged so far are done. None: nothing is
        known yet.
        """

    @property
    def alive(self) -> bool:
        """Whether anybody is there."""


class BackgroundTasks:
    """Tasks that run beside a loop, which looks at them now and then."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        return task

    def look(self) -> None:
        """Raise what went wrong with one that has ended."""
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.discard(task)
            task.result()

    def all(self) -> Sequence[asyncio.Task[None]]:
        """Those that were started and not looked at since they ended."""
        return tuple(self._tasks)


@dataclass
class _Batch:
    """Documents of one source that wait to be tokenised together."""

    documents: list[Document] = field(default_factory=list)
    since: float = 0.0


class TextBatches:
    """Documents of a node that wait to be tokenised, and the text processes that do it.

    in_flight  counts the documents that are taken and the tokens of each block
    clock      the replay clock, or identity
    full_waits how often the queue had no room
    """

    def __init__(
        self,
        spec: NodeSpec,
        queue: BlockSink,
        stop: threading.Event,
        *,
        in_flight: InFlightDocuments,
        clock: Callable[[], EventClock],
        tasks: BackgroundTasks,
        traces: Traces,
        rereading: Rereading,
    ) -> None:
        self.text = TextPool(
            spec.text,
            spec.node.text_processes,
            spec.node.text_timeout,
            warm=any(source.language in (None, "ko") for source in spec.sources),
        )
        self.full_waits = 0
        self._node, self._queue, self._stop = spec.node, queue, stop
        self._in_flight, self._clock, self._tasks = in_flight, clock, tasks
        self._traces = traces
        self._rereading = rereading
        self._ranking = None
        if spec.node.replay_ratio:
            words = spec.text.statistics_words
            self._ranking = ranking(spec.stream, spec.model.sample, spec.min_count, words)
        self._stages = Stages()
        self._batches: dict[_Key, _Batch] = {}
        self._free = asyncio.Semaphore(spec.node.text_processes)

    async def add(self, document: Document) -> None:
        """Take a document; waits while its batch is full and every text process has one."""
        key = document.source, self._rereading.incarnation(document.url)
        batch = self._batches.setdefault(key, _Batch())
        if not batch.documents:
            batch.since = time.monotonic()
        batch.documents.append(document)
        if not key[1]:
            self._in_flight.started(document.url, document.source)
        if len(batch.documents) >= self._node.batch_documents:
            await self._send(key)

    async def send_old(self, now: float) -> None:
        """Tokenise the batches that have waited long enough at `now` (monotonic seconds)."""
        for key, batch in list(self._batches.items()):
            # A text process that has nothing to do waits for no batch to fill.
            old = now - batch.since >= self._node.batch_seconds
            if batch.documents and (old or not self._free.locked()):
                await self._send(key)

    def figures(self) -> dict[str, object]:
        return {
            "full_waits": self.full_waits,
            "tokenizer": self.text.digest,
            "text": self.text.report(),
            "stages": self._stages.report(),
        }

    async def _send(self, key: _Key) -> None:
        """Have a batch tokenised; waits while every text process has a batch."""
        await self._free.acquire()
        batch = self._batches.get(key)
        if batch is None or not batch.documents:
            self._free.release()
            return
        documents, batch.documents = batch.documents, []
        self._tasks.look()
        self._tasks.start(self._tokenise(key, documents))

    async def _tokenise(self, key: _Key, documents: list[Document]) -> None:
        """Tokenise a batch and put it; its text process takes no other while the queue is full."""
        try:
            clock = self._clock()
            available = [clock.wall(document.published_at.timestamp()) for document in documents]
            began = time.time()
            source, incarnation = key
            block: BlockLike = await self.text.encoded(documents, available, incarnation)
            prepared = time.time()
            keys = tuple(document.url for document in documents)
            if incarnation:
                await self._put(block)
                await self._rereading.put(keys)
                return
            self._in_flight.read(source, block.n_tokens)
            if self._ranking is not None:
                read = TokenBlock.from_buffer(block.to_buffer())
                block = replace(read, priority=self._ranking.priorities(read))
            await self._put(block)
            queued = time.time()
            fetched = [document.fetched_at.timestamp() for document in documents]
            self._stages.queued(available, fetched, queued)
            for name, first, then in zip(keys, available, fetched, strict=True):
                self._traces.document("fetch", (name,), first, then)
            self._traces.document("prepare", keys, began, prepared)
            self._traces.document("queue", keys, prepared, queued)
        finally:
            self._free.release()

    async def _put(self, block: BlockLike) -> None:
        while not self._stop.is_set():
            try:
                await asyncio.to_thread(self._queue.put, block, _PUT_SECONDS)
                return
            except QueueFull:
                self.full_waits += 1


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
                    "its sources were given to others; it starts again."
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
                    f"{self.incarnation.node}: documents of {name}, which another node is to "
                    "read, are not acknowledged; it starts again."
                )
        if free:
            # What was fetched and never handed on.
            await self._ask(self._frontier.recover, sorted(free))
        return frozenset(free)


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
