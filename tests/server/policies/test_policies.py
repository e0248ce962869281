"""Every policy against generated orders of events, and against the invariant that defines it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.kernel.errors import ConfigError, RefusedError
from embedding.server.config import SyncConfig
from embedding.server.consistency import ConsistencyMachine
from embedding.server.policies.base import Drop, PendingPush
from embedding.server.policies.traits import POLICIES
from generated import examples

ROUND = "a round of all nodes"

NODES = ("a", "b", "c")
KINDS = ["step", "step", "step", "ahead", "ahead", "idle", "leave", "join", "wait"]
NOBODY_WAITS = POLICIES.having("waits", False)
events = st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(NODES)), max_size=60)


class World:
    """Honest nodes around a machine; remembers what was pushed, applied and read.

    reading   clocks that a node has read at and not pushed yet: two while it reads ahead. They
              outlive an idle spell and a broken stream, as they do in a worker.
    dropped   pushes that came too late
    """

    def __init__(self, policy: str, **more) -> None:
        self.machine = ConsistencyMachine(SyncConfig(policy=policy, **more))
        self.now = 0.0
        self.sequence = dict.fromkeys(NODES, 0)
        self.clock: dict[str, int] = {}
        self.reading: dict[str, list[int]] = {node: [] for node in NODES}
        self.pushed: list[PendingPush] = []
        self.applied: list[PendingPush] = []
        self.dropped: list[PendingPush] = []
        self.come: set[str] = set()
        self.rounds = 0

    def run(self, event: str, node: str) -> None:
        self.now += 1
        if event == "join" or node not in self.clock:
            self.clock[node], instructions = self.machine.join(node, now=self.now)
            self.carry_out(instructions)
        elif event == "idle":
            self.carry_out(self.machine.idle(node, now=self.now))
        elif event == "leave":
            self.carry_out(self.machine.leave(node))
            del self.clock[node]
            self.reading[node] = []
        elif event == "wait":
            _, instructions = self.machine.expire(now=self.now)
            self.carry_out(instructions)
        elif event == "ahead":
            self.pull_ahead(node)
        elif self.reading[node]:
            self.push(node)
        else:
            self.pull(node)

    def pull(self, node: str) -> bool:
        return self._pull(node, self.clock[node])

    def pull_ahead(self, node: str) -> bool:
        """Read for the next tick while the push of this one is outstanding."""
        if len(self.reading[node]) != 1:
            return False
        return self._pull(node, self.reading[node][0] + 1)

    def _pull(self, node: str, clock: int) -> bool:
        at, waiting_for, instructions = self.machine.pull(node, clock, now=self.now)
        self.carry_out(instructions)
        if ROUND in waiting_for and self.come_together(node):
            return self._pull(node, clock)
        if waiting_for:
            assert self.machine.policy.name not in NOBODY_WAITS
            return False
        assert at >= clock
        self.reading[node].append(at)
        self.check_read(node, at)
        return True

    def come_together(self, node: str) -> bool:
        """A round of L-BFGS, as soon as every node that takes part has come to it."""
        due = self.machine.policy.due(self.machine.board)
        assert all(self.machine.board.members[other].clock >= due for other in self.live())
        assert all(t in self.applied for t in self.pushed if t.clock < due)
        self.come.add(node)
        if not set(self.live()) <= self.come:
            return False
        self.come.clear()
        self.machine.finished()
        self.rounds += 1
        return True

    def push(self, node: str) -> None:
        self.sequence[node] += 1
        ticket = PendingPush(node, self.reading[node].pop(0), self.sequence[node])
        self.pushed.append(ticket)
        board = self.machine.board
        late = board.since <= ticket.clock < board.closed
        again = ticket.clock < board.members[node].greeted
        self.carry_out(self.machine.push(ticket, now=self.now))
        assert (ticket in self.dropped) == (late and not again)
        assert (self.machine.policy.name == "backup") >= (ticket in self.dropped)
        if self.machine.policy.name in (*NOBODY_WAITS, "ssp", "sandblaster"):
            assert ticket in self.applied  # as it came, not with others (Petuum's ESSP)
        self.clock[node] = board.members[node].clock

    def work(self, node: str, *, ahead: bool) -> bool:
        """One tick of a worker; False when it has to wait."""
        if not self.reading[node] and not self.pull(node):
            return False
        if ahead:
            self.pull_ahead(node)
        self.push(node)
        return True

    def carry_out(self, instructions) -> None:
        for instruction in instructions:
            into = self.dropped if isinstance(instruction, Drop) else self.applied
            into.extend(instruction.tickets)

    def live(self) -> list[str]:
        return [m.name for m in self.machine.board.members.values() if m.active]

    def check_read(self, node: str, clock: int) -> None:
        name, staleness = self.machine.policy.name, self.machine.config.staleness
        done = set(self.applied)
        members = self.machine.board.members
        if name in ("bsp", "averaging"):
            # Everybody alive has given its delta of every clock before this one …
            assert all(members[other].clock >= clock for other in self.live())
        if name == "backup":
            # Enough of those alive have …
            reached = sum(members[other].clock >= clock for other in self.live())
            assert reached >= len(self.live()) - self.machine.config.backups or self.closed(clock)
        if name in ("bsp", "averaging", "backup"):
            # … all of them that were in time are in the tables, and none of this clock is.
            settled = done | set(self.dropped)
            assert all(t in settled for t in self.pushed if t.clock < clock)
            assert not any(t.clock >= clock for t in done)
        if name == "sandblaster":
            # Nobody reads on before the round that is due is over.
            assert clock < self.machine.policy.due(self.machine.board)
        if name in ("ssp", "sandblaster"):
            # Ho 2013: all updates up to c-s-1 are seen, and every one that was pushed of one's
            # own; what is still to be pushed the node adds itself.
            assert all(members[other].clock >= clock - staleness for other in self.live())
            assert all(t in done for t in self.pushed if t.clock <= clock - staleness - 1)
            assert all(t in done for t in self.pushed if t.node == node and t not in self.dropped)

    def closed(self, clock: int) -> bool:
        """Whether it was open to readers before some came or went."""
        return clock <= self.machine.board.closed

    def settled(self) -> None:
        """Every push was applied or dropped, once, and those of a node in their order."""
        both = [*self.applied, *self.dropped]
        assert len(both) == len(set(both))
        assert set(both) == set(self.pushed)
        for node in NODES:
            sequences = [ticket.sequence for ticket in self.applied if ticket.node == node]
            assert sequences == sorted(sequences)


SETTINGS = {
    "bsp": ({}, {"combine": "mean"}),
    "backup": ({"backups": 0}, {"backups": 1}, {"backups": 2, "combine": "mean"}),
    "ssp": ({"staleness": 0}, {"staleness": 1}, {"staleness": 3}),
    "sandblaster": ({"lbfgs_every": 1}, {"lbfgs_every": 3, "staleness": 1}),
}
policies = pytest.mark.parametrize(
    ("policy", "more"),
    [(policy, more) for policy in POLICIES for more in SETTINGS.get(policy, ({},))],
)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_goes_by_the_name_that_it_is_registered_under(policy):
    made = POLICIES.get(policy)(SyncConfig(policy=policy))
    assert made.name == policy
    assert made.ruling.name in POLICIES


@policies
def test_a_lone_node_reads_ahead_where_the_policy_says_so(policy, more):
    world = World(policy, **more)
    world.run("join", "a")
    assert world.pull("a")
    assert world.pull_ahead("a") is world.machine.policy.reads_ahead
    world.push("a")
    assert world.pull_ahead("a") or world.pull("a")


@policies
@settings(max_examples=examples(150))
@given(events=events)
def test_reads_keep_the_invariant_and_nothing_is_lost(policy, more, events):
    world = World(policy, **more)
    for event, node in events:
        world.run(event, node)
    world.carry_out(world.machine.flush())
    world.settled()


@policies
@pytest.mark.parametrize("ahead", [False, True])
@settings(max_examples=examples(60))
@given(events=events)
def test_somebody_can_always_go_on(policy, more, ahead, events):
    """No deadlock: whatever happened, when the active nodes go on working all advance."""
    world = World(policy, **more)
    for event, node in events:
        world.run(event, node)
    all_advance(world, ahead=ahead)


def all_advance(world: World, *, ahead: bool) -> None:
    members = world.machine.board.members
    live = world.live()
    before = {node: members[node].clock for node in live}
    for _ in range(40):
        for node in live:
            world.work(node, ahead=ahead)
    for node in live:
        assert members[node].clock >= before[node] + 5


changes = st.lists(
    st.tuples(
        st.sampled_from([*KINDS, "configure"]),
        st.sampled_from(NODES),
        st.sampled_from(POLICIES.having("needs_shared_memory", False)),
        st.integers(0, 2),
    ),
    max_size=60,
)


@pytest.mark.parametrize("ahead", [False, True])
@settings(max_examples=examples(300))
@given(changes)
def test_a_change_of_policy_loses_nothing_stops_nobody_and_keeps_the_new_promise(ahead, changes):
    world = World("asp")
    for event, node, policy, staleness in changes:
        if event == "configure":
            more = {"backups": staleness, "lbfgs_every": staleness + 1}
            sync = SyncConfig(policy=policy, staleness=staleness, **more)
            world.come.clear()
            world.carry_out(world.machine.configure(sync))
        else:
            world.run(event, node)
    all_advance(world, ahead=ahead)
    world.carry_out(world.machine.flush())
    world.settled()


def stepped(world: World, node: str, times: int, *, ahead: bool = False) -> int:
    return sum(world.work(node, ahead=ahead) for _ in range(times))


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize(
    ("policy", "more", "pushes"),
    [
        ("bsp", {}, 1),
        ("averaging", {}, 1),
        ("backup", {"backups": 0}, 1),
        ("backup", {}, 20),
        ("ssp", {"staleness": 3}, 4),
        ("asp", {}, 20),
        ("easgd", {}, 20),
        ("hogwild", {}, 20),
        ("sandblaster", {"lbfgs_every": 3}, 3),
        ("sandblaster", {"staleness": 2}, 3),
        ("auto", {}, 1),
    ],
)
def test_how_far_a_fast_node_gets_ahead_of_one_that_reads_and_does_not_push(
    policy, more, pushes, ahead
):
    world = World(policy, **more)
    for node in ("a", "b"):
        world.run("join", node)
        assert world.pull(node)
    assert stepped(world, "a", 20, ahead=ahead) == pushes


@pytest.mark.parametrize("policy", ["bsp", "ssp"])
@pytest.mark.parametrize("how", ["idle", "leave"])
def test_an_idle_or_departed_node_holds_nobody_back_and_comes_back_at_the_current_clock(
    policy, how
):
    world = World(policy, staleness=1)
    for node in ("a", "b"):
        world.run("join", node)
        assert world.pull(node)
    world.run(how, "b")
    assert stepped(world, "a", 10) == 10
    world.run("join", "b")
    assert world.pull("b")
    assert world.reading["b"][-1] == world.clock["a"] == 10


def test_rounds_come_as_often_as_the_policy_says() -> None:
    world = World("sandblaster", lbfgs_every=4)
    for node in ("a", "b"):
        world.run("join", node)
        assert world.pull(node)
    for _ in range(60):
        world.work("a", ahead=False)
        world.work("b", ahead=False)
    assert world.rounds == min(world.clock.values()) // 4 > 10


def test_a_silent_node_is_gone_after_the_limit_and_frees_the_others():
    world = World("bsp", liveness_timeout_s=5)
    for node in ("a", "b"):
        world.run("join", node)
        assert world.pull(node)
    world.push("a")
    assert not world.pull("a")
    world.now += 6
    world.machine.seen("a", now=world.now)
    gone, instructions = world.machine.expire(now=world.now)
    assert gone == ["b"]
    world.carry_out(instructions)
    assert world.pull("a")
    assert [ticket.node for ticket in world.applied] == ["a"]


def test_bsp_applies_a_clock_at_once_in_the_order_of_names():
    world = World("bsp", combine="mean")
    for node in NODES:
        world.run("join", node)
        assert world.pull(node)
    found = []
    for node in ("c", "a", "b"):
        ticket = PendingPush(node, 0, 1)
        found.append(world.machine.push(ticket, now=1.0))
    assert found[:2] == [[], []]
    (instruction,) = found[2]
    assert [ticket.node for ticket in instruction.tickets] == list(NODES)
    assert instruction.scale == pytest.approx(1 / 3)


def test_another_policy_takes_over_what_was_held_back():
    world = World("bsp")
    for node in ("a", "b"):
        world.run("join", node)
        assert world.pull(node)
    world.push("a")
    world.carry_out(world.machine.configure(SyncConfig(policy="asp")))
    assert [ticket.node for ticket in world.applied] == ["a"]
    assert stepped(world, "a", 5) == 5


def test_clocks_from_the_future_and_out_of_order_are_refused():
    world = World("bsp")
    for node in ("a", "b"):
        world.run("join", node)
        assert world.pull(node)
    machine = world.machine
    with pytest.raises(RefusedError, match="reads at clock 0"):
        machine.push(PendingPush("a", 1, 1), now=1)
    with pytest.raises(RefusedError, match="or ahead at 1"):
        machine.pull("a", 2, now=1)
    with pytest.raises(RefusedError, match="greet"):
        machine.pull("stranger", 0, now=1)
    machine.board.members["a"].clock = 5
    machine.push(PendingPush("a", 5, 1), now=1)
    with pytest.raises(RefusedError, match="before that was at clock 5"):
        machine.push(PendingPush("a", 4, 2), now=1)


def test_an_unknown_policy_is_refused_by_name():
    with pytest.raises(ConfigError, match=f"one of {', '.join(POLICIES)} is accepted"):
        ConsistencyMachine(SyncConfig(policy="none"))


def test_a_node_that_knows_a_later_clock_keeps_it():
    machine = ConsistencyMachine(SyncConfig())
    assert machine.join("a", now=0, clock=7)[0] == 7
    assert machine.join("b", now=0)[0] == 7
