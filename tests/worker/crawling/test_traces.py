"""Spans of a node's two processes and of its server: each document has all of them."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from datetime import UTC, datetime

import pytest

from embedding.crawl.frontier import Frontier
from embedding.kernel.records import BlockLike, Document, EncodedBlock, TokenBlock
from embedding.kernel.tracing import Traces
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from embedding.stream.queue import BlockQueue
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.crawling.crawling import CrawlProcess
from embedding.worker.process.gradient import GradientProcess
from embedding.worker.spec import NodeSpec
from waiting import until

exporting = pytest.importorskip(
    "opentelemetry.sdk.trace.export.in_memory_span_exporter", reason="the extra `otel`"
)
MODEL = ModelConfig(dim=8, sample=0.0)
NODE = NodeConfig(block_tokens=64, flush_seconds=0.1, replay_ratio=0.0).model_copy(
    update={"report_seconds": 0.2}
)
WHEN = datetime(2021, 4, 1, tzinfo=UTC)


class Sink:
    """A queue that keeps the blocks."""

    alive = True

    def __init__(self) -> None:
        self.blocks: list[BlockLike] = []

    def put(self, block: BlockLike, timeout: float | None = None) -> None:
        self.blocks.append(block)


def exported(traces: Traces, exporter) -> list:
    traces.close()
    return list(exporter.get_finished_spans())


def test_a_crawler_tells_of_fetching_preparing_and_queueing() -> None:
    exporter = exporting.InMemorySpanExporter()
    traces = Traces(exporter, "crawler", "n0", 1.0)
    text = TextConfig(tokenizer="whitespace", mask=False)
    spec = NodeSpec(name="n0", incarnation="m", server="grpc://127.0.0.1:1", text=text)
    documents = [Document(f"https://a/{n}", "뉴스", "낱말 하나", WHEN, WHEN) for n in range(3)]
    sink = Sink()

    async def prepared() -> None:
        process = CrawlProcess(spec, sink, threading.Event(), frontier, traces)
        async with asyncio.timeout(60):
            for document in documents:
                await process.batches.add(document)
            await process.batches.send_old(time.monotonic() + 3600)
            await asyncio.gather(*process.tasks.all())
            await process.batches.text.close()

    frontier = Frontier("sqlite://")
    try:
        asyncio.run(prepared())
    finally:
        frontier.close()
    # As the text process wrote it: the crawler does not read it.
    (block,) = sink.blocks
    assert isinstance(block, EncodedBlock)
    read = TokenBlock.from_buffer(block.buffer)
    assert read.keys == tuple(document.url for document in documents)
    assert block.n_tokens == read.n_tokens == 6
    found: dict[int, list[str]] = {}
    for span in exported(traces, exporter):
        found.setdefault(span.context.trace_id, []).append(span.name)
    assert [sorted(names) for names in found.values()] == [["fetch", "prepare", "queue"]] * 3


def test_a_gradient_process_tells_of_learning_once_a_document() -> None:
    exporter = exporting.InMemorySpanExporter()
    traces = Traces(exporter, "gradient", "n0", 1.0)
    config = ServerConfig(min_count=1, min_authors=1, min_sources=1, config_digest=MODEL.digest())
    with running_server(config, SyncConfig(policy="asp"), dim=MODEL.dim) as server:
        crawler, gradient = BlockQueue.pair(10_000, multiprocessing.get_context("spawn"))
        spec = NodeSpec(name="n0", server=server.location, model=MODEL, node=NODE)
        stop = threading.Event()
        process = GradientProcess(spec, gradient, stop, traces)
        thread = threading.Thread(target=process.run, daemon=True)
        thread.start()
        try:
            for tick in range(5):
                text = [[f"낱말{i}" for i in range(20)] for _ in range(5)]
                block = TokenBlock.build("뉴스", [text], published=[0.0], keys=[str(tick)])
                crawler.put(block, timeout=60)
            until(lambda: process.counters.documents == 5)
        finally:
            stop.set()
            crawler.close()
            thread.join(60)
    spans = exported(traces, exporter)
    assert [span.name for span in spans] == ["learn"] * 5
    assert len({span.context.trace_id for span in spans}) == 5
    assert {len(span.links) for span in spans} == {1}
    assert process._traces._taken == {}
