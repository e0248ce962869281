"""Who may read a source: leases that end by themselves, as a pure state machine.

    free ──take──► held ──release (told to give it up, nothing of it under way)──► free
                    │ renewed by each beat
                    └── not renewed: anybody may take it; the old holder is in `debts` until the
                        new one has found out what the server learnt from it

A holder is one incarnation of a node, not the node: a process that was stopped and comes back after
its lease was taken holds nothing (C. Gray and D. Cheriton, "Leases", 1989). `fence` grows with
every taking. Times come in as arguments, in seconds of one clock that all nodes read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heapreplace
from math import fsum
from typing import ClassVar, NamedTuple

from pydantic import Field

from embedding.kernel.config import Config

# Which node reads which source: even token rates, and few sources that change hands. Pure.
#
# Synchronous training waits for the slowest node, so it pays when nodes read alike many tokens a
# second. Sources without a node go to the node with the least load, largest first (Graham 1969,
# "Bounds on multiprocessing timing anomalies"); after that single sources are moved, or two are
# swapped, only while the loads differ by more than a tolerance: between two looks rates change all
# the time, and each move stops a source for a while.
_WORTH = 0.05
"""A change that takes less than this share off the largest load is not worth stopping a source."""
_SWAP = 0.8
"""A swap must leave less than this share of the gap that the best single move leaves."""


class _Change(NamedTuple):
    """`out` goes from the fullest node to `to`, and `back` (if any) the other way; then the loads
    of the two differ by `gap`."""

    gap: float
    out: str
    to: str
    back: str


def allocate(
    rates: Mapping[str, float],
    nodes: Sequence[str],
    current: Mapping[str, str],
    *,
    tolerance: float = 0.25,
    moves: int = 4,
) -> dict[str, str]:
    """Node by source.

    rates      tokens a second by source, each 0 or more
    nodes      the nodes that are there; at least one
    current    node by source so far; sources and nodes that are gone are ignored
    tolerance  sources that have a node stay while (max load / mean load) ≤ 1 + tolerance
    moves      most sources that change from one living node to another
    """
    if not nodes:
        raise ValueError("sources cannot be allocated: there is no node.")
    shares: dict[str, list[str]] = {node: [] for node in sorted(set(nodes))}
    orphans = []
    for source in sorted(rates):
        node = current.get(source)
        if node in shares:
            shares[node].append(source)
        else:
            orphans.append(source)
    loads = {node: sum(rates[source] for source in share) for node, share in shares.items()}
    least = [(loads[node], len(share), node) for node, share in shares.items()]
    heapify(least)
    for source in sorted(orphans, key=lambda name: (-rates[name], name)):
        load, _, node = least[0]
        shares[node].append(source)
        loads[node] = load + rates[source]
        heapreplace(least, (loads[node], len(shares[node]), node))
    _even_out(rates, shares, loads, tolerance, moves)
    return {source: node for node, share in shares.items() for source in share}


def imbalance(loads: Mapping[str, float]) -> float:
    """The largest load over the mean; 1 when nothing is read."""
    total = sum(loads.values())
    return max(loads.values()) * len(loads) / total if total > 0 else 1.0


def node_loads(
    rates: Mapping[str, float], owners: Mapping[str, str], nodes: Sequence[str]
) -> dict[str, float]:
    """Tokens a second by node."""
    loads = dict.fromkeys(nodes, 0.0)
    for source, node in owners.items():
        if node in loads:
            loads[node] += rates.get(source, 0.0)
    return loads


def _even_out(
    rates: Mapping[str, float],
    shares: dict[str, list[str]],
    loads: dict[str, float],
    tolerance: float,
    moves: int,
) -> None:
    while moves > 0 and imbalance(loads) > 1.0 + tolerance:
        fullest = max(shares, key=lambda node: (loads[node], node))
        changes = list(_changes(rates, shares, loads, fullest))
        best = min((change for change in changes if not change.back), default=None)
        swap = min((change for change in changes if change.back and moves > 1), default=None)
        if swap is not None and (best is None or swap.gap < _SWAP * best.gap):
            best = swap
        if best is None:
            return
        step = rates[best.out] - (rates[best.back] if best.back else 0.0)
        left = max(loads[fullest] - step, loads[best.to] + step)
        if left > loads[fullest] * (1.0 - _WORTH):
            return
        shares[fullest].remove(best.out)
        shares[best.to].append(best.out)
        moves -= 1
        if best.back:
            moves -= 1
            shares[best.to].remove(best.back)
            shares[fullest].append(best.back)
        loads[fullest] -= step
        loads[best.to] += step


def _changes(
    rates: Mapping[str, float],
    shares: Mapping[str, list[str]],
    loads: Mapping[str, float],
    fullest: str,
) -> Iterator[_Change]:
    """The single moves from the fullest node, and for each the best swap with every other node."""
    for node, share in shares.items():
        difference = loads[fullest] - loads[node]
        if node == fullest or difference <= 0:
            continue
        ordered = sorted(share, key=lambda name: (rates[name], name))
        sizes = [rates[name] for name in ordered]
        for source in shares[fullest]:
            rate = rates[source]
            if 0 < rate < difference:
                yield _Change(abs(difference - 2 * rate), source, node, "")
            nearest = bisect_left(sizes, rate - difference / 2)
            for other in ordered[max(0, nearest - 1) : nearest + 1]:
                step = rate - rates[other]
                if 0 < step < difference:
                    yield _Change(abs(difference - 2 * step), source, node, other)


_MEMORY = 600.0
"""Seconds over which a source's token rate is averaged."""


