"""A whole node: reader, queue, gradient process, server; and what happens when a process dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.simweb.testing import running
from embedding.sources.config import SourceConfig
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.node import run_node
from embedding.worker.spec import CorpusShare, NodeSpec

MODEL = ModelConfig(dim=8, sample=0.0)
QUICK = NodeConfig(flush_seconds=0.2, batch_seconds=0.1, report_seconds=0.2, replay_ratio=0.0)
TEXT = TextConfig(tokenizer="whitespace", mask=False)

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[ParameterServer]:
    config = ServerConfig(min_count=1, config_digest=MODEL.digest())
    with running_server(config, SyncConfig(policy="asp"), dim=8) as found:
        yield found


def spec(server: ParameterServer, **options: object) -> NodeSpec:
    values = {"name": "n0", "server": server.location, "model": MODEL, "node": QUICK, "text": TEXT}
    return NodeSpec(**{**values, **options})


def until(condition, timeout: float = 120.0) -> bool:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


def test_a_corpus_is_learnt_to_its_last_token(server: ParameterServer, tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text("".join(f"하나 둘 셋 낱말{i % 50}\n" for i in range(500)), encoding="utf-8")
    outcome = run_node(spec(server, corpus=CorpusShare(path=str(path))), lambda: False)
    status = server.status()
    assert outcome.restarts == 0
    assert status["sources"]["corpus"]["tokens"] == 2000
    assert status["documents"] == 500


def test_a_killed_process_loses_no_document(server: ParameterServer, tmp_path: Path) -> None:
    documents = [
        {
            "date": f"2020-02-{1 + i % 27:02d}T{i % 24:02d}:00:00+00:00",
            "title": f"제목 {i}",
            "text": f"시장 상인 가게 손님 물건 가격 장사 매출 골목 거리 이야기{i}. " * 3,
            "part": "politics",
        }
        for i in range(60)
    ]
    stop = threading.Event()
    with running(None, documents) as url:
        source = SourceConfig(
            name="news", kind="feed", url=f"{url}/news/politics/rss.xml", every=0.5, rate=200
        )
        crawl = {
            "allow_private_hosts": (url.removeprefix("http://"),),
            "frontier": f"sqlite:///{tmp_path / 'frontier.db'}",
            "extract_processes": 0,
            "rate": 200.0,
            "near_window": 0,
        }
        node = spec(server, sources=(source,), crawl=crawl)
        thread = threading.Thread(target=run_node, args=(node, stop.is_set))
        thread.start()
        try:
            assert until(lambda: server.status()["documents"] >= 5)
            victim = next(
                child
                for child in psutil.Process().children()
                if "spawn_main" in " ".join(child.cmdline())
            )
            os.kill(victim.pid, signal.SIGKILL)
            assert until(lambda: server.status()["documents"] >= 60)
            # Only what was pushed and not yet acknowledged when it died may come again.
            time.sleep(2.0)
            assert server.status()["documents"] <= 60 + QUICK.batch_documents
        finally:
            stop.set()
            thread.join(timeout=120)
    assert not thread.is_alive()
