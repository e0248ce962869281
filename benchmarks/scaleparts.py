"""State machines of one platform under the load of a thousand nodes, in simulated time.

Each part is a station: it decides one thing at a time, as under its lock. Arrivals come in
simulated time at the rate of the load; each decision is made by the real code, and takes the
processor seconds that this machine took for it, whatever else runs on it (SQLite does not wait for
the disk within a decision). So waiting times are those of a queue, and a station
saturates where its decisions take longer than the time between two arrivals.
"""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from embedding.crawl.frontier import Frontier, Leases
from embedding.crawl.lease import Heartbeat, Incarnation, LeaseConfig, LeaseView
from embedding.crawl.schedule import PollSchedule
from embedding.crawl.tables import Fetched
from embedding.kernel.records import Calendar, WindowUnit
from embedding.server.config import SyncConfig
from embedding.server.consistency import ConsistencyMachine
from embedding.server.policies.base import PendingPush
from embedding.server.words.windows import WindowTracker
from embedding.sources.config import SourceConfig

T = TypeVar("T")
HOUR = 3600.0
_TURN_S = 20.0
"""Seconds within which all sources come over the end of a window."""
_JOINED, _AFTER = 1.3, 1.6
"""A tenth of the nodes dies after so many heartbeats; and so many leases' lengths come after it."""


@dataclass(frozen=True)
class Load:
    """What the platform has to carry.

    tokens       of a document
    lease_s      of LeaseConfig.seconds; a node gives a heartbeat each quarter of it
    flush_s      of NodeConfig.flush_seconds: a node pushes at least so often
    every_s      between two polls of a source
    decisions    that a part is measured over, at most
    """

    nodes: int = 1_000
    sources: int = 10_000
    documents_a_day: float = 100e6
    tokens: int = 200
    lease_s: float = 30.0
    flush_s: float = 1.0
    every_s: float = 30.0
    decisions: int = 4_000
    seed: int = 1

    @property
    def documents_per_second(self) -> float:
        return self.documents_a_day / 86_400

    def name(self, node: int) -> str:
        return f"node-{node:04d}"

    def source(self, at: int) -> str:
        return f"source-{at:05d}"

    def of_node(self, node: int) -> list[int]:
        """Sources of a node."""
        return list(range(node, self.sources, self.nodes))


