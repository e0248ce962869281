"""Server groups on shards: any order of pushes, exchanges, lost messages and deaths, of groups, of
their shards, of the leader and of its shards, gives the same tables.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from shardworld import DIM, IMPATIENT, Network, Server

from embedding.exchange.payload import BlockCounts, CountGroup, RowDelta
from embedding.exchange.protocol import PullRequest, Push
from embedding.kernel.errors import BehindError, UnavailableError
from embedding.kernel.records import SourceProgress, Table
from embedding.worker.process.making import connect
from generated import examples

WORDS, GROUPS = 6, 2
FAULTS = st.lists(st.sampled_from(["ok", "ok", "request lost", "answer lost"]), max_size=8)


class Node:
    """Pushes whole numbers by a worker's own client."""

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self.sequence = self.clock = 0
        self.client = connect(server.location, node=name, config=IMPATIENT)
        self.client.admit([f"w{i}" for i in range(WORDS)], np.full(WORDS, 5))
        self.clock = self.client.pull(PullRequest({}, clock=0)).clock

    def push(self, ids: np.ndarray, by: int) -> None:
        self.sequence += 1
        values = np.full((len(ids), DIM), by, dtype=np.float32)
        ones = np.ones(len(ids), dtype=np.int64)
        push = Push(
            self.name,
            self.sequence,
            self.clock,
            (RowDelta(Table.OUT, ids, values), RowDelta(Table.IN, ids, values / 3)),
            BlockCounts((CountGroup("s", 0, len(ids)),), ids, (), ones, ones),
            (SourceProgress("s", 1, len(ids), 1.0, 0, (0.5,)),),
            tokens=len(ids),
            offset=f"{self.name} {self.sequence}",
        )
        try:
            self.clock = self.client.push(push).clock
        except UnavailableError:
            self.settle()

    def settle(self) -> None:
        """What is not everywhere is sent again."""
        again(self.client.durable)


def again(call) -> None:
    for left in range(60, -1, -1):
        try:
            call()
            return
        except UnavailableError:
            if not left:
                raise