class LeaseConfig(Config):
    """Which node reads which source."""

    INTERNAL: ClassVar = frozenset(("allocate_every",))

    seconds: float = Field(30.0, ge=1, le=3600)
    """A node that has not been heard from for this many seconds loses its sources to the others."""
    allocate_every: float = Field(60.0, gt=0)
    """Seconds between two checks whether the nodes still read about the same number of
    tokens."""

    # Constants: a file that sets one is refused.
    # Sources change nodes once the largest rate of a node exceeds the mean by this share.
    imbalance: ClassVar = 0.25
    moves: ClassVar = 4  # Most sources that change nodes at one look.

    @property
    def beat(self) -> float:
        """Seconds between two heartbeats."""
        return self.seconds / 4.0

    def last_round(self, now: float) -> float:
        """Whoever was silent too long by then is dead.

        In rounds, so that the sources of nodes that die together are allocated together.
        """
        every = self.beat / 8.0
        return now // every * every


@dataclass(frozen=True)
class Incarnation:
    """One incarnation of a node; its processes greet the parameter server with the same mark."""

    node: str
    mark: str

    def __str__(self) -> str:
        return f"{self.node} {self.mark}"

    @classmethod
    def of(cls, text: str) -> Incarnation:
        """Inverse of `str`; marks hold no blank."""
        node, _, mark = text.rpartition(" ")
        return cls(node, mark)


