"""Sums over nodes: exact everywhere, honest about a peer that is gone, closed to other users."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from embedding.exchange.topology import TopologyConfig
from embedding.kernel.errors import BrokenRingError, ExchangeError
from yeoron_lab.allreduce.meeting import form_ring
from yeoron_lab.allreduce.rendezvous import Rendezvous, rendezvous
from yeoron_lab.allreduce.ring import Ring, RingSpec


def together(nodes: int, work: Callable[[Ring], Any], timeout_s: float = 60.0) -> list[Any]:
    """`work` on each of some nodes; results, or errors, by rank."""

    def one(rank: int, folder: Path) -> Any:
        ring = form_ring(RingSpec(folder=folder, rank=rank, size=nodes), timeout_s=timeout_s)
        try:
            return work(ring)
        finally:
            ring.close()

    with rendezvous() as folder, ThreadPoolExecutor(nodes) as pool:
        running = [pool.submit(one, rank, folder) for rank in range(nodes)]
        return [each.exception(timeout=300) or each.result() for each in running]


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_sum_is_the_same_bytes_on_every_node(nodes: int) -> None:
    def work(ring: Ring) -> tuple[bytes, Any, Any, int]:
        random = np.random.default_rng(ring.rank)
        values = random.standard_normal((1_001, 7)).astype(np.float32)
        ring.add_up(values)
        ring.add_up(np.empty((0, 7), dtype=np.float32))
        lead = np.full((2, 2), ring.rank, dtype=np.float32)
        ring.from_leader(lead)
        sent = ring.bytes_sent
        heads = ring.gather(np.array([ring.rank, 7]))
        return values.tobytes(), heads.tolist(), lead.tolist(), sent

    found = together(nodes, work)
    assert len({each[0] for each in found}) == 1
    parts = [np.random.default_rng(i).standard_normal((1_001, 7)) for i in range(nodes)]
    summed = np.frombuffer(found[0][0], dtype=np.float32).reshape(1_001, 7)
    assert np.allclose(summed, np.sum(parts, axis=0), atol=1e-5)
    for each in found:
        assert each[1] == [[i, 7] for i in range(nodes)]
        assert each[2] == [[0.0, 0.0], [0.0, 0.0]]
    # A ring sends each part of the sum nodes-1 times around, and its result as often.
    led = (nodes - 1) * 2 * 2 * 4
    assert sum(each[3] for each in found) == 2 * (nodes - 1) * 1_001 * 7 * 4 + led


def test_a_peer_that_leaves_is_told_in_a_sentence() -> None:
    def work(ring: Ring) -> None:
        ring.gather(np.zeros(1, dtype=np.int64))
        if ring.rank != 1:
            ring.add_up(np.ones(10, dtype=np.float32))

    found = together(3, work)
    assert found[1] is None
    for rank in (0, 2):
        assert isinstance(found[rank], ExchangeError)
        assert str(found[rank]) == f"all-reduce of 3 nodes: a peer of node {rank} is gone."


@pytest.mark.laboratory
def test_a_peer_that_is_silent_is_noticed_after_the_time_given() -> None:
    noticed = threading.Event()

    def work(ring: Ring) -> float:
        ring.gather(np.zeros(1, dtype=np.int64))
        if ring.rank == 1:
            assert noticed.wait(120), "node 0 waits for ever"
            return 0.0
        began = time.monotonic()
        with pytest.raises(ExchangeError, match="a peer of node 0 was silent for 3 s"):
            ring.add_up(np.ones(10, dtype=np.float32))
        noticed.set()
        return time.monotonic() - began

    # The two have as long to meet.
    assert together(2, work, timeout_s=3.0)[0] > 2


def test_more_than_a_socket_holds_goes_around() -> None:
    def work(ring: Ring) -> tuple[float, int]:
        sums = np.full(3_000_001, ring.rank + 1, dtype=np.float32)
        ring.add_up(sums)
        lead = np.arange(500_000) * (1 - min(ring.rank, 1))
        ring.from_leader(lead)
        return float(sums.min() + sums.max()), int(lead.sum())

    assert together(3, work) == [(12.0, 499_999 * 250_000)] * 3


def test_a_node_that_does_not_come_is_noticed() -> None:
    with rendezvous() as folder:
        spec = RingSpec(folder=folder, rank=0, size=2)
        with pytest.raises(BrokenRingError, match="a peer of node 0 was silent for 1 s"):
            form_ring(spec, timeout_s=1.0)


# What another user of the machine can do: look for the folder, and try the socket.
STRANGER = """
import os, pathlib, socket, sys
os.setuid(65534)
folder = pathlib.Path(sys.argv[1])
for attempt in (
    lambda: list(folder.iterdir()),
    lambda: (folder / "node%2Fa").read_text(),
    lambda: (folder / "node%2Fa").write_text("1"),
    lambda: socket.socket(socket.AF_UNIX).connect(str(folder / "ring-0-0")),
):
    try:
        attempt()
    except PermissionError:
        continue
    sys.exit(7)
"""


def listening() -> set[int]:
    """Ports at which this process listens."""
    own = psutil.Process().net_connections(kind="inet")
    return {each.laddr.port for each in own if each.status == psutil.CONN_LISTEN}


def test_nothing_listens_on_a_port() -> None:
    before = listening()

    def work(ring: Ring) -> set[int]:
        ring.gather(np.zeros(1, dtype=np.int64))
        return listening() - before

    assert together(3, work) == [set()] * 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_another_user_opens_nothing_of_it() -> None:
    with rendezvous() as folder, socket.socket(socket.AF_UNIX) as listener:
        assert folder.stat().st_mode & 0o777 == 0o700
        Rendezvous(folder).put("node/a", 1)
        listener.bind(str(folder / "ring-0-0"))
        listener.listen(1)
        stranger = [sys.executable, "-c", STRANGER, str(folder)]
        assert subprocess.run(stranger, timeout=300).returncode == 0
    assert not folder.exists()


def test_what_is_not_in_one_piece_is_refused() -> None:
    with rendezvous() as folder:
        ring = form_ring(RingSpec(folder=folder, rank=0, size=1), timeout_s=1)
        with pytest.raises(ValueError, match="C-contiguous"):
            ring.add_up(np.zeros((4, 4))[:, 1])


def test_the_first_value_counts_and_a_rendezvous_that_is_gone_is_one_sentence() -> None:
    with rendezvous() as folder:
        held = Rendezvous(folder)
        assert not held.has("gen/1")
        held.put_first("gen/1", ["a"])
        held.put_first("gen/1", ["b"])
        assert held.get("gen/1") == ["a"]
        held.put("gen/1", ["c"])
        assert Rendezvous(folder).get("gen/1") == ["c"]
    for call in (
        lambda: held.has("gen/2"),
        lambda: held.get("gen/1"),
        lambda: held.put("gen/1", 1),
        lambda: held.put_first("gen/1", 1),
        lambda: Rendezvous(folder),
    ):
        with pytest.raises(ExchangeError, match="its training has ended"):
            call()


def test_a_carrier_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="'auto', 'sockets' or 'nccl'"):
        TopologyConfig(backend="mpi")


@pytest.mark.cuda
def test_a_gpu_sums_by_nccl_what_the_cpu_holds() -> None:
    """One node, as nccl wants a GPU for each: the way there and back, and the bytes."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    with rendezvous() as folder:
        ring = form_ring(RingSpec(folder=folder, rank=0, size=1, backend="nccl"), timeout_s=60)
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        ring.add_up(values)
        assert values.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert ring.gather(np.array([4])).tolist() == [[4]]
        ring.close()
