"""A crawl without training: sources and text preparation into a counting sink."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.records import Document
from embedding.settings import Settings
from embedding.sources.config import load_sources
from embedding.text.pipeline import TextPipeline


class Sink:
    """Counts documents and tokens by source; keeps nothing else."""

    def __init__(self, pipeline: TextPipeline) -> None:
        self.pipeline = pipeline
        self.documents: dict[str, int] = {}
        self.tokens: dict[str, int] = {}

    def take(self, document: Document) -> None:
        """Prepare one document and count it."""
        block = self.pipeline.block([document], [document.published_at.timestamp()])
        source = document.source
        self.documents[source] = self.documents.get(source, 0) + 1
        self.tokens[source] = self.tokens.get(source, 0) + block.n_tokens


def dry_run(
    settings: Settings, file: Path | None, seconds: float, console: Console | None
) -> dict[str, Any]:
    """Crawl for `seconds` with a frontier in memory; counts by source, JSON-safe."""
    sources = load_sources(file or settings.paths.sources)
    sink = Sink(TextPipeline(settings.text))
    crawler = Crawler(sources, settings.crawl, Frontier("sqlite://"))
    started = time.monotonic()
    asyncio.run(_crawl(crawler, sink, seconds, console))
    spent = time.monotonic() - started
    rows = {}
    for name, row in crawler.report().items():
        rows[name] = {
            **row,
            "documents": sink.documents.get(name, 0),
            "tokens": sink.tokens.get(name, 0),
        }
    tokens = sum(sink.tokens.values())
    return {
        "sources": rows,
        "documents": sum(sink.documents.values()),
        "tokens": tokens,
        "seconds": round(spent, 2),
        "tokens_per_second": tokens / spent,
        "text": sink.pipeline.report(),
    }


async def _crawl(crawler: Crawler, sink: Sink, seconds: float, console: Console | None) -> None:
    async def end() -> None:
        await asyncio.sleep(seconds)
        crawler.stop()

    timer = asyncio.create_task(end())
    shown = 0.0
    try:
        async for document in crawler.documents():
            await asyncio.to_thread(sink.take, document)
            crawler.acknowledge([document.url])
            if console is not None and time.monotonic() - shown > 1.0:
                shown = time.monotonic()
                console.print(
                    f"{sum(sink.documents.values()):,} documents, "
                    f"{sum(sink.tokens.values()):,} tokens",
                    end="\r",
                )
    finally:
        timer.cancel()