class Exchanging(RuleBasedStateMachine):
    """After quiescence every replica holds what was pushed, each push once."""

    of_leader = of_group = 2

    @initialize()
    def begin(self) -> None:
        self.network = Network()
        self.network.__enter__()
        self.network.before = self.deliver
        self.servers: list[Server] = []
        self.leader = Server(self.network, "leader", self.of_leader, None)
        self.servers.append(self.leader)
        self.leader.state.words.admit([f"w{i}" for i in range(WORDS)], np.full(WORDS, 5))
        for i in range(GROUPS):
            # Nothing is delivered to a group that is only being made.
            server = Server(self.network, f"g{i}", self.of_group, self.leader.location)
            self.servers.append(server)
        self.nodes = [Node(f"n{i}", server) for i, server in enumerate(self.servers)]
        self.moved = np.zeros(WORDS)
        self.read: Counter[int] = Counter()
        self.leader.checkpoint()

    def deliver(self) -> None:
        for server in self.servers:
            server.deliver()

    def exchange(self, group: int, faults: list[str]) -> None:
        self.network.faults = list(faults)
        try:
            self.servers[group].link.exchange()
        except UnavailableError:
            pass
        except BehindError:  # of which the process of a group ends, and is started again
            again(self.servers[group].start)
        finally:
            self.network.faults = []

    @rule(
        node=st.integers(0, GROUPS),
        ids=st.sets(st.integers(0, WORDS - 1), min_size=1),
        by=st.integers(1, 9),
    )
    def push(self, node: int, ids: set[int], by: int) -> None:
        words = np.array(sorted(ids), dtype=np.int64)
        self.nodes[node].push(words, by)
        self.moved[words] += by
        self.read.update(words.tolist())

    @rule(group=st.integers(1, GROUPS), faults=FAULTS)
    def tell(self, group: int, faults: list[str]) -> None:
        self.exchange(group, faults)

    @rule()
    def checkpoint(self) -> None:
        self.tend()
        self.leader.checkpoint()

    def tend(self) -> None:
        """As nodes and groups do every second: what the leader lacks is sent again."""
        self.nodes[0].settle()
        for server in self.servers[1:]:
            try:
                again(server.link.client.durable)
            except BehindError:
                again(server.start)

    @rule(written=st.booleans())
    def kill_the_leader(self, written: bool) -> None:
        """Its shards notice, and may have written their last checkpoint by then."""
        self.deliver()
        if written:
            self.leader.kept = (self.leader.kept[0], self.leader.on_disk())
        self.leader.start()
        self.tend()

    @rule(group=st.integers(1, GROUPS))
    def kill_a_group(self, group: int) -> None:
        again(self.servers[group].start)
        if self.of_leader > 1:  # as a server does whenever a stream breaks
            self.checkpoint()

    @rule(index=st.integers(0, 1))
    def kill_a_shard_of_the_leader(self, index: int) -> None:
        if self.of_leader > 1:
            self.leader.start_shard(index, self.leader.kept[1][index])
            self.tend()

    @rule(group=st.integers(1, GROUPS), index=st.integers(0, 1))
    def kill_a_shard_of_a_group(self, group: int, index: int) -> None:
        if self.of_group > 1:
            self.servers[group].start_shard(index, None)

    @rule(group=st.integers(1, GROUPS))
    def kill_a_group_and_the_leader(self, group: int) -> None:
        if self.of_leader == 1:  # on shards some rows may be learnt twice then (ADR 15)
            self.leader.start()
            again(self.servers[group].start)

    def teardown(self) -> None:
        if not hasattr(self, "nodes"):
            self.network.__exit__()
            return
        try:
            for _ in range(3):
                for node in self.nodes:
                    node.settle()
                self.tend()
                self.deliver()  # by which a primary notices that a shard has lost its rows
                for server in self.servers[1:]:
                    again(server.link.exchange)
            self.compare()
        finally:
            for node in self.nodes:
                node.client.log.confirm(node.sequence)  # so that nobody waits for a checkpoint
                node.client.close()
            for server in self.servers[1:]:
                server.link.client.close()
            self.network.__exit__()

    def compare(self) -> None:
        ids, leader = np.arange(WORDS), self.leader
        assert leader.rows(Table.OUT, ids)[:, 0].tolist() == self.moved.tolist()
        for server in self.servers[1:]:
            for table in (Table.IN, Table.OUT):
                own = server.rows(table, ids)
                assert own.tobytes() == leader.rows(table, ids).tobytes()
        state = leader.state
        assert state.vocabulary.counts(ids).tolist() == [self.read[i] for i in range(WORDS)]
        assert state.meters.tokens == sum(self.read.values())
        assert state.meters.pushes == sum(node.sequence for node in self.nodes)
        for node in self.nodes:
            entry = state.ledger.of(node.name)
            assert (entry.applied, entry.accepted) == (node.sequence, node.sequence)
        for server in self.servers:
            for index in range(server.shards if server.shards > 1 else 0):
                shard = server.shard(index)
                assert (shard.inbox.lost, shard.inbox.repeated) == (0, 0)


class OnTheLeader(Exchanging):
    of_group = 1


class InTheGroups(Exchanging):
    of_leader = 1


MANY = settings(
    max_examples=examples(12),
    stateful_step_count=16,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestOnBoth, TestOnTheLeader, TestInTheGroups = (
    pytest.mark.timeout(600)(machine.TestCase) for machine in (Exchanging, OnTheLeader, InTheGroups)
)
TestOnBoth = pytest.mark.laboratory(TestOnBoth)
TestOnTheLeader = pytest.mark.laboratory(TestOnTheLeader)
for machine in (Exchanging, OnTheLeader, InTheGroups):
    machine.TestCase.settings = MANY