@dataclass
class Station:
    """Decisions one after the other, in simulated time.

    demand  decisions a second that the load brings
    """

    name: str
    demand: float
    free_at: float = 0.0
    costs: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    memory: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)
    nodes: int = 1_000

    def decide(self, at: float, call: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """A decision that is asked for at `at`, seconds of simulated time."""
        began = time.thread_time()
        answer = call(*arguments, **named)
        cost = time.thread_time() - began
        self.free_at = max(self.free_at, at) + cost
        self.costs.append(cost)
        self.waits.append(self.free_at - at)
        return answer

    def row(self) -> dict[str, Any]:
        """For the report. A part whose use is above 1 falls behind for ever."""
        mean = sum(self.costs) / len(self.costs)
        ordered = sorted(self.waits)
        return {
            "part": self.name,
            "demand_per_s": round(self.demand, 1),
            "decisions_per_s": round(1 / mean, 1),
            "use": round(self.demand * mean, 3),
            "mean_ms": round(1e3 * mean, 3),
            "p99_s": round(ordered[int(0.99 * (len(ordered) - 1))], 4),
            "max_s": round(ordered[-1], 4),
            "kib_a_node": round(self.memory / 1024, 2),
            "saturates_at_nodes": None if mean == 0 else int(1 / mean / self.demand * self.nodes),
        }


@contextmanager
def weighed(station: Station, nodes: int) -> Iterator[None]:
    """Python's memory that is allocated within and kept, for each node."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    try:
        yield
    finally:
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        station.memory += (after - before) / nodes


def station(load: Load, name: str, demand: float) -> Station:
    return Station(name, demand, nodes=load.nodes)


def leases(load: Load) -> Station:
    """Joins, heartbeats, a tenth of the nodes dies; in SQLite on this machine's disk."""
    config = LeaseConfig(seconds=load.lease_s)
    here = station(load, "leases", load.nodes / config.beat)
    with tempfile.TemporaryDirectory() as folder:
        frontier = Frontier(f"sqlite:///{Path(folder) / 'frontier.db'}")
        pool = frontier.leases(config)
        publish(pool, load)
        lives = [Incarnation(load.name(n), f"m{n}") for n in range(load.nodes)]
        here.notes["takeover_s"] = _heartbeats(load, config, lives, here, pool.beat)
        frontier.close()
    return here


def publish(pool: Leases, load: Load) -> None:
    pool.publish(
        [
            SourceConfig(
                name=load.source(at),
                kind="feed",
                url=f"https://s{at}.example.org/feed.xml",
                group="news",
                language="ko",
            )
            for at in range(load.sources)
        ]
    )


def _heartbeats(
    load: Load,
    config: LeaseConfig,
    lives: list[Incarnation],
    here: Station,
    beat: Callable[[Incarnation, Heartbeat, float], LeaseView],
) -> float | None:
    """Join, beat, die; seconds from a death to the last of its sources being read again.

    As `LeaseKeeper` does: a node with debts or with sources to give up beats soon again.
    """
    rate = load.documents_per_second * load.tokens / load.sources
    peers = tuple(life.node for life in lives)
    chance = Random(load.seed)
    events = [
        (chance.uniform(0, config.beat), at, Heartbeat(True, peers)) for at in range(len(lives))
    ]
    events.sort(key=lambda event: event[:2])
    start, dies_at = 1_000_000.0, _JOINED * config.beat
    dead: set[int] = set()
    died, lost, freed = None, set[str](), set[str]()
    sources_of: dict[int, frozenset[str]] = {}
    while events:
        at, node, heartbeat = heappop(events)
        if at > dies_at + _AFTER * config.seconds:
            break
        if died is None and at >= dies_at:
            died = at
            dead = set(range(0, len(lives), 10))
            lost = {name for dead_node in dead for name in sources_of.get(dead_node, ())}
        if node in dead:
            continue
        view = here.decide(at, beat, lives[node], heartbeat, start + at)
        if view.replaced:
            heappush(events, (at + 1.0, node, Heartbeat(True, peers)))
            continue
        sources_of[node] = view.held
        freed |= view.held & lost
        if lost and freed == lost and "s" not in here.notes:
            here.notes["s"] = round(at - (died or 0.0), 1)
        busy = view.debts or view.leaving
        wait = 0.5 if busy else config.beat
        # A node waits for its answer before it counts to the next heartbeat.
        later = here.free_at + wait
        tokens = {name: int(rate * wait) for name in view.reading}
        following = Heartbeat(
            holds=view.held,
            tokens=tokens,
            seconds=later - at,
            released=view.leaving - frozenset(view.debts),
            cleared=frozenset(view.debts),
        )
        heappush(events, (later, node, following))
    taken: float | None = here.notes.pop("s", None)
    return taken


def polling(load: Load) -> Station:
    """The poll schedule of one node with its share of the sources, for a simulated hour."""
    own = load.of_node(0)
    return _polling(load, "polling (a node)", own, HOUR)


def polling_alone(load: Load) -> Station:
    """One node that reads all sources: what a schedule can carry."""
    return _polling(load, "polling (all sources)", list(range(load.sources)), HOUR)


def _polling(load: Load, name: str, own: list[int], seconds: float) -> Station:
    here = station(load, name, len(own) / load.every_s)
    chance = Random(load.seed)
    schedule = PollSchedule(host_rate=0.5)
    with weighed(here, 1):
        for at in own:
            # Two sources of each host, as a site has several feeds.
            schedule.add(load.source(at), f"host-{at // 2}", load.every_s, 0.0)
    due = [(0.0, at) for at in own]
    polls = 0
    while due and len(here.costs) < load.decisions:
        now, at = heappop(due)
        if now > seconds:
            break
        source = load.source(at)
        left = here.decide(now, schedule.ask, source, now)
        if left > 0:
            heappush(due, (now + min(max(left, 0.01), 30.0), at))
            continue
        here.costs[-1] += _timed(schedule.polled, source, changed=chance.random() < 0.9)
        polls += 1
        heappush(due, (now + load.every_s, at))
    here.notes["polls"] = polls
    return here


def _timed(call: Callable[..., Any], *arguments: Any, **named: Any) -> float:
    began = time.thread_time()
    call(*arguments, **named)
    return time.thread_time() - began


def frontier(load: Load) -> Station:
    """Addresses through the frontier's database: discovered, claimed, read, acknowledged.

    A decision is one transaction; a poll of a source brings what was written since the last.
    """
    brought = max(1, round(load.documents_per_second * load.every_s / load.sources))
    here = station(load, "frontier (database)", load.sources / load.every_s * 4)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frontier.db"
        database = Frontier(f"sqlite:///{path}")
        pool = database.leases(LeaseConfig(seconds=HOUR))
        publish(pool, load)
        # One node's sources: which, the lease says to each transaction.
        life = Incarnation(load.name(0), "m0")
        peers = tuple(load.name(n) for n in range(load.nodes))
        now = time.time()
        own = sorted(pool.beat(life, Heartbeat(True, peers), now).held)
        database.held_by(life)
        before, documents, at = path.stat().st_size, 0, 0.0
        for poll in range(load.decisions // 4):
            source = own[poll % len(own)]
            keys = [f"https://{source}.example.org/{poll}/{n}" for n in range(brought)]
            at += 4 / here.demand
            rows = [(key, now) for key in keys]
            here.decide(at, database.discover, source, rows, now)
            claims = here.decide(at, database.claim, source, brought, now, 60.0)
            read = [
                Fetched(claim.key, source, content_hash=f"{poll}-{n}")
                for n, claim in enumerate(claims)
            ]
            here.decide(at, database.record, read, (), now)
            documents += here.decide(at, database.acknowledge, [row.key for row in read], now)
        database.close()
        # The write-ahead log was taken in at the close.
        size = path.stat().st_size - before
    here.notes["documents"] = documents
    here.notes["bytes_a_document"] = round(size / max(1, documents))
    here.notes["gib_a_day"] = round(size / max(1, documents) * load.documents_a_day / 2**30, 1)
    return here


def clocks(load: Load, policy: str) -> Station:
    """Pulls and pushes of all nodes under a policy; nodes' speeds differ by a tenth."""
    here = station(load, f"clocks ({policy})", 2 * load.nodes / load.flush_s)
    chance = Random(load.seed)
    machine = ConsistencyMachine(SyncConfig(policy=policy))
    with weighed(here, load.nodes):
        for node in range(load.nodes):
            machine.join(load.name(node), now=0.0)
    clock = dict.fromkeys(range(load.nodes), 0)
    pace = {node: load.flush_s * chance.uniform(0.9, 1.1) for node in range(load.nodes)}
    events: list[tuple[float, int, str]] = []
    for node in range(load.nodes):
        heappush(events, (chance.uniform(0, load.flush_s), node, "pull"))
    waited = 0
    while events and len(here.costs) < 2 * load.decisions:
        at, node, what = heappop(events)
        name = load.name(node)
        if what == "push":
            ticket = PendingPush(name, clock[node], clock[node])
            here.decide(at, machine.push, ticket, now=at)
            each = {load.source(source): 40 for source in load.of_node(node)}
            here.costs[-1] += _timed(machine.measured, name, each, pace[node], now=at)
            clock[node] += 1
            heappush(events, (at, node, "pull"))
            continue
        clock[node], waiting, _ = here.decide(at, machine.pull, name, clock[node], now=at)
        if waiting:
            # It hears of a change when the clock that it waits for was applied; here it asks.
            waited += 1
            heappush(events, (at + 0.05, node, "pull"))
        else:
            heappush(events, (at + pace[node], node, "push"))
    here.notes["waited"] = waited
    return here


def windows(load: Load) -> Station:
    """Progress of all sources to the end of an hour, and how long after it the cut is due.

    Each node tells with a push what its sources reached, and reports what it has pending; the
    windows that are due are looked for after each push, as the server does.
    """
    here = station(load, "windows", 2 * load.nodes / load.flush_s)
    chance = Random(load.seed)
    tracker = WindowTracker(Calendar(WindowUnit.HOUR), idle_s=300.0)
    end = 1_700_000_000 // 3600 * 3600 + 3600
    own = {node: [load.source(at) for at in load.of_node(node)] for node in range(load.nodes)}
    with weighed(here, load.nodes):
        for node in range(load.nodes):
            tracker.report(load.name(node), dict.fromkeys(own[node], 0), now=0.0)
            for source in own[node]:
                tracker.progress(source, end - 60.0, now=0.0, node=load.name(node))
    # The sources come over the end of the hour within so long of each other.
    over = {name: chance.uniform(0.0, 1.0) for names in own.values() for name in names}
    span = _TURN_S
    events = []
    for node in range(load.nodes):
        at = chance.uniform(0, load.flush_s)
        while at < span + 2 * load.flush_s:
            events.append((at, node))
            at += load.flush_s
    events.sort()
    done, last = None, 0.0
    passed: set[str] = set()
    for at, node in events:
        name = load.name(node)

        def push(at: float = at, node: int = node, name: str = name) -> list[Any]:
            for source in own[node]:
                ahead = at - over[source] * span
                tracker.progress(
                    source, end + (ahead if ahead < 0 else ahead + 1.0), now=at, node=name
                )
            return tracker.due([end - 3600], now=at)

        due = here.decide(at, push)
        for source in own[node]:
            if at >= over[source] * span and source not in passed:
                passed.add(source)
                last = at
        if due and done is None:
            done = here.free_at
        here.decide(at, tracker.report, name, dict.fromkeys(own[node], 0), now=at)
    here.notes["cut_after_last_source_s"] = None if done is None else round(done - last, 3)
    return here
