"""Nodes that all-reduce die at any moment and come again: each movement is counted once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from nodes_in_step import DIM, Block, Line, learn

from embedding.exchange.topology import MeetingSpec, TopologyConfig
from embedding.kernel.records import Table
from embedding.models.starting import first_vectors
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rowstore import RowShape
from embedding.server.state import ServerState
from generated import examples
from yeoron_lab.allreduce.meeting import Arrived, Meeting, RingMember, decide, depart
from yeoron_lab.allreduce.reducing import ReducingTransport
from yeoron_lab.allreduce.rendezvous import rendezvous
from yeoron_lab.allreduce.ring import Ring

SYNC = SyncConfig(policy="asp")


class DiedError(Exception):
    """A process was killed."""


@dataclass
class Fate:
    """Of one process: it dies before its `calls`-th collective call, or right after it."""

    calls: int | None = None
    after: bool = False

    def call(self, do: Any, *arguments: Any) -> Any:
        if self.calls is None:
            return do(*arguments)
        self.calls -= 1
        if self.calls < 0 and not self.after:
            raise DiedError
        found = do(*arguments)
        if self.calls < 0:
            raise DiedError
        return found


class MortalRing:
    """A ring whose node dies as its fate wants."""

    def __init__(self, ring: Ring, fate: Fate) -> None:
        self._ring, self._fate = ring, fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._ring, name)
        if name in ("gather", "add_up", "from_leader"):
            return lambda *arguments: self._fate.call(found, *arguments)
        return found


@dataclass
class World:
    """A server's state, a rendezvous, and nodes that live several lives.

    late  who died comes again only when all others have ended
    """

    config: TopologyConfig
    scripts: list[list[Block]]
    fates: list[list[Fate]]
    late: bool = False
    running: list[Future[None]] = field(default_factory=list)
    started: Event = field(default_factory=Event)
    state: ServerState = field(init=False)
    routes: list[ReducingTransport] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings_ = ServerConfig(min_count=1, half_life_tokens=None, device="cpu").model_copy(
            update={"initial_rows": 4}
        )
        self.state = ServerState(settings_, SYNC, RowShape(DIM, seed=1))
        self.names = tuple(f"n{i}" for i in range(len(self.scripts)))

    def run(self) -> None:
        with rendezvous() as folder, ThreadPoolExecutor(len(self.scripts)) as pool:
            spec = MeetingSpec(folder=folder, names=self.names)
            self.running += [pool.submit(self.node, spec, i) for i in range(len(self.scripts))]
            self.started.set()
            for each in self.running:
                each.result(timeout=100)

    def node(self, spec: MeetingSpec, rank: int) -> None:
        for incarnation, fate in enumerate([*self.fates[rank], Fate()]):
            try:
                self.live(spec, rank, str(incarnation), fate)
            except DiedError:
                name = self.names[rank]
                depart(spec, name, str(incarnation))
                self.state.lost(name, self.state.ledger.of(name).session)
                if self.late:
                    self.started.wait()
                    wait([each for i, each in enumerate(self.running) if i != rank])
                continue
            return

    def live(self, spec: MeetingSpec, rank: int, incarnation: str, fate: Fate) -> None:
        name = self.names[rank]
        line = Line(self.state, name)
        entry = self.state.ledger.of(name)
        began, done = entry.accepted, int(entry.offset or 0)
        meeting = Meeting(spec, name=name, incarnation=incarnation, timeout_s=20.0)
        form, rings = meeting.form, []

        def forming(step: int, *, tells: bool) -> Any:
            rings.append(form(step, tells=tells))
            return MortalRing(rings[-1], fate)

        meeting.form = forming  # type: ignore[method-assign]
        try:
            route = ReducingTransport(
                line,
                meeting,
                self.config,
                dim=DIM,
                sequence=began,
                offset=entry.offset,
                half=False,
                tokens=lambda place: int(place or 0),
            )
            self.routes.append(route)
            for n, block in enumerate(self.scripts[rank][done:]):
                clock = self.state.machine.board.members[name].clock
                learn(route, began + n, block, done + n + 1, clock)
            route.finish()
            route.close()
        finally:
            for ring in rings:
                ring.close()

    def noticed(self) -> bool:
        """Whether nodes said that movement died with all that had it."""
        return any(route.members.lost_tokens or route.members.from_server for route in self.routes)

    def moved(self) -> dict[str, float]:
        """How far each word's row is from where it began."""
        found = {}
        for word in {word for script in self.scripts for b in script for word in b.words}:
            (row,) = self.state.vocabulary.ids([word])
            slots = self.state.vocabulary.slots(np.asarray([row]), "test")
            first = first_vectors(np.asarray([row]), DIM, 1)[0]
            moved = self.state.tables.read(Table.IN, slots)[0] - first
            assert np.ptp(moved) < 1e-4
            found[word] = round(float(moved[0]), 2)
        return found

    def wanted(self) -> dict[str, float]:
        total: Counter[str] = Counter()
        for block in (each for script in self.scripts for each in script):
            for word in set(block.words):
                total[word] += block.by
        return {word: float(n) for word, n in total.items()}


