"""The leases' state machine, without a database."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from embedding.crawl.lease import Heartbeat, Incarnation, LeaseConfig, LeaseView, Pool
from generated import examples

CONFIG = LeaseConfig(seconds=30).model_copy(update={"allocate_every": 60})
FIRST = Heartbeat(first=True)


def pool(*sources: str) -> Pool:
    found = Pool(CONFIG)
    found.publish(dict.fromkeys(sources, 1.0))
    return found


def incarnation(node: str, n: int = 0) -> Incarnation:
    return Incarnation(node, f"m{n}")


def beat(
    found: Pool, who: Incarnation, now: float, seen: LeaseView | None, **more: object
) -> LeaseView:
    """The next beat of an incarnation that did what it heard before."""
    held = frozenset() if seen is None else seen.held
    return found.beat(who, replace(FIRST if seen is None else Heartbeat(holds=held), **more), now)


def test_a_node_alone_reads_everything_at_once() -> None:
    found = pool("s", "t")
    seen = beat(found, incarnation("a"), 0.0, None)
    assert seen.reading == {"s", "t"}
    assert not seen.replaced
    assert not seen.owing


def test_nodes_that_are_expected_get_their_share_before_they_are_there() -> None:
    found = pool("s", "t")
    first = beat(found, incarnation("a"), 0.0, None, peers=("a", "b"))
    second = beat(found, incarnation("b"), 9.0, None, peers=("a", "b"))
    assert len(first.reading) == len(second.reading) == 1
    assert found.moves == 0


def test_a_node_that_never_comes_loses_its_share() -> None:
    found = pool("s", "t")
    seen = beat(found, incarnation("a"), 0.0, None, peers=("a", "b"))
    for now in (10.0, 20.0, 29.0):
        seen = beat(found, incarnation("a"), now, seen)
        assert len(seen.held) == 1
    assert beat(found, incarnation("a"), 31.0, seen).reading == {"s", "t"}


def test_a_dead_node_leaves_debts_that_must_be_cleared_before_reading() -> None:
    found = pool("s", "t")
    peers = ("a", "b")
    a = beat(found, incarnation("a"), 0.0, None, peers=peers)
    b = beat(found, incarnation("b"), 0.0, None, peers=peers)
    (moved,) = a.held
    b = beat(found, incarnation("b"), 20.0, b)
    b = beat(found, incarnation("b"), 31.0, b)
    assert b.held == {"s", "t"}
    assert b.debts == {moved: (incarnation("a"),)}
    assert moved not in b.reading
    b = beat(found, incarnation("b"), 32.0, b, cleared=frozenset({moved}))
    assert b.reading == {"s", "t"}
    late = found.beat(incarnation("a"), Heartbeat(holds=a.held), 33.0)
    assert late.replaced
    assert found.leases[moved].fence == 2


def test_debts_outlive_the_death_of_who_took_them_on() -> None:
    found = pool("s")
    for n, node in enumerate("abc"):
        seen = beat(found, incarnation(node), 100.0 * n, None)
    assert seen.debts == {"s": (incarnation("a"), incarnation("b"))}


def test_a_new_life_takes_over_at_once_and_the_old_one_is_told() -> None:
    found = pool("s")
    old = beat(found, incarnation("a", 1), 0.0, None)
    new = beat(found, incarnation("a", 2), 1.0, None)
    assert new.debts == {"s": (incarnation("a", 1),)}
    assert new.owing
    assert found.beat(incarnation("a", 1), Heartbeat(holds=old.held), 2.0).replaced
    assert not beat(found, incarnation("a", 2), 3.0, new, cleared=frozenset({"s"})).owing


def test_what_a_life_owes_is_known_until_another_node_has_cleared_it() -> None:
    found = pool("s", "t")
    peers = ("a", "b")
    beat(found, incarnation("a", 1), 0.0, None, peers=peers)
    b = beat(found, incarnation("b"), 0.0, None, peers=peers)
    for now in (15.0, 29.0, 40.0):
        b = beat(found, incarnation("b"), now, b)
    assert set(b.debts.values()) == {(incarnation("a", 1),)}
    again = beat(found, incarnation("a", 2), 41.0, None)
    assert again.owing, "node b has not looked yet at what the server had from the first life"
    b = beat(found, incarnation("b"), 42.0, b, cleared=frozenset(b.debts))
    assert not beat(found, incarnation("a", 2), 43.0, again).owing


def test_a_source_moves_only_after_its_node_let_go_of_it() -> None:
    found = pool("s", "t", "u")
    a = beat(found, incarnation("a"), 0.0, None)
    b = beat(found, incarnation("b"), 1.0, None)
    assert b.held == frozenset()
    a = beat(found, incarnation("a"), 2.0, a)
    (leaving,) = a.leaving
    assert beat(found, incarnation("b"), 3.0, b).held == frozenset()
    a = beat(found, incarnation("a"), 4.0, a, released=a.leaving)
    b = beat(found, incarnation("b"), 5.0, b)
    assert b.reading == {leaving}
    assert not b.debts, "nothing of it was under way"
    assert a.reading == {"s", "t", "u"} - {leaving}
    assert found.moves == 1


def test_sources_that_are_published_no_longer_are_given_up() -> None:
    found = pool("s", "t")
    seen = beat(found, incarnation("a"), 0.0, None)
    found.publish({"t": 1.0, "new": 1.0})
    seen = beat(found, incarnation("a"), 1.0, seen)
    assert (seen.reading, seen.leaving) == ({"t", "new"}, {"s"})
    seen = beat(found, incarnation("a"), 2.0, seen, released=seen.leaving)
    assert seen.held == {"t", "new"}


def test_measured_rates_even_out_the_nodes() -> None:
    names = [f"s{n}" for n in range(8)]
    rates = dict(zip(names, (3000, 1000, 900, 800, 700, 600, 500, 400), strict=True))
    found = pool(*names)
    incarnations = [incarnation("a"), incarnation("b")]
    seen: dict[Incarnation, LeaseView | None] = dict.fromkeys(incarnations)
    for step in range(100):
        for who in incarnations:
            last = seen[who]
            more: dict[str, object] = {"peers": ("a", "b")} if last is None else {}
            if last is not None:
                tokens = {name: rates[name] * 10 for name in last.reading}
                more = {"tokens": tokens, "seconds": 10.0, "released": last.leaving}
            seen[who] = beat(found, who, 10.0 * step, last, **more)
    loads = [sum(rates[name] for name in standing.reading) for standing in seen.values()]
    assert sum(map(len, (standing.reading for standing in seen.values()))) == 8
    assert sorted(loads) == [3700, 4200], "it began with 5100 and 2800"
    assert found.moves == 1
    assert found.rates() == pytest.approx(rates, rel=0.01)


def test_a_rate_is_a_mean_until_the_memory_is_full() -> None:
    found = pool("s").leases["s"]
    for tokens in (0, 600):
        found = found.read(tokens, 30.0)
    assert found.rate == pytest.approx(10.0)
    assert found.read(5, 0.0) == found


class Lives(RuleBasedStateMachine):
    """Whatever dies, stops or comes back: one reader a source, and no debt is forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = pool("s", "t", "u", "v")
        self.now = 0.0
        self.marks = 0
        self.current: dict[str, Incarnation] = {}
        self.heard: dict[Incarnation, tuple[LeaseView, float]] = {}
        self.uncleared: dict[str, set[Incarnation]] = {name: set() for name in "stuv"}
        """By source: lives that read it and neither let it go nor were cleared."""

    @initialize()
    def begin(self) -> None:
        self.start("a")

    @rule(node=st.sampled_from("abc"))
    def start(self, node: str) -> None:
        """A node starts, or is killed and starts again."""
        self.marks += 1
        self.current[node] = who = incarnation(node, self.marks)
        self.hear(who, beat(self.pool, who, self.now, None))

    @rule(node=st.sampled_from("abc"), release=st.booleans(), clear=st.booleans())
    def live(self, node: str, release: bool, clear: bool) -> None:
        who = self.current.get(node)
        if who is None or who not in self.heard:
            return
        seen, _ = self.heard[who]
        released = seen.leaving - set(seen.debts) if release else frozenset()
        cleared = frozenset(seen.debts) if clear else frozenset()
        heartbeat = Heartbeat(holds=seen.held, released=released, cleared=cleared)
        answer = self.pool.beat(who, heartbeat, self.now)
        if not answer.replaced:
            for name in cleared:
                self.uncleared[name] &= {who}
            for name in released:
                self.uncleared[name].discard(who)
        self.hear(who, answer)

    @precondition(lambda self: self.heard)
    @rule(data=st.data())
    def come_back(self, data: st.DataObject) -> None:
        """An incarnation that was stopped, perhaps replaced meanwhile, gives a sign."""
        who = data.draw(st.sampled_from(sorted(self.heard, key=str)))
        seen, _ = self.heard[who]
        self.hear(who, self.pool.beat(who, Heartbeat(holds=seen.held), self.now))

    @rule(seconds=st.sampled_from([1.0, 7.0, 29.0, 31.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    def hear(self, who: Incarnation, answer: LeaseView) -> None:
        if answer.replaced:
            self.heard.pop(who, None)
            return
        self.heard[who] = (answer, self.now)
        for name in answer.held:
            assert self.uncleared[name] - {who} == set(answer.debts.get(name, ())), (
                "whoever may have left something behind is named, and nobody else"
            )
        for name in answer.reading:
            self.uncleared[name].add(who)
        for name in answer.held:
            self.uncleared[name].add(who)

    @invariant()
    def nobody_reads_what_another_may_write(self) -> None:
        for name, lease in self.pool.leases.items():
            holders = [
                who
                for who, (seen, at) in self.heard.items()
                if name in seen.held and self.now < at + CONFIG.seconds
                if self.current.get(who.node) == who
            ]
            assert len(holders) <= 1
            assert not holders or lease.holder == holders[0]


Lives.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30)
TestLives = Lives.TestCase


def test_no_lease_is_lost_while_nobody_could_give_a_sign_of_life() -> None:
    found = pool("s", "t")
    peers = ("a", "b")
    a = beat(found, incarnation("a"), 0.0, None, peers=peers)
    b = beat(found, incarnation("b"), 5.0, None, peers=peers)
    a = beat(found, incarnation("a"), 7.0, a)
    # The database is away for ten minutes; the first that it answers takes nothing.
    assert beat(found, incarnation("a"), 607.0, a).held == a.held
    assert not beat(found, incarnation("b"), 625.0, b).replaced
    for now in (634.0, 648.0):
        assert beat(found, incarnation("a"), now, a).held == a.held
    assert beat(found, incarnation("a"), 656.0, a).held == {"s", "t"}, "b has died meanwhile"


def test_after_a_pool_that_was_not_running_leases_are_free() -> None:
    found = pool("s", "t")
    beat(found, incarnation("b"), 0.0, None)
    assert beat(found, incarnation("a"), 600.0, None).held == {"s", "t"}


def test_a_clock_that_is_put_back_delays_no_takeover() -> None:
    found = pool("s", "t")
    peers = ("a", "b")
    beat(found, incarnation("a"), 10_000.0, None, peers=peers)
    b = beat(found, incarnation("b"), 10_005.0, None, peers=peers)
    back = 10_005.0 - 3600.0
    for now in (back, back + 15.0, back + 26.0):
        b = beat(found, incarnation("b"), now, b)
    assert b.held == {"s", "t"}, "a was silent for 30 s"
    assert found.allocated_at <= back + 26.0


def test_nodes_that_die_together_lose_their_sources_at_one_time() -> None:
    found = pool(*"stuv")
    nodes = ("a", "b", "c", "d")
    for at, node in enumerate(nodes):
        beat(found, incarnation(node), 100.0 + 0.01 * at, None, peers=nodes)
    seen = beat(found, incarnation("d"), 115.0, None)
    assert found.living(130.0) == list(nodes), "until the next round"
    assert found.living(100.03 + CONFIG.seconds + CONFIG.beat / 8) == ["d"]
    seen = beat(found, incarnation("d"), 131.0, seen)
    assert seen.held == set("stuv")


def test_rates_are_the_same_in_whatever_order_leases_were_loaded() -> None:
    found = pool(*"stuvwxyz")
    for n, (name, lease) in enumerate(found.leases.items()):
        found.leases[name] = replace(
            lease, rate=0.1 * n, cost=0.1 + 0.7 * n, measured=90.0 - 10 * n
        )
    other = Pool(CONFIG, leases=dict(reversed(found.leases.items())))
    assert other.rates() == found.rates()
