"""A node of a stream that keeps blocks back pushes them as soon as it has nothing to read."""

from __future__ import annotations

import multiprocessing
import threading

import pytest

from embedding.kernel.records import TokenBlock
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from embedding.stream.queue import BlockQueue
from embedding.worker.config import NodeConfig
from embedding.worker.process import gradient as module
from embedding.worker.process.gradient import GradientProcess
from embedding.worker.spec import NodeSpec
from waiting import until

MODEL = ModelConfig(dim=8, sample=0.0)
NODE = NodeConfig(block_tokens=64, flush_seconds=0.1, replay_ratio=0.0).model_copy(
    update={"report_seconds": 0.2}
)


@pytest.mark.parametrize(
    "sync",
    [
        {"policy": "asp", "n_push": 500, "n_fetch": 3},
        {"policy": "averaging", "tau": 500},
        {"policy": "easgd", "tau": 500},
    ],
    ids=lambda sync: sync["policy"],
)
def test_what_is_kept_is_pushed_when_the_text_runs_dry(sync: dict) -> None:
    config = ServerConfig(min_count=1, min_authors=1, min_sources=1, config_digest=MODEL.digest())
    with running_server(config, SyncConfig(**sync), dim=MODEL.dim) as server:
        crawler, gradient = BlockQueue.pair(10_000, multiprocessing.get_context("spawn"))
        spec = NodeSpec(name="n0", server=server.location, model=MODEL, node=NODE)
        stop = threading.Event()
        process = GradientProcess(spec, gradient, stop)
        thread = threading.Thread(target=process.run, daemon=True)
        thread.start()
        try:
            for tick in range(5):
                text = [[f"낱말{i}" for i in range(20)] for _ in range(5)]
                block = TokenBlock.build("뉴스", [text], published=[0.0], keys=[str(tick)])
                crawler.put(block, timeout=60)
            # The crawler is still there, and five blocks are far fewer than 500.
            until(lambda: server.status()["documents"] == 5)
            status = server.status()
            assert status["tokens"] == 5 * 100
            until(lambda: server.status()["nodes"]["n0"]["state"] == "idle")
            assert process.counters.documents == 5
        finally:
            stop.set()
            crawler.close()
            thread.join(60)
        assert not thread.is_alive()


def test_a_node_without_text_gives_memory_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(module, "give_back", lambda: calls.append("given back"))
    monkeypatch.setattr(module, "_REST_S", 0.6)
    config = ServerConfig(config_digest=MODEL.digest())
    with running_server(config, SyncConfig(), dim=MODEL.dim) as server:
        crawler, queue = BlockQueue.pair(10_000, multiprocessing.get_context("spawn"))
        spec = NodeSpec(name="n0", server=server.location, model=MODEL, node=NODE)
        stop = threading.Event()
        process = GradientProcess(spec, queue, stop)
        reports: list[int] = []
        monkeypatch.setattr(process, "_report", lambda: reports.append(len(calls)))
        thread = threading.Thread(target=process.run, daemon=True)
        thread.start()
        try:
            until(lambda: bool(calls))
            seen = len(reports)
            until(lambda: len(reports) > seen + 6)
            assert calls == ["given back"]
        finally:
            stop.set()
            crawler.close()
            thread.join(60)
