"""Sums over nodes on loopback: exact everywhere, honest about a peer that is gone."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import psutil
import pytest

from embedding.exchange.allreduce.ring import Ring, rendezvous
from embedding.exchange.topology import RingSpec
from embedding.kernel.errors import ExchangeError


def together(nodes: int, work: Callable[[Ring], Any], timeout_s: float = 60.0) -> list[Any]:
    """`work` on each of some nodes; results, or errors, by rank."""

    def one(rank: int, port: int) -> Any:
        ring = Ring(RingSpec(port=port, rank=rank, size=nodes), timeout_s=timeout_s)
        try:
            return work(ring)
        finally:
            ring.close()

    with rendezvous() as port, ThreadPoolExecutor(nodes) as pool:
        running = [pool.submit(one, rank, port) for rank in range(nodes)]
        return [each.exception(timeout=60) or each.result() for each in running]


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_sum_is_the_same_bytes_on_every_node(nodes: int) -> None:
    def work(ring: Ring) -> tuple[bytes, Any, Any, int]:
        random = np.random.default_rng(ring.rank)
        values = random.standard_normal((1_001, 7)).astype(np.float32)
        ring.add_up(values)
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
    ring_bytes = 2 * (nodes - 1) * 1_001 * 7 * 4 // nodes
    assert found[-1][3] == ring_bytes


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


def test_the_rendezvous_listens_on_loopback_alone_and_its_port_is_free_afterwards() -> None:
    with rendezvous() as port:
        listening = [
            each.laddr.ip
            for each in psutil.Process().net_connections()
            if each.status == psutil.CONN_LISTEN and each.laddr.port == port
        ]
        assert listening == ["127.0.0.1"]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.cuda
def test_a_gpu_sums_by_nccl_what_the_cpu_holds() -> None:
    """One node, as nccl wants a GPU for each: the way there and back, and the bytes."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    with rendezvous() as port:
        ring = Ring(RingSpec(port=port, rank=0, size=1, backend="nccl"), timeout_s=60)
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        ring.add_up(values)
        assert values.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert ring.gather(np.array([4])).tolist() == [[4]]
        ring.close()
