"""When to poll which listing next. A pure machine: times come in as arguments, in seconds.

Each source's rate of change is learnt from its polls (`sources.changes`); the polls that a host
and the node may make are shared out so that most sources are fresh most of the time
(`crawl.freshness`). A source is polled when the changes expected since its last poll reach its
threshold, never before `every`, and after `every × slowest` at the latest; where even that is more
than a host may be asked, all its sources wait longer alike. Budgets are hard: polls
that are due wait for them in the order in which they came due.

Exploration: a source that nobody knows is supposed to change as often as the known ones do in
proportion to their `every`, and the least rate keeps every source under observation, as Poisson
rates are learnt from any poll (K. Upadhyay et al., "Learning to crawl", AAAI 2020).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.sources.changes import ChangeRate

# How often to poll each source so that most of them are fresh most of the time.
#
# Y. Azar, E. Horvitz, E. Lubetzky, Y. Peres, D. Shahaf, "Tractable near-optimal policies for
# crawling" (PNAS 2018): with changes at rate d and polls at rate r, both Poisson, a source is fresh
# for a share r / (r + d) of the time. The weighted sum is concave, so at the optimum under a budget
# all sources that are polled gain the same from one poll more, w d / (r + d)^2 = price, hence r =
# sqrt(w d / price) - d; sources whose gain w / d never reaches the price are polled no more than
# they must. The optimal rates then define an evenly spaced schedule. With a least and a most rate
# for each source the sum still falls as the price rises, so the price is found by bisection.
_ChangeRateArray = npt.NDArray[np.float64]

_STEPS = 32
_NEVER = 1e200
"""A threshold that is not reached."""
_TINY = 1e-200


@dataclass(frozen=True)
class ChangeRates:
    """What is known of n sources, as float64 [n] arrays."""

    quiet: _ChangeRateArray
    """Changes a second that no signal tells of, > 0."""
    heard: _ChangeRateArray
    """Hazard that one signal is worth (see `sources.changes`)."""
    signals: _ChangeRateArray
    """Signals a second."""
    weight: _ChangeRateArray
    cost: _ChangeRateArray
    """Requests of one poll."""
    least: _ChangeRateArray
    """Polls a second that each source gets whatever it gains."""
    most: _ChangeRateArray

    @property
    def rate(self) -> _ChangeRateArray:
        return self.quiet - self.signals * np.expm1(-self.heard)


def thresholds(changes: ChangeRates, price: float | _ChangeRateArray) -> _ChangeRateArray:
    """Expected changes since the last poll at which each source is polled, at this price."""
    rate = changes.rate
    polls = np.sqrt(changes.weight * rate / (np.maximum(price, _TINY) * changes.cost)) - rate
    hazards: _ChangeRateArray = np.minimum(rate / np.maximum(polls, _TINY), _NEVER)
    return hazards


def poll_rates(changes: ChangeRates, price: float) -> _ChangeRateArray:
    """Polls a second that the thresholds lead to, with signals, between least and most.

    Hazard grows by `quiet` a second and by `heard` with each signal. A threshold is passed by whole
    signals, by half a signal too much on average, and one is enough where it is worth that much.
    """
    threshold = thresholds(changes, price)
    triggered = changes.signals * changes.heard / np.maximum(threshold + changes.heard / 2, _TINY)
    polls = changes.quiet / threshold + np.minimum(changes.signals, triggered)
    return np.clip(polls, changes.least, changes.most)


def price_of(changes: ChangeRates, budget: float) -> float:
    """The price at which all polls together cost `budget` requests a second; 0 when all can have
    their most. Where even the least rates cost more, the price is as high as it goes.
    """

    def used(price: float) -> float:
        return float(np.sum(poll_rates(changes, price) * changes.cost))

    if float(np.sum(changes.most * changes.cost)) <= budget:
        return 0.0
    gain = changes.weight / (changes.rate * changes.cost)
    low, high = np.log(float(gain.min()) * 1e-12), np.log(float(gain.max()) * 1.01)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if used(np.exp(middle)) > budget else (low, middle)
    return float(np.exp(high))


_FAILURES = 4
"""Doublings of the delay after failed polls."""
_SMOOTH = 0.3
"""Weight of the latest poll in the requests that a poll costs."""
_BURST = 5.0
"""Polls that a budget saves up while none is due."""
_KNOWN = 3
"""Looks after which a source tells something of the others."""
_REPLAN = 0.1
"""Share of the sources that share a budget whose polls make a new plan worth its while."""
_WEAKEST, _STRONGEST = 0.5, 30.0
"""Bounds of what the other sources count against one's own polls, in changes seen."""


class Budget:
    """`rate` requests a second after a burst, in the order in which they are asked for; `inf` has
    no limit. Times are seconds.

    The generic cell rate algorithm: each request moves the theoretical time of the next one on by
    1 / rate, and may start at most `burst` requests ahead of it.
    """

    def __init__(self, rate: float, burst: float = 1.0) -> None:
        self.rate = rate
        self._burst = burst
        self._next = -math.inf

    def earliest(self, now: float) -> float:
        return max(now, self._next - (self._burst - 1.0) / self.rate)

    def take(self, at: float, cost: float) -> None:
        """Book `cost` requests that start at `at`, not before `earliest`."""
        if math.isinf(self.rate):
            return
        self._next = max(self._next, at) + cost / self.rate

    def correct(self, difference: float) -> None:
        """What was booked cost so many requests more, or less."""
        if not math.isinf(self.rate):
            self._next += difference / self.rate


