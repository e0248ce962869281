"""A group of nodes and its aggregator, a real process: every push once, whatever dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PullRequest, Push
from embedding.kernel.records import Table
from embedding.models.starting import first_vectors
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from waiting import until
from yeoron_lab.aggregating.aggregator import (
    Aggregator,
    AggregatorLine,
    NodePush,
    running_aggregator,
    served,
)

pytestmark = pytest.mark.slow

EXCHANGE = ExchangeConfig(connect_timeout_s=20).model_copy(update={"request_timeout_s": 20})
WORDS = [f"w{i}" for i in range(8)]
DIM = 4


@pytest.fixture
def server() -> Iterator[ParameterServer]:
    config = ServerConfig(min_count=1, half_life_tokens=None)
    with running_server(config, SyncConfig(policy="asp"), dim=DIM, seed=1) as found:
        found.state.words.admit(WORDS, np.ones(len(WORDS), dtype=np.int64))
        yield found


class Member:
    """A node that moves rows by whole numbers."""

    def __init__(self, server: ParameterServer, at: str, name: str, wait_s: float = 60.0) -> None:
        self.relay = AggregatorLine(at, group="g", config=EXCHANGE, timeout_s=wait_s)
        self.client = ParameterClient(server.location, node=name, config=EXCHANGE, relay=self.relay)
        self.client.hello()
        self.sequence = self.clock = 0

    def learn(self, rows: list[int], by: int, pulled: Callable[[], object] = lambda: None) -> None:
        ids = np.asarray(rows, dtype=np.int64)
        at = self.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=self.clock)).clock
        pulled()
        moved = np.full((len(rows), DIM), by, dtype=np.float32)
        self.sequence += 1
        deltas = tuple(RowDelta(table, ids, moved.copy()) for table in (Table.IN, Table.OUT))
        ack = self.client.push(Push(self.client.node, self.sequence, at, deltas, tokens=len(rows)))
        assert ack.sequence == self.sequence
        self.clock = ack.clock


def check(server: ParameterServer, members: int, blocks: int) -> None:
    """Node i has moved row i and row 7 by i + 1 in each block."""
    tables, slots = server.state.tables, np.arange(len(WORDS))
    own = [blocks * (i + 1) if i < members else 0 for i in range(7)]
    expected = np.asarray([*own, blocks * members * (members + 1) // 2], dtype=np.float32)
    first = first_vectors(np.arange(len(WORDS)), DIM, 1)
    assert np.allclose(tables.read(Table.OUT, slots), expected[:, None], atol=1e-3)
    assert np.allclose(tables.read(Table.IN, slots), first + expected[:, None], atol=1e-2)
    assert server.state.meters.tokens == 2 * members * blocks
    assert server.state.meters.pushes == members * blocks


def work(member: Member, i: int, blocks: int) -> None:
    for _ in range(blocks):
        member.learn([i, 7], i + 1)
    member.client.close()


def test_a_group_moves_the_rows_as_its_nodes_would_and_sends_less(server: ParameterServer) -> None:
    before = server.state.meters.bytes_in
    with running_aggregator(server.location, EXCHANGE, group="g", wait_s=60) as at:
        members = [Member(server, at, f"n{i}") for i in range(3)]
        with ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(work, m, i, 20) for i, m in enumerate(members)]:
                done.result(timeout=100)
    check(server, 3, 20)
    assert server.state.meters.duplicates == 0
    assert [member.relay.direct for member in members] == [0, 0, 0]
    assert [member.relay.sent for member in members] == [20, 20, 20]
    # Nodes of a group are in step: from its second block on none is more than one ahead.
    assert max(member.clock for member in members) - min(m.clock for m in members) <= 1
    assert server.state.meters.rows_in < 3 * 20 * 4, "row 7 travels once for all"
    assert server.state.meters.bytes_in > before


@pytest.mark.laboratory
def test_when_the_aggregator_is_killed_every_push_is_taken_once(server: ParameterServer) -> None:
    with running_aggregator(server.location, EXCHANGE, group="g", wait_s=60) as at:
        members = [Member(server, at, f"n{i}") for i in range(3)]
        with ThreadPoolExecutor(3) as pool:
            running = [pool.submit(work, m, i, 60) for i, m in enumerate(members)]
            until(lambda: server.state.meters.pushes >= 30)
            (process,) = (
                each for each in multiprocessing.active_children() if each.name == "g-aggregator"
            )
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            for done in running:
                done.result(timeout=100)
    check(server, 3, 60)
    assert all(member.relay.lost and member.relay.direct > 0 for member in members)
    assert all(member.relay.sent > 0 for member in members)


def test_an_aggregator_that_fails_is_given_up_and_the_node_goes_to_the_server() -> None:
    class Failing(Aggregator):
        def push(self, given: NodePush) -> dict[str, Any]:
            raise KeyError(given.node)

    aggregator = Failing("grpc://127.0.0.1:1", EXCHANGE, wait_s=60)
    service = served(aggregator, EXCHANGE.max_message_bytes)
    location = f"grpc://127.0.0.1:{service.port}"
    line = AggregatorLine(location, group="g", config=EXCHANGE, timeout_s=60)
    try:
        assert line.push(Push("n0", 1, 0), session=0) is None
        assert (line.lost, line.direct, line.sent) == (True, 1, 0)
    finally:
        line.close()
        aggregator.close()
        service.shutdown()


def test_a_push_that_its_node_sent_itself_is_not_taken_again_with_the_sum(
    server: ParameterServer,
) -> None:
    with running_aggregator(server.location, EXCHANGE, group="g", wait_s=60) as at:
        members = [Member(server, at, f"n{i}") for i in range(2)]
        with ThreadPoolExecutor(2) as pool:
            # Whoever pulls after the other has pushed joins at the next clock.
            both = threading.Barrier(2)
            learnt = [pool.submit(m.learn, [i, 7], i + 1, both.wait) for i, m in enumerate(members)]
            for done in learnt:
                done.result(timeout=300)
            # Node 0 gives its push and then, before the sum has left, sends it itself.
            early = pool.submit(members[0].learn, [0, 7], 1)
            held = threading.Event()
            while not early.done() and not held.wait(0.3):
                held.set()
            assert not early.done(), "it waits for node 1"
            moved = np.full((2, DIM), 1, dtype=np.float32)
            ids = np.asarray([0, 7], dtype=np.int64)
            deltas = tuple(RowDelta(table, ids, moved) for table in (Table.IN, Table.OUT))
            server.state.push(Push("n0", 2, members[0].clock, deltas, tokens=2))
            members[1].learn([1, 7], 2)
            early.result(timeout=300)
        for member in members:
            member.client.close()
    check(server, 2, 2)
    assert members[1].relay.direct == 1, "the sum was refused as a whole"


def test_a_node_that_does_not_come_holds_the_others_up_for_a_while_only(
    server: ParameterServer,
) -> None:
    with running_aggregator(server.location, EXCHANGE, group="g", wait_s=1.0) as at:
        members = [Member(server, at, f"n{i}") for i in range(2)]
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(m.learn, [i, 7], i + 1) for i, m in enumerate(members)]:
                done.result(timeout=300)
        members[0].learn([0, 7], 1)  # node 1 is stuck: nobody is told
        members[0].learn([0, 7], 1)
        members[1].learn([1, 7], 2)
        members[1].client.idle()
        members[0].learn([0, 7], 1)
        for member in members:
            member.client.close()
    assert server.state.meters.tokens == 2 * 6
