"""A crawl without training: the crawler process of a node, into a counting sink."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import SecretStr

from embedding.crawl.frontier import Frontier
from embedding.kernel.errors import ConfigError
from embedding.kernel.processes import memory_mb, processor_seconds
from embedding.kernel.records import BlockLike, TokenBlock
from embedding.settings import Settings
from embedding.sources.config import load_sources
from embedding.worker.crawling.crawling import CrawlProcess
from embedding.worker.spec import NodeSpec

_LOOK_SECONDS = 0.1
_SHOW_SECONDS = 0.5
_LAGS = 512

_Watch = Callable[[dict[str, Any]], None]


@dataclass
class Count:
    """What came of one source. `lags` are seconds from publication to here, the latest ones."""

    documents: int = 0
    tokens: int = 0
    lags: deque[float] = field(default_factory=lambda: deque(maxlen=_LAGS))


class CountingSink:
    """Counts documents, tokens and lags by source, and keeps nothing else."""

    def __init__(self, most: int | None = None) -> None:
        self.counts: dict[str, Count] = {}
        self.enough = threading.Event()
        self._most = most
        self._keys: deque[str] = deque()

    def put(self, block: BlockLike, timeout: float | None = None) -> None:  # noqa: ARG002
        """Count a block; its documents are acknowledged at once."""
        block = TokenBlock.from_buffer(block.to_buffer())
        count = self.counts.setdefault(block.source, Count())
        count.documents += block.n_documents
        count.tokens += block.n_tokens
        count.lags.extend((time.time() - block.available).tolist())
        self._keys.extend(block.keys)
        if self._most is not None and self.documents >= self._most:
            self.enough.set()

    def acknowledged(self, timeout: float | None = None) -> Sequence[str]:  # noqa: ARG002
        """Keys of all that was counted since the last call."""
        return [self._keys.popleft() for _ in range(len(self._keys))]

    def send_report(self, report: dict[str, object]) -> None:
        """Not needed: the crawler is asked for its report directly."""

    def latest_report(self) -> dict[str, Any]:
        """There was no earlier incarnation, and whatever is counted is done."""
        return {"offset": "", "durable": self.documents}

    @property
    def alive(self) -> bool:
        return True

    @property
    def documents(self) -> int:
        return sum(count.documents for count in list(self.counts.values()))


def dry_run(
    settings: Settings,
    file: Path | None,
    seconds: float,
    *,
    documents: int | None = None,
    watch: _Watch | None = None,
) -> dict[str, Any]:
    """Crawl for `seconds`, or until `documents`, with a frontier in memory.

    Figures by source, JSON-safe; `watch` is given the same several times a second. Time, and
    processor time of this process and its children, are counted from the moment when the morpheme
    analyser is loaded. Raises ConfigError.
    """
    if not (math.isfinite(seconds) and seconds > 0):
        raise ConfigError(f"--for {seconds:g}: a number of seconds above 0 is accepted.")
    spec = NodeSpec(
        name="dry-run",
        server=settings.server_location,
        sources=load_sources(file or settings.paths.sources),
        crawl=settings.crawl.model_copy(update={"frontier": SecretStr("sqlite://")}),
        text=settings.text,
        stream=settings.stream,
        node=settings.node,
    )
    sink, stop = CountingSink(documents), threading.Event()
    run = _Run(
        CrawlProcess(spec, sink, stop, Frontier(spec.crawl.frontier.get_secret_value())), sink
    )
    try:
        asyncio.run(run.until(seconds, stop, watch))
    except KeyboardInterrupt:
        # Whoever has seen enough wants the figures so far.
        stop.set()
    finally:
        run.process.frontier.close()
    return run.report


class _Run:
    def __init__(self, process: CrawlProcess, sink: CountingSink) -> None:
        self.process = process
        self.report: dict[str, Any] = {}
        self._sink = sink
        self._began, self._used = time.monotonic(), 0.0

    async def until(self, seconds: float, stop: threading.Event, watch: _Watch | None) -> None:
        crawling: asyncio.Task[None] | None = None
        try:
            # The morpheme analyser takes seconds to load, which say nothing about the sources.
            await self.process.prepare()
            self._began, self._used = time.monotonic(), processor_seconds()
            crawling = asyncio.create_task(self.process.run())
            shown = self._began
            while time.monotonic() - self._began < seconds and not self._sink.enough.is_set():
                await asyncio.wait({crawling}, timeout=_LOOK_SECONDS)
                if watch is not None and time.monotonic() - shown >= _SHOW_SECONDS:
                    shown = time.monotonic()
                    watch(self._figures())
                if crawling.done():
                    break
        finally:
            self.report = {**self._figures(), "memory_mb": memory_mb()}
            stop.set()
            await (crawling or self.process.batches.text.close())

    def _figures(self) -> dict[str, Any]:
        spent = max(time.monotonic() - self._began, 1e-9)
        rows = {}
        for name, row in self.process.crawler.report().items():
            count = self._sink.counts.get(name, Count())
            lags = list(count.lags)
            rows[name] = {
                **row,
                "documents": count.documents,
                "tokens": count.tokens,
                "pages_per_minute": round(60.0 * row["fetched"] / spent, 1),
                "lag_p50_s": round(float(np.median(lags)), 3) if lags else None,
            }
        tokens = sum(count.tokens for count in self._sink.counts.values())
        return {
            "sources": rows,
            "documents": self._sink.documents,
            "tokens": tokens,
            "seconds": round(spent, 2),
            "documents_per_minute": round(60.0 * self._sink.documents / spent, 1),
            "processor_seconds": round(processor_seconds() - self._used, 2),
            "tokens_per_second": round(tokens / spent, 1),
            "text": self.process.batches.text.report(),
        }