@dataclass
class _Polled:
    host: str
    every: float
    weight: float
    changes: ChangeRate
    due: float | None
    """When it is due whatever is known of it: at first, and after a failure."""
    began: float | None = None
    """Start of the last poll that succeeded."""
    slot: float | None = None
    """When the poll that came due may start."""
    started: float | None = None
    """Start of the poll that is under way."""
    booked: float = 0.0
    cost: float = 1.0
    signals: int = 0
    failures: int = 0
    threshold: float = 0.0


@dataclass
class _Shared:
    """Sources that share a budget, and how many polls their plan has not seen."""

    budget: Budget
    names: dict[str, None] = field(default_factory=dict)
    price: float = 0.0
    scale: float = 1.0
    """What the least rates are multiplied with so that they fit into the budget."""
    unplanned: float = math.inf


class PollSchedule:
    """The poll times of all sources of a node; see CrawlConfig for the last two.

    host_rate, node_rate  requests a second to one host, and to all, that may be polls
    """

    def __init__(
        self,
        *,
        host_rate: float,
        node_rate: float = math.inf,
        slowest: float = 4.0,
        polls_per_change: float = 2.0,
    ) -> None:
        self._host_rate, self._slowest = host_rate, slowest
        self._polls_per_change = polls_per_change
        self._sources: dict[str, _Polled] = {}
        self._hosts: dict[str, _Shared] = {}
        self._node = _Shared(Budget(node_rate, _BURST))
        self._pace, self._strength = 1.0, _WEAKEST

    def add(
        self,
        name: str,
        host: str,
        every: float,
        now: float,
        *,
        weight: float = 1.0,
        rate: float | None = None,
    ) -> None:
        """A new source, due at once. `rate`: requests a second of its host, else `host_rate`."""
        if name in self._sources:
            raise ValueError(f"source {name!r} is scheduled already")
        changes = ChangeRate(self._pace / every, strength=self._strength)
        self._sources[name] = _Polled(host, every, weight, changes, due=now)
        allowed = rate or self._host_rate
        shared = self._hosts.setdefault(host, _Shared(Budget(allowed, _BURST)))
        # Several sources of one host: the most careful of them holds for the host.
        shared.budget.rate = min(shared.budget.rate, allowed)
        for group in (shared, self._node):
            group.names[name] = None
            group.unplanned = math.inf

    def remove(self, name: str) -> None:
        source = self._sources.pop(name)
        for group in (self._hosts[source.host], self._node):
            group.names.pop(name)
            group.unplanned = math.inf

    def ask(self, name: str, now: float) -> float:
        """0 when the poll may start now (it is booked), else seconds after which to ask again."""
        source = self._sources[name]
        if source.slot is None:
            # Share out the budgets again when enough polls have told something.
            for group in (self._node, self._hosts[source.host]):
                if group.unplanned > _REPLAN * len(group.names):
                    if group is self._node:
                        self._learn_prior()
                    group.unplanned = 0.0
                    self._price(group)
            due = self._due(source)
            if now < due:
                return due - now
            host, node = self._hosts[source.host].budget, self._node.budget
            source.slot = max(host.earliest(now), node.earliest(now))
            source.booked = source.cost
            for budget in (host, node):
                budget.take(source.slot, source.cost)
        if now < source.slot:
            return source.slot - now
        source.started, source.slot = now, None
        return 0.0

    def polled(self, name: str, *, changed: bool, requests: int = 1) -> bool:
        """The poll that started last succeeded, with so many requests; whether it is the first.

        The first poll of all finds everything new, and tells nothing of the rate.
        """
        source = self._sources[name]
        began = source.started
        if began is None:
            raise ValueError(f"source {name!r} is not being polled")
        first = source.began is None
        if source.began is not None:
            source.changes.observe(began - source.began, changed, source.signals)
        source.began, source.started, source.due = began, None, None
        source.signals = source.failures = 0
        self._spent(source, requests)
        for group in (self._hosts[source.host], self._node):
            group.unplanned += 1
        return first

    def failed(self, name: str, now: float, retry_after: float = 0.0, requests: int = 1) -> None:
        """It failed; delays double up to 16 × `every` and are at least `retry_after` from now."""
        source = self._sources[name]
        began = now if source.started is None else source.started
        delay = source.every * 2.0 ** min(source.failures, _FAILURES)
        source.due = max(began + delay, now + retry_after)
        source.started, source.failures = None, source.failures + 1
        self._spent(source, requests)

    def hear(self, name: str) -> None:
        self._sources[name].signals += 1

    def signal(self, by: str) -> list[str]:
        """Source `by` found something new: a sign for its host's others, whose names these are."""
        others = [name for name in self._hosts[self._sources[by].host].names if name != by]
        for name in others:
            self.hear(name)
        return others

    def _spent(self, source: _Polled, requests: int) -> None:
        difference = requests - source.booked
        for group in (self._hosts[source.host], self._node):
            group.budget.correct(difference)
        source.cost += _SMOOTH * (max(1, requests) - source.cost)
        source.booked = source.cost

    def _due(self, source: _Polled) -> float:
        """When the source's next poll is due; it is planned already."""
        if source.due is not None or source.began is None:
            return source.due or 0.0
        left = source.threshold - source.changes.heard.mean * source.signals
        wanted = max(0.0, left) / source.changes.quiet.mean
        scale = min(self._hosts[source.host].scale, self._node.scale)
        longest = source.every * self._slowest / scale
        return source.began + min(max(wanted, source.every), longest)

    def _price(self, group: _Shared) -> None:
        """New price of a budget, and new thresholds of the sources that share it."""
        sources = [self._sources[name] for name in group.names]
        changes = self._changes(sources, group)
        group.price = price_of(changes, group.budget.rate)
        prices = np.array([max(self._hosts[it.host].price, self._node.price) for it in sources])
        limits = np.maximum(thresholds(changes, prices), 1 / self._polls_per_change)
        for source, threshold in zip(sources, limits.tolist(), strict=True):
            source.threshold = threshold

    def _changes(self, sources: list[_Polled], group: _Shared) -> ChangeRates:
        """The sources as arrays; the least rates fit into the budget."""
        cost = np.array([source.cost for source in sources])
        every = np.array([source.every for source in sources])
        rate = np.array([source.changes.rate for source in sources])
        least = 1 / (every * self._slowest)
        group.scale = min(1.0, group.budget.rate / float(np.sum(least * cost)))
        least *= group.scale
        return ChangeRates(
            quiet=np.array([source.changes.quiet.mean for source in sources]),
            heard=np.array([source.changes.heard.mean for source in sources]),
            signals=np.array([source.changes.signal_rate for source in sources]),
            weight=np.array([source.weight for source in sources]),
            cost=cost,
            least=least,
            most=np.maximum(np.minimum(1 / every, self._polls_per_change * rate), least),
        )

    def _learn_prior(self) -> None:
        """What unknown sources are supposed to do: as the known ones, in proportion to `every`.

        Empirical Bayes: mean and spread of the logarithm of the sources' paces (one step of
        expectation and maximisation); the prior's shape is the one whose logarithm spreads alike.
        """
        known = [source for source in self._sources.values() if source.changes.looks >= _KNOWN]
        if not known:
            return
        paces = [math.log(source.changes.rate * source.every) for source in known]
        middle = statistics.fmean(paces)
        spread = statistics.fmean(
            (pace - middle) ** 2 + 1 / source.changes.quiet.shape
            for pace, source in zip(paces, known, strict=True)
        )
        # Trigamma(shape) = spread, by the first two terms of its asymptotic series.
        shape = (1 + math.sqrt(1 + 2 * spread)) / (2 * spread)
        self._pace, self._strength = math.exp(middle), min(max(shape, _WEAKEST), _STRONGEST)
        for source in self._sources.values():
            source.changes.suppose(self._pace / source.every, self._strength)

    def report(self, name: str, now: float) -> dict[str, Any]:
        """What is believed of a source's changes, JSON-safe; KeyError for one not scheduled.

        `next_poll_s` is None while a poll is under way. Precision and recall are those of signs
        from other listings of the same host, None without any.
        """
        source = self._sources[name]
        changes = source.changes
        due = source.slot if source.slot is not None else self._due(source)
        heard = changes.signal_rate > 0
        waits = source.started is None
        return {
            "changes_per_hour": round(changes.rate * 3600, 4),
            "polls": changes.looks,
            "changed_polls": changes.changes,
            "next_poll_s": round(max(0.0, due - now), 3) if waits else None,
            "signal_precision": round(changes.precision, 3) if heard else None,
            "signal_recall": round(min(1.0, changes.recall), 3) if heard else None,
        }

    def state(self, name: str, now: float) -> dict[str, Any]:
        """What a restart needs of a source, JSON-safe; see `restore`."""
        source = self._sources[name]
        age = None if source.began is None else now - source.began
        return {"changes": source.changes.state(), "age": age, "cost": source.cost}

    def restore(self, name: str, state: Mapping[str, Any], now: float, away: float) -> None:
        """Go on from a state that was taken `away` seconds ago; a broken one changes nothing.

        The source is due at once all the same: what a crash lost is to be listed again.
        """
        source = self._sources[name]
        try:
            cost, age = float(state["cost"]), state["age"]
            began = None if age is None else now - max(0.0, float(age)) - max(0.0, away)
            if not (1 <= cost < math.inf) or (began is not None and not math.isfinite(began)):
                return
            source.changes.restore(state["changes"])
        except (KeyError, TypeError, ValueError):
            return
        source.cost, source.began = cost, began
        for group in (self._hosts[source.host], self._node):
            group.unplanned = math.inf
