"""Server groups: any order of pushes, exchanges, lost messages and deaths gives the same tables."""

from __future__ import annotations

from collections import Counter
from functools import partial
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import BlockCounts, CountGroup, RowDelta
from embedding.exchange.protocol import PROTOCOL_VERSION, PullRequest, Push
from embedding.exchange.session import PushLog
from embedding.exchange.wire import decode, encode
from embedding.kernel.errors import BehindError, UnavailableError
from embedding.kernel.records import SourceProgress, Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.figures.meters import Parts
from embedding.server.flight.shell import NodeSession, _answer
from embedding.server.recovery.restoring import assemble, collect, restore
from embedding.server.rowstore import RowShape
from embedding.server.state import ServerState
from generated import examples
from yeoron_lab.groups.client import LeaderClient
from yeoron_lab.groups.leader import Leader, following_config
from yeoron_lab.groups.link import GroupLink
from yeoron_lab.settings import GroupConfig

DIM, WORDS, GROUPS = 2, 6, 2
IMPATIENT = ExchangeConfig(
    connect_timeout_s=0.001, max_backoff_s=0.001, max_message_bytes=1 << 16
).model_copy(update={"backoff_s": 0.001})
FAULTS = st.lists(st.sampled_from(["ok", "ok", "request lost", "answer lost"]), max_size=6)


class Line:
    """A channel that the test delivers by: real messages, a real session, faults by plan."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.session = NodeSession(world.leader)

    def open(self) -> None: ...

    def close(self) -> None: ...

    def request(self, message, timeout_s=None):
        fault = self.world.faults.pop(0) if self.world.faults else "ok"
        if fault == "request lost" or self.session.state is not self.world.leader:
            raise UnavailableError("the request was lost.")
        sent, header = encode(message)
        chunk = SimpleNamespace(data=sent, app_metadata=pa.py_buffer(header))
        answer = _answer(lambda: self.session.handle(chunk, 0, Parts()), self.world.leader)
        if fault == "answer lost":
            raise UnavailableError("the answer was lost.")
        batch, header = encode(answer)
        found = decode(batch, pa.py_buffer(header))
        assert found.header["status"] == "ok", found.header
        return found


class Linked(LeaderClient):
    """A group's client whose channel is a `Line`."""

    def __init__(self, world: World, location: str, *, node: str, **more: object) -> None:
        del more
        super().__init__(location, node=node, config=IMPATIENT)
        self.peer._new = lambda: Line(world)


class Node:
    """Pushes whole numbers, and keeps what is in no checkpoint, as a worker does."""

    def __init__(self, name: str, server: ServerState) -> None:
        self.name = name
        self.log: PushLog[Push] = PushLog(max_pushes=10_000, max_bytes=1 << 30)
        self.sequence = 0
        self.greet(server)

    def greet(self, server: ServerState) -> None:
        self.server = server
        welcome = server.hello(self.name, version=PROTOCOL_VERSION, digest="", clock=0)
        self.session = welcome.session
        server.pull(self.name, PullRequest({}, 0))
        self.log.confirm(welcome.durable)
        for push in self.log.after(welcome.sequence):
            self.send(push)

    def push(self, ids: np.ndarray, by: int) -> None:
        self.sequence += 1
        values = np.full((len(ids), DIM), by, dtype=np.float32)
        ones = np.ones(len(ids), dtype=np.int64)
        push = Push(
            self.name,
            self.sequence,
            0,
            (RowDelta(Table.OUT, ids, values), RowDelta(Table.IN, ids, values / 3)),
            BlockCounts((CountGroup("s", 0, len(ids)),), ids, (), ones, ones),
            (SourceProgress("s", 1, len(ids), 1.0, 0, (0.5,)),),
            tokens=len(ids),
            offset=f"{self.name} {self.sequence}",
        )
        self.log.add(push)
        self.send(push)

    def send(self, push: Push) -> None:
        # Clocks are no matter here: asp applies each push as it comes.
        member = self.server.machine.board.members[self.name]
        clocked = Push(**{**push.__dict__, "clock": member.clock})
        self.log.confirm(self.server.push(clocked, self.session).durable)


