"""Leases in a database: one contract for SQLite and PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from embedding.crawl.addresses import key_digest
from embedding.crawl.frontier import Frontier, Leases
from embedding.crawl.lease import Heartbeat, Incarnation, LeaseConfig, LeaseView, Pool
from embedding.crawl.tables import Fetched
from embedding.sources.config import SourceConfig

CONFIG = LeaseConfig(seconds=30).model_copy(update={"allocate_every": 60})
A, B = Incarnation("a", "m1"), Incarnation("b", "m2")


def source(name: str, **more: object) -> SourceConfig:
    return SourceConfig(name=name, kind="feed", url=f"https://{name}.example/rss", **more)


@pytest.fixture
def frontier(database: str) -> Iterator[Frontier]:
    found = Frontier(database)
    yield found
    found.close()


@pytest.fixture
def leases(frontier: Frontier) -> Leases:
    found = frontier.leases(CONFIG)
    found.publish([source("s"), source("t", rate=2.0)])
    return found


def first(leases: Leases, incarnation: Incarnation, now: float, *peers: str) -> LeaseView:
    return leases.beat(incarnation, Heartbeat(first=True, peers=peers), now)


def test_sources_are_published_with_their_settings(leases: Leases) -> None:
    assert leases.sources() == [source("s"), source("t", rate=2.0)]
    leases.publish([source("t", rate=3.0), source("u")])
    assert leases.sources() == [source("t", rate=3.0), source("u")]
    assert [one.name for one in leases.sources(["s", "t"])] == ["s", "t"]


def test_a_standing_is_the_same_for_whoever_looks(leases: Leases, frontier: Frontier) -> None:
    seen = first(leases, A, 100.0)
    assert seen.reading == {"s", "t"}
    heartbeat = Heartbeat(holds=seen.held, tokens={"s": 600}, seconds=6.0)
    assert frontier.leases(CONFIG).beat(A, heartbeat, 106.0).reading == {"s", "t"}
    shown = leases.show()
    assert shown["sources"]["s"]["held_by"] == "a"


def test_a_lease_that_ran_out_goes_to_another_node_with_its_debts(leases: Leases) -> None:
    seen = first(leases, A, 100.0)
    assert first(leases, B, 110.0).held == frozenset()
    taken = leases.beat(B, Heartbeat(), 131.0)
    assert taken.held == {"s", "t"}
    assert taken.debts == {"s": (A,), "t": (A,)}
    assert leases.beat(A, Heartbeat(holds=seen.held), 132.0).replaced
    cleared = leases.beat(B, Heartbeat(holds=taken.held, cleared=taken.held), 133.0)
    assert cleared.reading == {"s", "t"}


def test_whoever_lost_a_lease_writes_and_acknowledges_nothing(
    leases: Leases, frontier: Frontier
) -> None:
    frontier.held_by(A)
    frontier.discover("s", [("k1", 1.0)], 1.0)
    assert frontier.backlog(["s"])["s"] == 0, "it has no lease yet"
    first(leases, A, 100.0)
    frontier.discover("s", [("k1", 1.0), ("k2", 2.0), ("k3", 3.0)], 101.0)
    assert [claim.key for claim in frontier.claim("s", 3, 102.0, 900.0)] == ["k1", "k2", "k3"]
    frontier.record([Fetched("k1", "s")], [], 103.0)
    leases.beat(B, Heartbeat(first=True), 131.0)
    # The incarnation of node a was stopped; now it comes back and goes on as if nothing had
    # happened.
    assert frontier.acknowledge(["k1"], 140.0) == 0
    frontier.record([Fetched("k2", "s")], [], 140.0)
    frontier.fail("k3", 140.0, "timeout")
    frontier.discover("s", [("k4", 4.0)], 140.0)
    assert not frontier.offer("s", [("p#comment-1", 1.0)], 140.0)
    assert not frontier.alias("k9", "k1", "s", 140.0)
    assert frontier.claim("s", 9, 5000.0, 900.0) == []
    frontier.held_by(B)
    assert frontier.backlog(["s"])["s"] == 3
    assert frontier.recover(["s"], learnt={key_digest("k1")}) == 2
    assert [claim.key for claim in frontier.claim("s", 9, 141.0, 900.0)] == ["k2", "k3"]


def test_beats_of_many_nodes_at_once_leave_one_holder_a_source(leases: Leases) -> None:
    leases.publish([source(f"s{n}") for n in range(20)])
    incarnations = [Incarnation(f"n{n}", f"m{n}") for n in range(6)]
    names = tuple(incarnation.node for incarnation in incarnations)
    heard: dict[str, frozenset[str]] = {}
    failures: list[BaseException] = []

    def live(incarnation: Incarnation) -> None:
        heartbeat = Heartbeat(first=True, peers=names)
        try:
            for _ in range(5):
                seen = leases.beat(incarnation, heartbeat)
                assert not seen.replaced
                heartbeat = Heartbeat(holds=seen.held)
            heard[incarnation.node] = seen.held
        except BaseException as error:  # noqa: BLE001 - told by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=live, args=(incarnation,)) for incarnation in incarnations]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not failures
    taken = [name for held in heard.values() for name in held]
    assert len(taken) == len(set(taken)) == 20
    assert max(map(len, heard.values())) == 4


def write_one_by_one(frontier: Frontier, rows: list[Fetched], now: float) -> None:
    for row in rows:
        frontier.record([row], [], now)


@pytest.mark.parametrize("database", ["file", "postgres"], indirect=True)
def test_a_write_and_a_taking_exclude_each_other(
    leases: Leases, frontier: Frontier, database: str
) -> None:
    """Whatever the order, a key that the old holder wrote last is seen by the new holder."""
    mine = Frontier(database)
    for round_ in range(5):
        now = 1000.0 * (round_ + 1)
        old, new = Incarnation("a", f"old{round_}"), Incarnation("b", f"new{round_}")
        first(leases, old, now)
        frontier.held_by(old)
        keys = [f"{round_}-{n}" for n in range(60)]
        frontier.discover("s", [(key, float(n)) for n, key in enumerate(keys)], now)
        frontier.claim("s", 100, now, 900.0)
        rows = [Fetched(key, "s") for key in keys]
        write = partial(write_one_by_one, frontier, rows, now)
        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(0.005)
        held = first(leases, new, now + 100.0).held
        assert "s" in held
        mine.held_by(new)
        mine.recover(["s"])
        writer.join(100)
        assert {c.key for c in mine.claim("s", 100, now + 101, 1.0)} == set(keys)
        mine.record([], [(row, "test") for row in rows], now)
    mine.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_beat_that_loads_a_part_gives_what_a_pool_with_all_gives(
    leases: Leases, seed: int
) -> None:
    """Nodes come, die, come back; sources go and come: the views and the state are the same."""
    chance = Random(seed)
    names = [f"s{n:02d}" for n in range(15)]
    leases.publish([source(name) for name in names])
    pool = Pool(CONFIG)
    pool.publish(dict.fromkeys(("s", "t"), 1.0))
    pool.publish(dict.fromkeys(names, 1.0))
    nodes = ["a", "a b", "노드", "%"]
    lives: dict[str, Incarnation] = {}
    views: dict[str, LeaseView] = {}
    now = 1000.0
    for step in range(150):
        now += chance.choice([0.5, 2.0, 2.0, 7.0, 7.0, 7.0, 45.0, -20.0 if step % 50 == 0 else 1.0])
        node = chance.choice(nodes)
        if chance.random() < 0.04:
            kept = [name for name in names if chance.random() < 0.8]
            leases.publish([source(name) for name in kept])
            pool.publish(dict.fromkeys(kept, 1.0))
        if node not in views or chance.random() < 0.06:
            lives[node] = Incarnation(node, f"m{step}")
            heartbeat = Heartbeat(first=True, peers=tuple(nodes[:2]))
        else:
            seen = views[node]
            heartbeat = Heartbeat(
                holds=seen.held,
                tokens={name: chance.randrange(5000) for name in seen.reading},
                seconds=chance.uniform(1, 40),
                released=seen.leaving - frozenset(seen.debts),
                cleared=frozenset(seen.debts) if chance.random() < 0.7 else frozenset(),
            )
        here, there = (
            leases.beat(lives[node], heartbeat, now),
            pool.beat(lives[node], heartbeat, now),
        )
        assert here == replace(there, rates=here.rates), step
        assert here.rates == pytest.approx(there.rates)
        if here.replaced:
            views.pop(node, None)
        else:
            views[node] = here
    owners = {name: lease.wanted for name, lease in pool.leases.items()}
    assert {name: each["node"] for name, each in leases.show()["sources"].items()} == owners


def test_most_beats_load_the_leases_of_their_node_alone(
    leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases.publish([source(f"s{n:02d}") for n in range(20)])
    first(leases, A, 100.0, "a", "b")
    first(leases, B, 100.0)
    sizes = []
    beat = Pool.beat

    def counted(pool: Pool, *given: object) -> LeaseView:
        sizes.append(len(pool.leases))
        return beat(pool, *given)

    monkeypatch.setattr(Pool, "beat", counted)
    seen = leases.beat(A, Heartbeat(), 105.0)
    assert sizes == [10]
    assert len(seen.held) == 10
