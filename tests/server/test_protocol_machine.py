"""The whole protocol under any order of events: nothing lost or twice, nobody waits for ever.

Nodes join, leave, are killed and come back; pushes are repeated, arrive late, out of turn, and
after their process was replaced; the server crashes and goes on from its last checkpoint; the
policy is changed while they train. Policies by themselves are in test_policies.py, shards in
test_shard_machine.py, the same with real processes in tests/worker.
"""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from protocol_world import Node, Time, World

from embedding.server.config import SyncConfig
from embedding.server.policies import POLICIES

NAMES = ("a", "b", "c")
SETTLING = 30
"""Steps of every node within which each has to get on."""

names = st.sampled_from(NAMES)
syncs = st.builds(
    SyncConfig,
    policy=st.sampled_from(sorted(set(POLICIES) - {"hogwild"})),
    staleness=st.integers(0, 2),
    backups=st.integers(0, 2),
    lbfgs_every=st.integers(1, 3),
    auto_stay_s=st.just(0.0),
)


class Protocol(RuleBasedStateMachine):
    """Events in any order; `settle` says whether what they left is whole."""

    @initialize(sync=syncs)
    def begin(self, sync: SyncConfig) -> None:
        time = Time()
        self.patches = [
            patch("embedding.server.state.time", time),
            patch("embedding.server.flight.greeting.time", time),
            patch("embedding.server.flight.rounds.time", time),
            patch("embedding.server.state.WAIT_S", 0.0),
            patch("os.fsync"),  # no power is cut here
            patch("embedding.server.flight.rounds.HOLD_S", 0.0),
        ]
        for each in self.patches:
            each.start()
        self.world = World(time, NAMES, sync)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            self.settle(revive=True, ahead=False)
        finally:
            self.world.close()
            for each in self.patches:
                each.stop()

    def node(self, name: str) -> Node:
        """A node with a connection."""
        node = self.world.nodes[name]
        if not node.connected:
            self.world.greet(node)
        return self.world.nodes[name]

    # -- nodes ----------------------------------------------------------------------------------

    @rule(turns=st.lists(names, min_size=1, max_size=12), ahead=st.booleans())
    def work(self, turns: list[str], ahead: bool) -> None:
        """Nodes read and push in turn."""
        for name in turns:
            self.world.work(self.node(name), ahead=ahead)

    @rule(turns=st.lists(names, min_size=1, max_size=12))
    def work_and_look(self, turns: list[str]) -> None:
        """The same with a checkpoint behind it: often while something is held back."""
        self.work(turns, False)
        self.world.checkpoint()

    @rule(name=names)
    def read(self, name: str) -> None:
        self.world.read(self.node(name))

    @rule(name=names)
    def read_ahead(self, name: str) -> None:
        self.world.read(self.node(name), ahead=True)

    @rule(name=names, busy_s=st.sampled_from([0.0, 0.01, 1.0]))
    def push(self, name: str, busy_s: float) -> None:
        node = self.node(name)
        if node.reading:
            self.world.push(node, busy_s)

    @rule(name=names, data=st.data())
    def push_again(self, name: str, data: st.DataObject) -> None:
        node = self.node(name)
        if node.kept:
            self.world.again(node, data.draw(st.sampled_from(node.kept)))

    @rule(name=names)
    def push_too_far(self, name: str) -> None:
        node = self.node(name)
        if node.reading:
            self.world.gap(node)

    @rule(name=names, how=st.sampled_from(["idle", "cut", "leave"]))
    def go(self, name: str, how: str) -> None:
        getattr(self, how)(name)

    def idle(self, name: str) -> None:
        self.world.state.idle(self.node(name).name)

    def cut(self, name: str) -> None:
        self.world.cut(self.node(name))

    def leave(self, name: str) -> None:
        self.world.leave(self.node(name))

    @rule(name=names, noticed=st.booleans(), on_its_way=st.booleans())
    def kill(self, name: str, noticed: bool, on_its_way: bool) -> None:
        node = self.world.nodes[name]
        if node.connected:
            self.world.kill(node, noticed=noticed, on_its_way=on_its_way)

    @rule(data=st.data())
    def a_late_push_arrives(self, data: st.DataObject) -> None:
        ghosts = self.world.ghosts
        if ghosts:
            at = data.draw(st.integers(0, len(ghosts) - 1))
            self.world.arrive(*ghosts.pop(at))

    # -- the server -----------------------------------------------------------------------------

    @rule()
    def crash(self) -> None:
        self.world.crash()

    @rule(sync=syncs)
    def configure(self, sync: SyncConfig) -> None:
        self.world.sync = sync
        self.world.state.configure(sync)

    @rule()
    def silence(self) -> None:
        self.world.silence()

    # -- what has to hold -----------------------------------------------------------------------

    @rule(revive=st.booleans(), ahead=st.booleans())
    def settle(self, revive: bool, ahead: bool) -> None:
        """Whatever happened: nodes that work get on, and then everything is there once."""
        if not revive:
            self.world.silence()
        working = [n for n in NAMES if revive or self.world.nodes[n].alive]
        for name in working:
            self.node(name)
        wanted = {name: self.world.nodes[name].document + 3 for name in working}
        for _ in range(SETTLING):
            nodes = [self.world.nodes[name] for name in working]
            if any(map(self.world.waits_for_a_checkpoint, nodes)):
                self.world.checkpoint()
            for node in nodes:
                self.world.work(node, ahead=ahead)
        for name in working:
            assert self.world.nodes[name].document >= wanted[name], f"{name} waits for ever"
        self.world.check_all()

    @invariant()
    def what_is_durable_was_applied_and_taken(self) -> None:
        if hasattr(self, "world"):
            for entry in self.world.state.ledger.nodes.values():
                assert entry.durable <= entry.applied <= entry.accepted


Protocol.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestProtocol = Protocol.TestCase
