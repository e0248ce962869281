"""The crawler's documents on their way to the queue: batched by source, tokenised, put."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from embedding.kernel.clock import EventClock
from embedding.kernel.records import BlockLike, Document, TokenBlock
from embedding.kernel.tracing import Traces
from embedding.stream.faults import QueueFull
from embedding.stream.replay import ranking
from embedding.text.pool import TextPool
from embedding.worker.crawling.rereading import Rereading
from embedding.worker.spec import NodeSpec

_PUT_SECONDS = 0.5
_Key = tuple[str, str]
"""Source, and mark of the dead process whose documents are read again; "" of fresh ones."""


_LATEST = 512


class Stages:
    """Seconds from publication to fetching, and from there to the queue of the gradient process."""

    def __init__(self) -> None:
        self._fetched: deque[float] = deque(maxlen=_LATEST)
        self._queued: deque[float] = deque(maxlen=_LATEST)

    def queued(self, available: Sequence[float], fetched: Sequence[float], now: float) -> None:
        """Documents were put into the queue at `now` (Unix seconds)."""
        for first, then in zip(available, fetched, strict=True):
            self._fetched.append(max(then - first, 0.0))
            self._queued.append(max(now - then, 0.0))

    def report(self) -> dict[str, dict[str, float]]:
        """JSON-safe: median and 95 % of each stage, in seconds; nothing before the first block."""
        named = {"published_to_fetched": self._fetched, "fetched_to_queued": self._queued}
        return {name: spread(list(values)) for name, values in named.items() if values}


def spread(values: list[float]) -> dict[str, float]:
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