class World:
    """One leader with a node, groups with a node each, and the last checkpoint of the leader."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.incarnations = 0
        self.leader = self.new_leader()
        self.leader.words.admit([f"w{i}" for i in range(WORDS)], np.full(WORDS, 5))
        self.content = None
        self.links = [self.new_group(i) for i in range(GROUPS)]
        self.nodes = [Node("n0", self.leader)]
        self.nodes += [Node(f"n{i + 1}", link.state) for i, link in enumerate(self.links)]
        self.checkpoint()

    def config(self, group: GroupConfig | None = None) -> ServerConfig:
        return ServerConfig(
            min_count=1, half_life_tokens=None, device="cpu", group=group or GroupConfig()
        ).model_copy(update={"initial_rows": 1})

    def new_leader(self) -> ServerState:
        self.incarnations += 1
        state = ServerState(
            self.config(), SyncConfig(policy="asp"), RowShape(DIM, seed=1), epoch=self.incarnations
        )
        state.ledger.keeps_checkpoints = True
        self.groups = state.parts["groups"]
        return state

    def new_group(self, index: int) -> GroupLink:
        group = GroupConfig(leader="grpc://here:1", name=f"g{index}", rows="float32").model_copy(
            update={"curvature": 0.0}
        )
        self.incarnations += 1
        config = following_config(self.config(group))
        leader = Leader(config, partial(Linked, self))
        state = ServerState(
            config,
            SyncConfig(policy="asp"),
            RowShape(DIM, seed=2),
            epoch=self.incarnations,
            upstream=leader,
        )
        link = GroupLink(state, leader)
        self.faults = []
        link.start()
        return link

    def checkpoint(self) -> None:
        with self.leader.lock:
            collected = collect(self.leader)
            copy = self.leader.rows.own_copy()
        copy.finish(self.leader.lock)
        self.content = assemble(collected, copy)
        self.leader.ledger.persisted(collected.facts["applied"])

    def exchange(self, index: int, faults: list[str]) -> None:
        self.faults = list(faults)
        try:
            self.links[index].exchange()
        except UnavailableError:
            pass
        except BehindError:
            # The leader lost entries that this incarnation of the group does not hold: it starts
            # again.
            self.kill_group(index)
        finally:
            self.faults = []

    def kill_leader(self) -> None:
        self.leader = self.new_leader()
        restore(self.leader, self.content, "test")
        self.nodes[0].greet(self.leader)

    def kill_group(self, index: int) -> None:
        self.links[index] = self.new_group(index)
        self.nodes[index + 1].greet(self.links[index].state)


class Exchanging(RuleBasedStateMachine):
    """After quiescence every replica holds what was pushed, each push once."""

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.moved = np.zeros(WORDS)
        self.read: Counter[int] = Counter()

    @rule(
        node=st.integers(0, GROUPS),
        ids=st.sets(st.integers(0, WORDS - 1), min_size=1),
        by=st.integers(1, 9),
    )
    def push(self, node: int, ids: set[int], by: int) -> None:
        words = np.array(sorted(ids), dtype=np.int64)
        self.world.nodes[node].push(words, by)
        self.moved[words] += by
        self.read.update(words.tolist())

    @rule(group=st.integers(0, GROUPS - 1), faults=FAULTS)
    def exchange(self, group: int, faults: list[str]) -> None:
        self.world.exchange(group, faults)

    @rule()
    def checkpoint(self) -> None:
        self.world.checkpoint()

    @rule()
    def kill_the_leader(self) -> None:
        self.world.kill_leader()

    @rule(group=st.integers(0, GROUPS - 1))
    def kill_a_group(self, group: int) -> None:
        self.world.kill_group(group)

    @rule(group=st.integers(0, GROUPS - 1))
    def kill_both(self, group: int) -> None:
        self.world.kill_leader()
        self.world.kill_group(group)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        for _ in range(3):
            for group in range(GROUPS):
                world.exchange(group, [])
        slots = np.arange(WORDS)
        leader = world.leader
        assert leader.tables.read(Table.OUT, slots)[:, 0].tolist() == self.moved.tolist()
        for link in world.links:
            places = link.state.vocabulary.slots(slots, "test")
            for table in (Table.IN, Table.OUT):
                own = link.state.tables.read(table, places)
                assert own.tobytes() == leader.tables.read(table, slots).tobytes()
        counts = leader.vocabulary.counts(slots).tolist()
        assert counts == [self.read[i] for i in range(WORDS)]
        assert leader.meters.tokens == sum(self.read.values())
        assert leader.meters.pushes == sum(node.sequence for node in world.nodes)
        for node in world.nodes:
            entry = leader.ledger.of(node.name)
            assert (entry.applied, entry.accepted) == (node.sequence, node.sequence)
            assert entry.offset == (f"{node.name} {node.sequence}" if node.sequence else "")


def test_a_node_keeps_what_only_the_leaders_memory_has() -> None:
    """The leader applied it and dies before its checkpoint, and the group that told it is gone."""
    order = Exchanging()
    order.begin()
    order.push(1, {0, 2}, 3)
    order.exchange(0, [])
    order.kill_a_group(0)
    held = [push.sequence for push in order.world.nodes[1].log.after(0)]
    assert held == [1], "no checkpoint has it"
    order.kill_the_leader()
    order.teardown()


def test_a_group_that_began_anew_hears_of_the_checkpoint() -> None:
    order = Exchanging()
    order.begin()
    order.push(1, {0, 2}, 3)
    order.exchange(0, [])
    order.kill_a_group(0)
    order.checkpoint()
    order.exchange(0, [])
    world = order.world
    assert world.links[0].state.ledger.of("n1").durable == 1
    order.teardown()


TestExchanging = Exchanging.TestCase
TestExchanging.settings = settings(
    max_examples=examples(12),
    stateful_step_count=16,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestExchanging = pytest.mark.timeout(600)(TestExchanging)
