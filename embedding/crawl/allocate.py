"""Which node reads which source: even token rates, and few sources that change hands. Pure.

Synchronous training waits for the slowest node, so it pays when nodes read alike many tokens a
second. Sources without a node go to the node with the least load, largest first (Graham 1969,
"Bounds on multiprocessing timing anomalies"); after that single sources are moved, or two are
swapped, only while the loads differ by more than a tolerance: between two looks rates change all
the time, and each move stops a source for a while.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

_WORTH = 0.05
"""A change that takes less than this share off the largest load is not worth stopping a source."""
_SWAP = 0.8
"""A swap must leave less than this share of the gap that the best single move leaves."""


@dataclass(frozen=True)
class _Change:
    """`out` goes from the fullest node to `to`, and `back` (if any) the other way."""

    out: str
    to: str
    back: str | None
    gap: float

    @property
    def moves(self) -> int:
        return 1 if self.back is None else 2


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
    loads = {node: sum(rates[source] for source in held) for node, held in shares.items()}
    least = [(loads[node], len(held), node) for node, held in shares.items()]
    heapify(least)
    for source in sorted(orphans, key=lambda name: (-rates[name], name)):
        load, _, node = least[0]
        shares[node].append(source)
        loads[node] = load + rates[source]
        heapreplace(least, (loads[node], len(shares[node]), node))
    _even_out(rates, shares, loads, tolerance, moves)
    return {source: node for node, held in shares.items() for source in held}


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
    """Take load off the fullest node, change by change."""
    while moves > 0 and imbalance(loads) > 1.0 + tolerance:
        fullest = max(shares, key=lambda node: (loads[node], node))
        found = [each for each in _changes(rates, shares, loads, fullest) if each.moves <= moves]
        best = _best(found)
        if best is None:
            return
        step = rates[best.out] - (0.0 if best.back is None else rates[best.back])
        left = max(loads[fullest] - step, loads[best.to] + step)
        if left > loads[fullest] * (1.0 - _WORTH):
            return
        shares[fullest].remove(best.out)
        shares[best.to].append(best.out)
        if best.back is not None:
            shares[best.to].remove(best.back)
            shares[fullest].append(best.back)
        loads[fullest] -= step
        loads[best.to] += step
        moves -= best.moves


def _best(found: Sequence[_Change]) -> _Change | None:
    """The change that leaves the two nodes most alike; a swap only where it is clearly better."""
    order = {
        size: min(
            (each for each in found if each.moves == size),
            key=lambda each: (each.gap, each.out, each.to, each.back or ""),
            default=None,
        )
        for size in (1, 2)
    }
    single, swap = order[1], order[2]
    if single is None or swap is None:
        return single or swap
    return swap if swap.gap < _SWAP * single.gap else single


def _changes(
    rates: Mapping[str, float],
    shares: Mapping[str, list[str]],
    loads: Mapping[str, float],
    fullest: str,
) -> Iterator[_Change]:
    """The single moves from the fullest node, and for each the best swap with every other node."""
    for node, held in shares.items():
        difference = loads[fullest] - loads[node]
        if node == fullest or difference <= 0:
            continue
        ordered = sorted(held, key=lambda name: (rates[name], name))
        sizes = [rates[name] for name in ordered]
        for source in shares[fullest]:
            rate = rates[source]
            if 0 < rate < difference:
                yield _Change(source, node, None, abs(difference - 2 * rate))
            at = bisect_left(sizes, rate - difference / 2)
            for other in ordered[max(0, at - 1) : at + 1]:
                step = rate - rates[other]
                if 0 < step < difference:
                    yield _Change(source, node, other, abs(difference - 2 * step))
