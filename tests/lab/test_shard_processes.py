"""Shards as processes: killed in the middle of training, and gone with their primary."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import psutil
import pytest
from named import named

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PullRequest, Push
from embedding.kernel.errors import PlatformError
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
from embedding.worker.process.making import connect
from waiting import until
from yeoron_lab.processes import Fleet
from yeoron_lab.shards.sharding import shard_specs

pytestmark = pytest.mark.laboratory

CLIENT = ExchangeConfig(rows="float32", max_backoff_s=0.2).model_copy(
    update={"max_unconfirmed": 64}
)
DIM = 4


@pytest.mark.slow
def test_a_killed_shard_loses_nothing_that_was_acknowledged(tmp_path):
    """kill -9 of each shard in the middle of two nodes' training: each push counts exactly once."""
    chosen = ServerConfig(
        shards=2, state_dir=tmp_path, min_count=1, checkpoint_every_s=0.5, device="cpu"
    )
    words = [f"말{i}" for i in range(50)]
    pushed = {"n0": 0, "n1": 0}
    stop = threading.Event()

    def train(name: str, location: str) -> None:
        with connect(location, node=name, config=CLIENT) as client:
            clock, sequence = client.welcome.clock, 0
            ids = client.admit(words, np.full(50, 5))
            while not stop.is_set():
                clock = client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=clock)).clock
                sequence += 1
                delta = RowDelta(Table.OUT, ids, np.ones((50, DIM), dtype=np.float32))
                push = Push(name, sequence, clock, (delta,), named(words), tokens=50)
                clock = client.push(push).clock
                pushed[name] = sequence

    with running_server(chosen, dim=DIM) as server:
        trainers = [threading.Thread(target=train, args=(name, server.location)) for name in pushed]
        for trainer in trainers:
            trainer.start()
        try:
            for index in (0, 1):
                reached = min(pushed.values())
                until(lambda reached=reached: min(pushed.values()) > reached + 20)
                os.kill(server.pids[f"shard-{index}"], signal.SIGKILL)
            reached = min(pushed.values())
            until(lambda: min(pushed.values()) > reached + 20)
        finally:
            stop.set()
            for trainer in trainers:
                trainer.join(90)
        total = sum(pushed.values())
        with connect(server.location, node="n0", config=CLIENT) as client:
            ids = client.admit(words, np.full(50, 5))
            rows = client.pull(
                PullRequest({Table.IN: ids, Table.OUT: ids}, clock=client.welcome.clock)
            )
            assert rows.rows[Table.OUT].tolist() == [[total] * DIM] * 50
            status = client.status()
        assert status["tokens"] == total * 50
        assert [shard["lost_pushes"] for shard in status["shards"]] == [0, 0]
        assert [shard["restarts"] for shard in status["shards"]] == [1, 1]
        pids = [*server.pids.values()]
    assert not any(psutil.pid_exists(pid) for pid in pids)
    # What was stopped in good order is all there again.
    with (
        running_server(chosen, dim=DIM) as server,
        connect(server.location, node="n1", config=CLIENT) as client,
    ):
        rows = client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=client.welcome.clock))
        assert rows.rows[Table.OUT].tolist() == [[total] * DIM] * 50


SERVE = """
import sys
from embedding.server.config import ServerConfig
from embedding.server.service import ParameterServer
server = ParameterServer(ServerConfig(shards=2, device="cpu"), dim=4)
server.serve_forever(lambda: print(*server.pids.values(), flush=True))
"""


ROOT = Path(__file__).parents[2]
ROOTS = (str(ROOT), str(ROOT / "neighbours"))


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_shard_outlives_its_primary(how):
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(ROOTS)},
    )
    try:
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 2
        process.send_signal(how)
        process.wait(300)
        until(lambda: not any(psutil.pid_exists(pid) for pid in pids))
    finally:
        process.kill()
        process.wait(300)
        process.stdout.close()


@pytest.mark.slow
def test_a_shard_that_cannot_start_is_an_error_and_leaves_none_running(tmp_path):
    (tmp_path / "shard-1").write_text("a file where a folder should be")
    specs = shard_specs(
        ServerConfig(shards=2, state_dir=tmp_path, device="cpu"), dim=4, seed=0, identity="x"
    )
    before = set(psutil.Process().children())
    with pytest.raises(PlatformError, match="shard 1 ended while it started"):
        Fleet(specs).start()
    assert set(psutil.Process().children()) <= before
