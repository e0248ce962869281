"""The Dask cluster behind the pool of nodes: what is said when it is silent."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedding import cluster
from embedding.errors import PlatformError
from embedding.settings import Settings

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
            deadline = time.monotonic() + 60
            while not told.exists() or not told.read_text():
                assert time.monotonic() < deadline, "the scheduler did not start"
                assert process.poll() is None, "the scheduler ended"
                time.sleep(0.05)
            yield process, json.loads(told.read_text())["address"]
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


def test_a_scheduler_that_stands_still_is_not_waited_for(scheduler, monkeypatch):
    from distributed import Client

    process, address = scheduler
    with Client(address, timeout=60, set_as_default=False) as client:
        settings = Settings()
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
