"""How alike the nodes' token rates are: leases against assigning sources in turn. A simulation.

    python -m benchmarks allocation

Sources' rates are log-normal (a few write most), follow the hours of a day each in its own phase,
and drift; a source that changes nodes is read by nobody for half a minute. The leases are the real
state machine (`embedding/crawl/lease.py`) on simulated time, so load on the machine changes
nothing.
"""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from benchmarks.kept import RESULTS
from embedding.crawl.lease import (
    Heartbeat,
    Incarnation,
    LeaseConfig,
    LeaseView,
    Pool,
    imbalance,
    node_loads,
)
from yeoron_bench.results import facts, keep


@dataclass(frozen=True)
class Setting:
    """sources of log-normal rates with `spread` (sigma); hours simulated; beats each `beat_s`."""

    sources: int = 60
    spread: float = 1.2
    hours: float = 24.0
    beat_s: float = 15.0
    seed: int = 1


class Rates:
    """Tokens a second by source at a moment."""

    def __init__(self, setting: Setting) -> None:
        chance = Random(setting.seed)
        self._all = {
            f"s{n:03d}": (
                chance.lognormvariate(5.0, setting.spread),
                chance.uniform(0, 2 * math.pi),
                chance.uniform(-1.0, 1.0),
            )
            for n in range(setting.sources)
        }

    def at(self, seconds: float) -> dict[str, float]:
        day = seconds / 86_400.0
        return {
            name: base * (1 + 0.6 * math.sin(2 * math.pi * day + phase)) * math.exp(drift * day)
            for name, (base, phase, drift) in self._all.items()
        }


def simulate(nodes: int, setting: Setting) -> dict[str, float]:
    """Mean and 95th percentile of max/mean after the first hour, and the sources that moved."""
    rates, chance = Rates(setting), Random(setting.seed)
    names = sorted(rates.at(0.0))
    incarnations = [Incarnation(f"n{n:02d}", f"m{n}") for n in range(nodes)]
    peers = tuple(incarnation.node for incarnation in incarnations)
    pool = Pool(LeaseConfig(seconds=60))
    pool.publish(dict.fromkeys(names, 1.0))
    seen: dict[Incarnation, LeaseView] = {}
    ours, turns = [], []
    assigned = {name: peers[n % nodes] for n, name in enumerate(names)}
    for step in range(int(setting.hours * 3600 / setting.beat_s)):
        now = step * setting.beat_s
        present = rates.at(now)
        for incarnation in incarnations:
            heartbeat = Heartbeat(first=True, peers=peers)
            if incarnation in seen:
                before = seen[incarnation]
                counted = {
                    n: int(present[n] * setting.beat_s * chance.uniform(0.5, 1.5))
                    for n in before.reading
                }
                heartbeat = Heartbeat(
                    holds=before.held,
                    tokens=counted,
                    seconds=setting.beat_s,
                    released=before.leaving,
                )
            seen[incarnation] = pool.beat(incarnation, heartbeat, now)
        if now >= 3600:
            held = {
                name: incarnation.node for incarnation, one in seen.items() for name in one.reading
            }
            ours.append(imbalance(node_loads(present, held, peers)))
            turns.append(imbalance(node_loads(present, assigned, peers)))
    return {
        "nodes": nodes,
        "leases_mean": round(mean(ours), 3),
        "leases_p95": round(sorted(ours)[int(0.95 * len(ours))], 3),
        "turns_mean": round(mean(turns), 3),
        "turns_p95": round(sorted(turns)[int(0.95 * len(turns))], 3),
        "moves_an_hour": round(pool.moves / setting.hours, 2),
    }


def bench_allocation(setting: Setting) -> Path:
    """Simulate some numbers of nodes and write a dated result."""
    rows: list[dict[str, Any]] = []
    for nodes in (2, 4, 8):
        rows.append(simulate(nodes, setting))
        print(rows[-1])
    result = {
        **facts("allocation", ["pydantic"]),
        "setting": asdict(setting),
        "rows": rows,
    }
    return keep(result, results=RESULTS)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sources", type=int, default=60)
    parser.add_argument("--hours", type=float, default=24.0)
    given = parser.parse_args(arguments)
    print(bench_allocation(Setting(sources=given.sources, hours=given.hours)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
