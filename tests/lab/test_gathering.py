"""When the pushes of a group leave together."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from embedding.exchange.protocol import Push
from generated import examples
from yeoron_lab.aggregating.aggregator import Gathering, NodePush

NODES = st.sampled_from("abc")


def pushed(node: str, clock: int, sequence: int = 1) -> NodePush:
    return NodePush(Push(node, sequence, clock), session=0)


class GroupOfThree(RuleBasedStateMachine):
    """Nodes push clock by clock, wait for their sums, fall idle and come back."""

    def __init__(self) -> None:
        super().__init__()
        self.gathering = Gathering()
        self.clock = dict.fromkeys("abc", 0)
        self.waiting: set[str] = set()
        self.left: list[tuple[str, int]] = []
        self.pushed: list[tuple[str, int]] = []

    def take(self, sums: list[list[NodePush]], *, forced: bool = False) -> None:
        for parts in sums:
            assert len({part.clock for part in parts}) == 1
            assert [part.node for part in parts] == sorted({part.node for part in parts})
            if not forced:
                assert all(done >= parts[0].clock for done in self.gathering.done.values())
            for part in parts:
                self.left.append((part.node, part.clock))
                self.waiting.discard(part.node)

    @rule(node=NODES)
    def push(self, node: str) -> None:
        if node in self.waiting:
            return
        clock = self.clock[node]
        self.clock[node] += 1
        self.waiting.add(node)
        self.pushed.append((node, clock))
        self.take(self.gathering.push(pushed(node, clock)))

    @rule(node=NODES)
    def leave(self, node: str) -> None:
        self.take(self.gathering.leave(node))

    @rule()
    def expire(self) -> None:
        self.take(self.gathering.expire(), forced=True)
        assert not self.waiting

    @rule(node=NODES, ahead=st.integers(1, 3))
    def come_back_ahead(self, node: str, ahead: int) -> None:
        """The server lets a node that was idle go on where others are."""
        if node not in self.waiting:
            self.take(self.gathering.leave(node))
            self.clock[node] += ahead

    @invariant()
    def each_part_leaves_once_or_is_held(self) -> None:
        waiting_pushes = [(part.node, part.clock) for part in self.gathering.waiting_pushes]
        assert sorted(self.left + waiting_pushes) == sorted(self.pushed)
        assert {node for node, _ in waiting_pushes} == self.waiting

    @invariant()
    def whoever_waits_waits_for_somebody_behind(self) -> None:
        if self.gathering.waiting_pushes:
            first = min(part.clock for part in self.gathering.waiting_pushes)
            assert any(done < first for done in self.gathering.done.values())


GroupOfThree.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=25)
TestGroup = GroupOfThree.TestCase


def test_a_node_that_sends_again_is_held_once() -> None:
    gathering = Gathering()
    gathering.push(pushed("a", 0, 1))
    gathering.push(pushed("b", 0, 1))
    assert gathering.push(pushed("a", 1, 2)) == []
    assert gathering.push(pushed("a", 1, 3)) == []
    (parts,) = gathering.push(pushed("b", 1, 2))
    assert [part.push.sequence for part in parts] == [3, 2]