BLOCKS = st.builds(
    Block,
    words=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4).map(tuple),
    by=st.integers(1, 9),
    window=st.integers(0, 1).map(lambda day: day * 86_400),
)
SCRIPTS = st.lists(st.lists(BLOCKS, min_size=3, max_size=8), min_size=2, max_size=3)
CONFIGS = st.builds(
    TopologyConfig,
    kind=st.sampled_from(["allreduce", "hybrid"]),
    write_back_blocks=st.integers(1, 4),
    rechoose_blocks=st.integers(1, 3),
    dense_share=st.sampled_from([0.3, 0.6]),
    peer_timeout_s=st.just(20.0),
)
FATES = st.lists(st.builds(Fate, st.integers(0, 40), st.booleans()), max_size=2)


@settings(max_examples=examples(15), suppress_health_check=list(HealthCheck))
@given(SCRIPTS, CONFIGS, st.lists(FATES, min_size=3, max_size=3))
def test_whoever_dies_at_any_moment_each_movement_is_counted_once_or_its_loss_is_noticed(
    scripts: list[list[Block]], config: TopologyConfig, fates: list[list[Fate]]
) -> None:
    world = World(config, scripts, fates)
    world.run()
    for name, script in zip(world.names, scripts, strict=True):
        assert int(world.state.ledger.of(name).offset) == len(script)
    words = sum(len(set(block.words)) for script in scripts for block in script)
    assert world.state.meters.tokens == words, "each block is counted once"
    if not world.noticed():
        assert world.moved() == world.wanted()
    else:
        assert all(n <= world.wanted()[word] + 0.01 for word, n in world.moved().items())


@settings(max_examples=examples(15), suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1), st.integers(0, 30), st.booleans())
def test_one_death_loses_nothing(victim: int, calls: int, after: bool) -> None:
    scripts = [[Block(("a", "b"), 1)] * 6, [Block(("b", "c"), 10)] * 6]
    fates: list[list[Fate]] = [[], []]
    fates[victim].append(Fate(calls, after))
    world = World(TopologyConfig(kind="allreduce", write_back_blocks=3), scripts, fates)
    world.run()
    # Who comes again after the other has ended begins from the server, which has all by then.
    assert not any(route.members.lost_tokens for route in world.routes)
    assert world.moved() == {"a": 6.0, "b": 66.0, "c": 60.0}


@settings(max_examples=examples(10), suppress_health_check=list(HealthCheck))
@given(st.integers(0, 30), st.booleans())
@example(25, False)
@example(12, True)
@example(15, True)
@example(15, False)
@example(0, False)
def test_one_that_comes_again_when_the_other_has_ended_loses_nothing(
    calls: int, after: bool
) -> None:
    scripts = [[Block(("a", "b"), 1)] * 6, [Block(("b", "c"), 10)] * 6]
    config = TopologyConfig(kind="allreduce", write_back_blocks=3)
    world = World(config, scripts, [[Fate(calls, after)], []], late=True)
    world.run()
    assert not any(route.members.lost_tokens for route in world.routes)
    assert world.moved() == {"a": 6.0, "b": 66.0, "c": 60.0}


def test_the_first_generation_waits_for_all_and_later_ones_for_who_is_left() -> None:
    names = ("a", "b", "c")
    stands = {name: Arrived(f"{name}1", 1) for name in "ab"}
    assert decide(names, 1, None, stands, {}) is None
    members = decide(names, 1, None, {**stands, "c": Arrived("c1", 1)}, {})
    assert members == tuple(RingMember(name, f"{name}1", -1) for name in names)
    left = {"a": Arrived("a1", 1, 3), "b": Arrived("b1", 2, 4), "c": Arrived("c1", 2, 3)}
    assert decide(names, 2, members, left, {}) is None, "a may still come"
    found = decide(names, 2, members, left, {"a": "a1"})
    assert [member.name for member in found or ()] == ["b", "c"], "the one with most sums leads"
    again = {**left, "a": Arrived("a2", 2)}
    found = decide(names, 2, members, again, {"a": "a1"})
    assert [member.name for member in found or ()] == ["b", "c", "a"]
    found = decide(names, 2, members, left, {}, patient=False)
    assert [member.name for member in found or ()] == ["b", "c"], "one that hangs is left out"
    tells = {**left, "b": Arrived("b1", 2, 3), "c": Arrived("c1", 2, 3, tells=True)}
    found = decide(names, 2, members, tells, {"a": "a1"})
    assert [member.name for member in found or ()] == ["c", "b"], "who led leads on"