@dataclass(frozen=True)
class Lease:
    """One source.

    cost      what it is taken for while its rate is not known, relative to others
    rate      tokens a second, measured over `measured` seconds
    wanted    node that should read it; None: nobody should any more
    debts     earlier holders of which the server may have learnt documents that the frontier
              does not know to be learnt
    """

    source: str
    cost: float = 1.0
    rate: float = 0.0
    measured: float = 0.0
    wanted: str | None = None
    gone: bool = False
    holder: Incarnation | None = None
    until: float = 0.0
    fence: int = 0
    debts: tuple[Incarnation, ...] = ()

    def free(self, incarnation: Incarnation, now: float) -> bool:
        """Whether `incarnation` may take it."""
        # An earlier incarnation of the same node is not waited for: its process has ended, or it
        # will find that the fence is higher than the one it holds, and that it owes. Waiting would
        # keep every restarted node from its own sources for `seconds`.
        return self.holder is None or self.until <= now or self.holder.node == incarnation.node

    def taken(self, incarnation: Incarnation, until: float) -> Lease:
        # Whoever held it may have pushed documents that it did not live to acknowledge. The new
        # holder asks the server about them first, or it would read and learn them again.
        owing = self.debts if self.holder is None else (*self.debts, self.holder)
        return replace(
            self,
            holder=incarnation,
            until=until,
            fence=self.fence + 1,
            debts=tuple(dict.fromkeys(owing)),
        )

    def read(self, tokens: int, seconds: float) -> Lease:
        """After `tokens` were read in the last `seconds`."""
        if seconds <= 0:
            return self
        measured = min(self.measured + seconds, _MEMORY)
        rate = self.rate + (tokens / seconds - self.rate) * min(1.0, seconds / measured)
        return replace(self, rate=rate, measured=measured)


@dataclass(frozen=True)
class Seat:
    """A node of the pool: the mark of its latest incarnation, and until when it is believed
    alive.
    """

    node: str
    mark: str = ""
    until: float = 0.0


@dataclass(frozen=True)
class Heartbeat:
    """What a node says of itself every few seconds.

    first     the incarnation's first; later ones of an older incarnation of the node are refused
    peers     nodes that are expected (first): they get their share before they are there
    holds     sources that it believes to hold
    tokens    read by source since the last beat, `seconds` ago
    released  sources that it was told to give up and of which nothing is under way
    cleared   sources whose debts it has cleared
    """

    first: bool = False
    peers: tuple[str, ...] = ()
    holds: frozenset[str] = frozenset()
    tokens: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    released: frozenset[str] = frozenset()
    cleared: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LeaseView:
    """The answer to a heartbeat.

    replaced   another incarnation of the node has begun, or a source that it held is another's now:
               it may neither write nor acknowledge any more and has to end
    held       its sources
    leaving    those of them that it must give up
    debts      those that it may not read yet, with the incarnations to ask the server about
    owing      whether some source still owes to an earlier incarnation of this node
    rates      tokens a second of the sources held
    moves      sources that changed nodes so far
    """

    replaced: bool
    held: frozenset[str] = frozenset()
    leaving: frozenset[str] = frozenset()
    debts: Mapping[str, tuple[Incarnation, ...]] = field(default_factory=dict)
    owing: bool = False
    rates: Mapping[str, float] = field(default_factory=dict)
    moves: int = 0

    def figures(self) -> dict[str, object]:
        """As a node reports them, JSON-safe."""
        return {
            "sources": {name: round(rate, 2) for name, rate in sorted(self.rates.items())},
            "moves": self.moves,
        }

    @property
    def reading(self) -> frozenset[str]:
        return self.held - self.leaving - frozenset(self.debts)


@dataclass(frozen=True)
class Others:
    """What a heartbeat needs of the leases and nodes that a pool does not have at hand.

    rate, cost  tokens a second, and the cost, of the sources whose rate is known
    latest      when the last of all nodes is no longer believed alive
    uneven      whether a source has no living node, or a node has no source while another has
                several
    """

    rate: float
    cost: float
    latest: float
    uneven: bool


class IncompleteError(Exception):
    """A heartbeat may change leases that the pool does not have at hand."""


