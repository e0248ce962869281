"""A node of a stream says that it has closed a window once the server has what it read."""

from __future__ import annotations

import multiprocessing
import threading
import time
from typing import Any

import numpy as np
import pytest

from embedding.kernel.records import TokenBlock
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from embedding.stream.queue import BlockQueue
from embedding.worker.config import NodeConfig
from embedding.worker.process.gradient import GradientProcess
from embedding.worker.spec import NodeSpec
from embedding.worker.usage.usage import UsageReader
from waiting import until

MODEL = ModelConfig(dim=8, sample=0.0)
NODE = NodeConfig(block_tokens=64, flush_seconds=0.1, report_seconds=0.05, rehearsal_passes=0)


def test_a_window_is_closed_when_the_server_has_what_was_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[int] = []
    while_reading: list[int] = []
    calls: list[int] = []
    close = UsageReader.close

    def slowly(self: UsageReader, *given: Any) -> Any:
        since = len(said)
        calls.append(since)
        found = close(self, *given)
        until(lambda: len(said) > since + 3)
        while_reading.extend(said[since:])
        return found

    leave = UsageReader.leave

    def held_back(self: UsageReader, *given: Any) -> Any:
        until(lambda: len(said) > 3 + len(calls))
        time.sleep(0.5)
        return leave(self, *given)

    monkeypatch.setattr(UsageReader, "close", slowly)
    monkeypatch.setattr(UsageReader, "leave", held_back)
    config = ServerConfig(min_count=1, min_authors=1, min_sources=1, config_digest=MODEL.digest())
    with running_server(config, SyncConfig(policy="asp"), dim=MODEL.dim) as server:
        crawler, gradient = BlockQueue.pair(10_000, multiprocessing.get_context("spawn"))
        stop = threading.Event()
        spec = NodeSpec(name="n0", server=server.location, model=MODEL, node=NODE)
        process = GradientProcess(spec, gradient, stop)
        report = process.client.report

        def reporting(figures: dict[str, Any]) -> int | None:
            report(figures)
            said.append(figures["closed"])
            return 0 if process.counters.documents == 5 else None

        monkeypatch.setattr(process.client, "report", reporting)
        thread = threading.Thread(target=process.run, daemon=True)
        thread.start()
        try:
            random = np.random.default_rng(0)
            for tick in range(5):
                text = [[f"낱말{i}" for i in random.permutation(20)] for _ in range(5)]
                block = TokenBlock.build("뉴스", [text], published=[9.0], keys=[str(tick)])
                crawler.put(block, timeout=60)
            until(lambda: said[-1:] == [0])
            assert server.status()["usage"]["held"] == 20
        finally:
            stop.set()
            crawler.close()
            thread.join(60)
    assert not thread.is_alive()
    assert set(while_reading) == {-1}
    assert len(calls) == 1, "the window was read more than once"
