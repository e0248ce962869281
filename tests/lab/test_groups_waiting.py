"""For whom windows wait where nodes are at groups: for all who can hand in, and for nobody else."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import hypothesis.strategies as st
from grouped import DIM, following
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from named import QUICK

from embedding.exchange.payload import HandIn, Inherited
from embedding.exchange.protocol import PROTOCOL_VERSION
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.recovery.restoring import assemble, collect, restore
from embedding.server.rowstore import RowShape
from embedding.server.service import running_server
from embedding.server.state import ServerState
from waiting import until
from yeoron_lab.groups.client import LeaderClient
from yeoron_lab.groups.leading import LedGroups

WINDOW = 0
LIVENESS_S = 60.0
GROUP = {"n0": None, "n1": "b", "n2": "b"}


def test_a_group_is_no_node_and_its_nodes_say_goodbye_to_the_leader(tmp_path, connect) -> None:
    config = ServerConfig(
        min_count=1, snapshots=str(tmp_path / "store"), state_dir=tmp_path / "state"
    )
    with running_server(config, dim=DIM) as leader, following(leader) as b:
        node, state = connect(b, "n1"), leader.state
        until(lambda: leader.state.parts["groups"].present() == ["b"])
        with state.lock:
            assert state.living() <= {"n1"}
            state.accounts.readers.read(WINDOW, "n1", "killed", "뉴스", 3)
            state.accounts.readers.read(WINDOW, "n1", "killed before", "뉴스", 3)
            assert state.wait([WINDOW]), "n1 may come back and read it again"
        node.client.close()
        until(lambda: "n1" in state.reports.departed)
        with state.lock:
            assert not state.wait([WINDOW])
            assert [one.reason for one in state.missing([WINDOW])] == ["node_lost"]
    with running_server(config, dim=DIM) as again:
        assert again.state.reports.departed >= {"n1"}, "no checkpoint says so"


def test_an_old_goodbye_of_a_node_that_pushed_elsewhere_since_is_none(tmp_path: Path) -> None:
    def about(sequence: int) -> dict[str, object]:
        return {"nodes": {"n1": {"state": "gone", "sequence": sequence}}, "departed": ["n1"]}

    with (
        running_server(ServerConfig(), dim=DIM) as leader,
        contextlib.closing(LeaderClient(leader.location, node="b", config=QUICK)) as group,
    ):
        group.hello()
        leader.state.ledger.of("n1").accepted = 5
        group.changes((), about(4))
        assert "n1" not in leader.state.reports.departed
        group.changes((), about(5))
        assert "n1" in leader.state.reports.departed
        group.changes((), {"nodes": {"n1": {"state": "active", "sequence": 5}}})
        assert "n1" not in leader.state.reports.departed


class Waiting(RuleBasedStateMachine):
    """Node n0 at the leader, n1 and n2 at group b. Each document is read by a process that may die
    before it hands in. The leader goes back to what it knew; it may have to wait for the time of
    its liveness until it knows who is left.
    """

    @initialize()
    def begin(self) -> None:
        self.now, self.marks = 1_000.0, 0
        clock = SimpleNamespace(monotonic=lambda: self.now, time=time.time, perf_counter=time.time)
        self.patches = contextlib.ExitStack()
        timed = ("embedding.server.state", "embedding.server.recovery.restoring")
        for name in (*timed, "yeoron_lab.groups.leading"):
            self.patches.enter_context(patch(f"{name}.time", clock))
        self.state, self.groups = self._fresh()
        self.life: dict[str, str] = {}
        self.left: set[str] = set()
        self.group_is_up = True
        self.known: set[str] = set()
        self._hello("b", "group")
        for node in GROUP:
            self.starts(node)
        self._tell()

    def _fresh(self) -> tuple[ServerState, LedGroups]:
        sync = SyncConfig(policy="ssp", liveness_timeout_s=LIVENESS_S)
        state = ServerState(ServerConfig(usage=True), sync, RowShape(DIM))
        return state, state.parts["groups"]

    def _hello(self, name: str, life: str) -> None:
        self.state.hello(name, version=PROTOCOL_VERSION, digest="", clock=0, incarnation=life)

    def _reaches(self, node: str) -> bool:
        """Whether the leader hears of a node."""
        return node in self.life and (GROUP[node] is None or self.group_is_up)

    def _tell(self) -> None:
        """The group tells of its nodes; of those that it has seen since it was started."""
        if not self.group_is_up:
            return
        nodes = {
            node: {"state": "idle" if node in self.life else "gone", "sequence": 0}
            for node in sorted(self.known)
        }
        about = {"nodes": nodes, "departed": sorted(self.left & self.known), "age_s": 0.0}
        self.groups.changes("b", -1, 0, about)

    def _wait(self):
        return self.state.wait([WINDOW], closed=True)

    @rule(node=st.sampled_from(sorted(GROUP)), source=st.sampled_from(("가", "나")))
    def reads(self, node: str, source: str) -> None:
        if self._reaches(node):
            readers = self.state.accounts.readers
            readers.read(WINDOW, node, self.life[node], source, 1)

    @rule(node=st.sampled_from(sorted(GROUP)))
    def hands_in(self, node: str) -> None:
        if self._reaches(node):
            lost = tuple(Inherited(*text, 1) for text in self._wait().lost)
            given = HandIn(WINDOW, 1, lost)
            self.state.accounts.readers.hand_in(node, self.life[node], given)

    @rule(node=st.sampled_from(sorted(GROUP)))
    def starts(self, node: str) -> None:
        self.marks += 1
        self.life[node] = f"life{self.marks}"
        self.left.discard(node)
        if GROUP[node] is None:
            self._hello(node, self.life[node])
        elif self.group_is_up:
            self.known.add(node)
            self._tell()

    @rule(node=st.sampled_from(sorted(GROUP)))
    def is_killed(self, node: str) -> None:
        self.life.pop(node, None)

    @rule(node=st.sampled_from(sorted(GROUP)))
    def says_goodbye(self, node: str) -> None:
        if not self._reaches(node):
            return
        del self.life[node]
        self.left.add(node)
        if GROUP[node] is None:
            self.state.leave(node, self.state.ledger.of(node).session)
        self._tell()

    @rule()
    def the_group_is_killed(self) -> None:
        self.group_is_up, self.known = False, set()

    @rule()
    def the_group_is_back(self) -> None:
        if not self.group_is_up:
            self.group_is_up = True
            self.known = {node for node in self.life if GROUP[node]}
            self._hello("b", "group")
            self._tell()

    @rule()
    def the_leader_is_killed(self) -> None:
        old = self.state
        with old.lock:
            collected = collect(old)
            copy = old.rows.own_copy()
        copy.finish(old.lock)
        content = assemble(collected, copy)
        self.state, self.groups = self._fresh()
        restore(self.state, content, "here")
        if self.group_is_up:
            self._hello("b", "group")
        if "n0" in self.life:
            self._hello("n0", self.life["n0"])
        self._tell()

    @rule()
    def time_passes(self) -> None:
        for _ in range(8):
            self.now += LIVENESS_S / 5
            if "n0" in self.life:
                self.state.report("n0", {})
            self._tell()
            self.groups.tick(self.now)
            self.state.tick()
        reachable = {node for node in self.life if self._reaches(node)}
        assert self.state.living() == reachable
        owing = self.state.accounts.readers.owing
        wait, come = self._wait(), reachable or owing - self.left
        assert {*wait.readers, *wait.heirs} <= come, "nobody who is named can end the wait"
        assert bool(wait) >= bool(owing and come)

    @invariant()
    def what_a_living_node_has_to_hand_in_is_waited_for(self) -> None:
        if hasattr(self, "life"):
            owing = self.state.accounts.readers.owing
            if any(self._reaches(node) for node in owing):
                assert self._wait()

    def teardown(self) -> None:
        """Once all have left, nobody is waited for."""
        if not hasattr(self, "life"):
            return
        self.the_group_is_back()
        for node in GROUP:
            if node not in self.life:
                self.starts(node)
            self.says_goodbye(node)
        self.time_passes()
        assert not self._wait()
        self.patches.close()


TestWaiting = Waiting.TestCase
TestWaiting.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