@dataclass
class Pool:
    """All nodes and sources; one heartbeat at a time.

    others  None: the pool has all. Most heartbeats concern only their node and its leases, and of
            the others need a summary. One that needs more raises IncompleteError; it is to be
            given again to a pool that has all.
    """

    config: LeaseConfig
    seats: dict[str, Seat] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    allocated_at: float = 0.0
    moves: int = 0
    others: Others | None = None

    def publish(self, costs: Mapping[str, float]) -> None:
        """From now on these sources are read and no others."""
        for source, cost in costs.items():
            known = self.leases.get(source, Lease(source))
            self.leases[source] = replace(known, cost=cost, gone=False)
        for source in set(self.leases) - set(costs):
            self.leases[source] = replace(self.leases[source], wanted=None, gone=True)

    def beat(self, incarnation: Incarnation, heartbeat: Heartbeat, now: float) -> LeaseView:
        """A heartbeat of a node; what it may read."""
        # A process that was paused and comes back must not renew what its successor holds by now.
        seat = self.seats.get(incarnation.node)
        if not heartbeat.first and (seat is None or seat.mark != incarnation.mark):
            return LeaseView(replaced=True)
        # It lost a source without knowing: documents of it are on their way through the process,
        # and the new holder reads the same ones. It ends as a whole, because nobody can say which
        # of its blocks hold them.
        believed = (self.leases.get(source) for source in heartbeat.holds)
        if any(lease is None or lease.holder != incarnation for lease in believed):
            return LeaseView(replaced=True)
        self._shift(now, heartbeat)
        # Only where the pool begins: later a peer that has died would get a seat, and its share of
        # the sources would wait for it instead of going to those that live.
        others = self.others
        alive = others.latest > self.config.last_round(now) if others else bool(self.living(now))
        if heartbeat.first and not alive:
            if self.others is not None:
                raise IncompleteError
            for peer in heartbeat.peers:
                self.seats[peer] = Seat(peer, until=now + self.config.seconds)
        self.seats[incarnation.node] = Seat(
            incarnation.node, incarnation.mark, now + self.config.seconds
        )
        for lease in self._concerning(incarnation.node):
            if lease.holder == incarnation:
                self.leases[lease.source] = self._renewed(lease, heartbeat, now)
        # Who reads a source, and until when, changes no rate: they are the same for all of a beat.
        rates = self.rates()
        self._allocate(now, rates)
        for lease in self._concerning(incarnation.node):
            if (
                lease.wanted == incarnation.node
                and lease.holder != incarnation
                and lease.free(incarnation, now)
            ):
                self.leases[lease.source] = lease.taken(incarnation, now + self.config.seconds)
        return self._view(incarnation, rates)

    def _shift(self, now: float, heartbeat: Heartbeat) -> None:
        """Move all ends along when nobody could give a heartbeat, or the clock was put back.

        The last heartbeat of all was `seconds` before the latest end. If leases have run out since,
        the database was away for everybody, and the first node to reach it again would take the
        sources of all others, which are alive. If an incarnation begins now, the pool was not
        running, and leases that have run out may be taken. A clock that was put back would make
        leases last for as long as it was put back.
        """
        if self.others is None:
            latest = max((seat.until for seat in self.seats.values()), default=now)
        else:
            latest = self.others.latest
        gap = now - (latest - self.config.seconds)
        if 0 <= gap <= self.config.seconds - self.config.beat or (gap > 0 and heartbeat.first):
            return
        if self.others is not None:
            raise IncompleteError
        by = gap if gap < 0 else gap - self.config.beat
        self.allocated_at = min(self.allocated_at, now)
        for node, seat in self.seats.items():
            self.seats[node] = replace(seat, until=seat.until + by)
        for name, lease in self.leases.items():
            if lease.holder is not None:
                self.leases[name] = replace(lease, until=lease.until + by)

    def living(self, now: float) -> list[str]:
        """Nodes that were heard of, or are expected."""
        last_round = self.config.last_round(now)
        return sorted(seat.node for seat in self.seats.values() if seat.until > last_round)

    def rates(self) -> dict[str, float]:
        """Tokens a second by source that is read; a guess where it was not measured long enough."""
        enough = self.config.allocate_every
        leases = [lease for lease in self.leases.values() if not lease.gone]
        known = [lease for lease in leases if lease.measured >= enough]
        # Exact sums: the same in whatever order a database gives the leases.
        rate, cost = fsum(lease.rate for lease in known), fsum(lease.cost for lease in known)
        if self.others is not None:
            rate, cost = rate + self.others.rate, cost + self.others.cost
        unit = (rate / cost if cost else 1.0) or 1.0  # tokens a second of a source that costs 1
        return {
            lease.source: lease.rate if lease.measured >= enough else lease.cost * unit
            for lease in leases
        }

    def loads(self, now: float) -> dict[str, float]:
        return node_loads(self.rates(), self._owners(), self.living(now))

    def _concerning(self, node: str) -> list[Lease]:
        """Every lease that a heartbeat of `node` may change, or that may owe to it."""
        return [
            lease
            for lease in self.leases.values()
            if lease.wanted == node
            or (lease.holder is not None and lease.holder.node == node)
            or any(debt.node == node for debt in lease.debts)
        ]

    def _renewed(self, lease: Lease, heartbeat: Heartbeat, now: float) -> Lease:
        name = lease.source
        if name in heartbeat.holds:
            lease = lease.read(heartbeat.tokens.get(name, 0), heartbeat.seconds)
        if name in heartbeat.cleared:
            lease = replace(lease, debts=())
        # A release crosses with a change of mind: wanted by its holder again, the lease stays.
        leaving = lease.holder is not None and lease.wanted != lease.holder.node
        if name in heartbeat.released and leaving:
            return replace(lease, holder=None, until=0.0)
        return replace(lease, until=now + self.config.seconds)

    def _owners(self) -> dict[str, str]:
        return {lease.source: lease.wanted for lease in self.leases.values() if lease.wanted}

    def _allocate(self, now: float, rates: Mapping[str, float]) -> None:
        """Sources without a node get one at once; others change nodes only now and then."""
        due = now - self.allocated_at >= self.config.allocate_every
        if self.others is not None:
            if due or self.others.uneven:
                raise IncompleteError
            return
        nodes, before = self.living(now), self._owners()
        if not nodes or not rates:
            return
        owned = Counter(before.values())
        counts = [owned[node] for node in nodes]
        even = due or (min(counts) == 0 and max(counts) > 1)
        if not even and rates.keys() <= before.keys() and owned.keys() <= set(nodes):
            return
        after = allocate(
            rates,
            nodes,
            before,
            tolerance=self.config.imbalance,
            moves=self.config.moves if even else 0,
        )
        if even:
            self.allocated_at = now
        for source, node in after.items():
            if before.get(source) != node:
                self.moves += source in before
                self.leases[source] = replace(self.leases[source], wanted=node)

    def _view(self, incarnation: Incarnation, rates: Mapping[str, float]) -> LeaseView:
        concerning = self._concerning(incarnation.node)
        own = [lease for lease in concerning if lease.holder == incarnation]
        owing = any(
            holder is not None and holder.node == incarnation.node and holder != incarnation
            for lease in concerning
            for holder in (*lease.debts, lease.holder)
        )
        return LeaseView(
            replaced=False,
            held=frozenset(lease.source for lease in own),
            leaving=frozenset(lease.source for lease in own if lease.wanted != incarnation.node),
            debts={lease.source: lease.debts for lease in own if lease.debts},
            owing=owing,
            rates={lease.source: rates[lease.source] for lease in own if lease.source in rates},
            moves=self.moves,
        )


def shown(pool: Pool, now: float) -> dict[str, object]:
    """The pool as a status shows it, JSON-safe."""
    rates, loads = pool.rates(), pool.loads(now)
    return {
        "nodes": {node: round(load, 1) for node, load in sorted(loads.items())},
        "imbalance": round(imbalance(loads), 3) if loads else None,
        "moves": pool.moves,
        "sources": {
            source: {
                "node": lease.wanted,
                "held_by": None if lease.holder is None else lease.holder.node,
                "tokens_per_second": round(rates.get(source, 0.0), 1),
            }
            for source, lease in sorted(pool.leases.items())
        },
    }
