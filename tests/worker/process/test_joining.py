"""Nodes come and go while others learn in lockstep, over a real server."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import PullRequest, Push
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.stream.config import StreamConfig
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.corpus.reading import blocks
from embedding.worker.process.node import run_node
from embedding.worker.spec import CorpusShare, NodeSpec
from waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
MODEL = ModelConfig(dim=8, sample=0.0)
NONE = np.empty(0, dtype=np.int64)
GREETS = """
import sys, time
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import PullRequest
client = ParameterClient(sys.argv[1], node="doomed", config=ExchangeConfig())
client.pull(PullRequest({}, clock=client.hello().clock))
print("reads", flush=True)
time.sleep(600)
"""


def state(server: ParameterServer, node: str) -> str:
    return str(server.status()["nodes"].get(node, {}).get("state"))


def pushed(server: ParameterServer, node: str) -> int:
    return int(server.status()["nodes"].get(node, {}).get("sequence", 0))


def learnt(server: ParameterServer) -> int:
    return int(server.status()["sources"]["corpus"]["tokens"])


def test_nodes_join_leave_and_come_back_and_each_line_is_learnt_once(tmp_path: Path) -> None:
    """A node that learns nothing holds the others at the barrier until all take part."""
    path = tmp_path / "c.txt"
    path.write_text("".join(f"하나 둘 셋 낱말{i % 50}\n" for i in range(90_000)), encoding="utf-8")
    leave = threading.Event()

    def spec(i: int) -> NodeSpec:
        return NodeSpec(
            name=f"n{i}",
            server=server.location,
            corpus=CorpusShare(path=str(path), index=i, count=3),
            text=TextConfig(tokenizer="whitespace", mask=False),
            model=MODEL,
            node=NodeConfig(replay_ratio=0.0, block_tokens=1_000),
            stream=StreamConfig().model_copy(update={"queue_tokens": 2_000}),
        )

    config = ServerConfig(min_count=1, config_digest=MODEL.digest())
    sync = SyncConfig(policy="bsp", liveness_timeout_s=600.0)
    with (
        running_server(config, sync, dim=8) as server,
        ParameterClient(server.location, node="gate", config=ExchangeConfig()) as gate,
        ThreadPoolExecutor(4) as pool,
    ):
        gate.pull(PullRequest({}, clock=gate.hello().clock))
        stop = threading.Event()
        try:
            stays = [pool.submit(run_node, spec(0), stop.is_set)]
            until(lambda: pushed(server, "n0"), "the first node learns nothing")
            stays.append(pool.submit(run_node, spec(1), stop.is_set))
            goes = pool.submit(run_node, spec(2), leave.is_set)
            until(lambda: pushed(server, "n2"), "the node that joined takes no part")
            leave.set()
            gate.close()
            goes.result(timeout=300)
            assert state(server, "n2") == "gone"
            for node in stays:
                node.result(timeout=300)
            sizes = [sum(b.n_tokens for b in blocks(spec(i), spec(i).corpus)) for i in range(3)]
            assert learnt(server) < sum(sizes)
            pool.submit(run_node, spec(2), stop.is_set).result(timeout=300)
        finally:
            stop.set()
            leave.set()
        assert learnt(server) == sum(sizes)


def test_nobody_waits_for_a_node_whose_process_was_killed() -> None:
    """Long before it counts as gone by its silence."""
    sync = SyncConfig(policy="bsp", liveness_timeout_s=600.0)
    line = ExchangeConfig().model_copy(update={"pull_timeout_s": 60.0})
    with (
        running_server(ServerConfig(), sync, dim=8) as server,
        ParameterClient(server.location, node="stays", config=line) as client,
    ):
        clock = client.hello().clock
        process = subprocess.Popen(
            [sys.executable, "-c", GREETS, server.location], stdout=subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"reads\n"
            clock = client.pull(PullRequest({}, clock=clock)).clock
            clock = client.push(Push("stays", 1, clock)).clock
            timer = threading.Timer(1.0, process.kill)
            began = time.monotonic()
            timer.start()
            client.pull(PullRequest({}, clock=clock))
            assert time.monotonic() - began > 0.5, "a barrier waits for a node that takes part"
            assert state(server, "doomed") == "idle"
        finally:
            process.kill()
            process.communicate(timeout=300)
