"""The Dask cluster behind the pool of nodes: what is said when it is silent."""

from __future__ import annotations

import io
import json
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from embedding import cluster, nodetask
from embedding.crawl.config import CrawlConfig
from embedding.kernel.errors import PlatformError
from embedding.settings import Settings
from embedding.sources.config import SourceConfig
from embedding.worker.process.node import NodeOutcome
from embedding.worker.spec import NodeSpec
from waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A Dask scheduler in a process of its own, and its address."""
    told = tmp_path / "scheduler.json"
    command = [
        *(sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"),
        *("--port", "0", "--no-dashboard", "--no-show", "--scheduler-file", str(told)),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: told.exists() and told.read_text(), "the scheduler did not start")
            yield process, json.loads(told.read_text())["address"]
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


def workers(n: int) -> Any:
    """A cluster of n workers within this process, each with room for a node."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=n,
        threads_per_worker=2,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        resources={"node": 1},
    )


def test_a_scheduler_that_stands_still_is_not_waited_for(scheduler, monkeypatch):
    from distributed import Client

    process, address = scheduler
    with Client(address, timeout=60, set_as_default=False) as client:
        settings = Settings()
        monkeypatch.setattr(cluster, "CONNECT_SECONDS", 120)
        assert cluster.running_nodes(client, settings) == []
        monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
        process.send_signal(signal.SIGSTOP)
        for ask in (
            lambda: cluster.running_nodes(client, settings),
            lambda: cluster._on_event(client, "clear", "yeoron"),
        ):
            with pytest.raises(PlatformError, match=f"scheduler at {address} took longer"):
                ask()
        process.send_signal(signal.SIGCONT)


def test_a_node_whose_worker_is_gone_runs_on_the_one_that_comes_in_its_place(monkeypatch, tmp_path):
    """Not behind the node of a worker that is still there, which may run for weeks."""
    from distributed import Client, Event, get_worker

    ran: list[tuple[str, str]] = []
    gone: set[str] = set()

    def runs(spec: NodeSpec, should_stop: Callable[[], bool]) -> NodeOutcome:
        here = get_worker().address
        ran.append((spec.name, here))
        while here not in gone and not should_stop():
            time.sleep(0.05)
        return NodeOutcome(spec.name, 0, 0.0)

    monkeypatch.setattr(nodetask, "run_node", runs)
    monkeypatch.setattr(nodetask, "AGAIN_SECONDS", 0.1)
    with (
        workers(2) as found,
        Client(found, set_as_default=False) as client,
    ):
        names = ("p-node-0", "p-node-1")
        specs = [NodeSpec(name=name, server="grpc://127.0.0.1:1") for name in names]
        futures = [nodetask.submit_node(client, spec, "p", tmp_path) for spec in specs]
        until(lambda: len(ran) == 2)
        before = dict(ran)
        assert len(set(before.values())) == 2
        lost = before["p-node-1"]
        client.retire_workers([lost], close_workers=True, remove=True)
        until(lambda: lost not in client.scheduler_info(n_workers=-1)["workers"])
        gone.add(lost)
        time.sleep(0.5)
        assert ran == list(before.items()), "the other worker has a node"
        found.scale(3)  # it still counts the lost one
        until(lambda: len(ran) == 3)
        assert ran[2][0] == "p-node-1"
        assert ran[2][1] not in before.values()
        Event("p-stop", client=client).set()
        assert [future.result(timeout=300)["name"] for future in futures] == list(names)


SECRET = "OPERATOR-SECRET"


def test_a_node_that_fails_tells_nobody_its_secrets(monkeypatch, tmp_path):
    """Dask writes a failed task's arguments to its log, and shows them on its pages."""
    from distributed import Client, Event

    told: list[NodeSpec] = []

    def fails(spec: NodeSpec, should_stop: Callable[[], bool]) -> NodeOutcome:
        told.append(spec)
        if len(told) == 1:
            raise PlatformError("its crawler process died 20 times.")
        return NodeOutcome(spec.name, 0, 0.0)

    monkeypatch.setattr(nodetask, "run_node", fails)
    monkeypatch.setattr(nodetask, "PAUSE_SECONDS", 0.1)
    source = SourceConfig(
        name="board",
        kind="feed",
        url="https://board.example/feed",
        cookies={"session": SECRET},
        proxy=f"http://me:{SECRET}@proxy.example:3128",
    )
    crawl = CrawlConfig(frontier=f"postgresql://me:{SECRET}@db/f", pseudonym_key=SECRET)
    spec = NodeSpec(name="p-node-0", server="grpc://127.0.0.1:1", sources=(source,), crawl=crawl)
    log = io.StringIO()
    heard = logging.StreamHandler(log)
    loggers = [logging.getLogger(name) for name in ("distributed", nodetask.__name__)]
    for each in loggers:
        each.addHandler(heard)
    try:
        with (
            workers(1) as found,
            Client(found, set_as_default=False) as client,
        ):
            Event("p-stop", client=client).clear()
            future = nodetask.submit_node(client, spec, "p", tmp_path / "nodes")
            assert future.result(timeout=120)["name"] == "p-node-0"
    finally:
        for each in loggers:
            each.removeHandler(heard)
    # The node itself knows them, and what it was told shows that a task failed.
    assert [each.sources[0].cookie_values["session"] for each in told] == [SECRET] * 2
    assert told[1].crawl.pseudonym_key.get_secret_value() == SECRET
    assert "p-node-0.json" in log.getvalue()
    assert "died 20 times. It is started again in" in log.getvalue()
    assert SECRET not in log.getvalue() + repr(spec)
    (file,) = (tmp_path / "nodes").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
