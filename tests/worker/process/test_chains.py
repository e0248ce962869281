"""What the text process of one node reads of phrases comes to those of the others."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from embedding.crawl.frontier import Frontier
from embedding.kernel.records import Document, TokenBlock
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.stream.queue import BlockQueue
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.crawling.crawling import CrawlProcess
from embedding.worker.process.gradient import GradientProcess
from embedding.worker.spec import NodeSpec
from tests.worker.crawling_node import Node
from waiting import eventually, until

MODEL = ModelConfig(dim=4, sample=0.0)
NODE = NodeConfig(block_tokens=64, flush_seconds=0.1, report_seconds=0.2, replay_ratio=0.0)
KIWI = TextConfig(tokenizer="kiwi", phrase_voices=3)
WHEN = datetime(2020, 2, 1, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[ParameterServer]:
    config = ServerConfig(min_count=1, min_authors=1, min_sources=1, config_digest=MODEL.digest())
    with running_server(config, SyncConfig(policy="asp"), dim=MODEL.dim) as found:
        yield found


def test_a_node_joins_what_is_a_phrase_with_the_authors_of_another(server: ParameterServer) -> None:
    with ExitStack() as stack:
        nodes = [Node(server, f"n{number}", text=KIWI) for number in range(2)]
        for node in nodes:
            stack.callback(node.client.close)
            node.client.chains.append(node.pipeline.hear)
            apart = "오늘 날씨가 좋다. 학교에 간다. 나무를 심고 물을 준다."
            texts = [apart] * 40 + ["우한에 산다. 폐렴이 무섭다."] * 2
            node.read("apart", *[("누구", text) for text in texts])
        one, other = nodes
        block = one.read("a", ("가", "우한폐렴이 무섭다."), ("나", "우한 폐렴을 막자."))
        assert "우한폐렴" not in block.words
        other.learner.words.refresh()
        assert "우한폐렴" in other.read("b", ("다", "우한폐렴을 막자.")).words
        one.learner.words.refresh()
        assert "우한폐렴" in one.read("a", ("라", "우한 폐렴을 막자.")).words


@contextmanager
def gradient(server: ParameterServer, name: str) -> Iterator[BlockQueue]:
    """The gradient process of a node; the crawler's end of its queue."""
    crawler, end = BlockQueue.pair(10_000, multiprocessing.get_context("spawn"))
    spec = NodeSpec(name=name, server=server.location, model=MODEL, node=NODE)
    stop = threading.Event()
    thread = threading.Thread(target=GradientProcess(spec, end, stop).run, daemon=True)
    thread.start()
    try:
        yield crawler
    finally:
        stop.set()
        crawler.close()
        thread.join(60)


def test_a_gradient_process_tells_its_crawler_what_another_node_read(
    server: ParameterServer,
) -> None:
    chain = "온라인 개학\t0a1b2c3d0a1b2c3e\t"
    found: list[str] = []
    with gradient(server, "n0") as one, gradient(server, "n1") as other:

        def learnt() -> bool:
            """One more block is learnt, so that the node hears what is new."""
            name = str(time.monotonic_ns())
            text = [[f"낱말{number}" for number in range(20)]] * 5
            other.put(TokenBlock.build("글", [text], published=[0.0], keys=[name]), timeout=60)
            found.extend(other.chains())
            return bool(found)

        block = TokenBlock.build("뉴스", [[["우한폐렴"]]], published=[0.0], keys=["a"])
        one.put(replace(block, chains=(chain,)), timeout=60)
        until(learnt)
    assert found == [chain]


class Sink:
    """A queue whose gradient process has heard of a phrase."""

    alive = True

    def __init__(self) -> None:
        self.blocks: list[TokenBlock] = []
        self.told = ["우한 폐렴\t" + "0a1b2c3d0a1b2c3e0a1b2c3f\t" + "0a1b2c3d0a1b2c3e"]

    def put(self, block: TokenBlock, timeout: float | None = None) -> None:
        self.blocks.append(block)

    def chains(self) -> list[str]:
        told, self.told = self.told, []
        return told

    def acknowledged(self, timeout: float | None = None) -> list[str]:
        return []

    def send_report(self, report: object) -> None: ...

    def latest_report(self) -> None: ...


def test_a_crawler_hands_it_to_its_text_processes() -> None:
    sink, frontier = Sink(), Frontier("sqlite://")
    spec = NodeSpec(name="n0", incarnation="m", server="grpc://127.0.0.1:1", text=KIWI, node=NODE)

    async def prepared() -> None:
        process = CrawlProcess(spec, sink, threading.Event(), frontier)
        running = asyncio.create_task(process._tick())
        async with asyncio.timeout(120):
            await eventually(lambda: not sink.told)
            await process.batches.add(Document("https://a/1", "뉴스", "우한 폐렴", WHEN, WHEN))
            await eventually(lambda: bool(sink.blocks))
        running.cancel()
        await process.batches.text.close()

    try:
        asyncio.run(prepared())
    finally:
        frontier.close()
    assert sink.blocks[0].words == ("우한폐렴",)
