"""Freshness of the poll scheduler against known rates and against uniform polling, simulated.

    python -m benchmarks freshness --seeds 5

Sources change as Poisson processes; the scheduler of the crawler (`crawl.schedule`) polls them
under a budget and learns only whether a source has changed since its last poll. Freshness is the
share of time and sources without an unseen change. Times are in units of the mean time between
changes of a source, budgets in polls a source and unit.

`oracle` knows all rates and polls evenly spaced at the optimum for that (J. Cho and H.
Garcia-Molina 2003, solved with the Lambert W function); of rates that are not constant it knows
those of each moment (drift) or each source's mean (rhythm). All policies meet the same changes.
`uniform` polls all sources equally often. `learning` is the first half of a run, with
nothing known at its start; `learnt` the second half.
In `weights` sources differ in what their freshness counts (log-normal, sigma 1.5).
"""

from __future__ import annotations

import heapq
import math
import sys
import time
from argparse import ArgumentParser
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import lambertw
from scipy.stats import t as student

from benchmarks.kept import RESULTS
from embedding.crawl.schedule import PollSchedule
from yeoron_bench.results import facts, keep

Floats = npt.NDArray[np.float64]
_SECONDS = 3600.0
"""Seconds of a unit of time in the scheduler's eyes."""
_GRID = 2000


@dataclass(frozen=True)
class Setting:
    sources: int = 60
    seeds: int = 5
    horizon: float = 100.0
    budgets: tuple[float, ...] = (0.3, 1.0, 3.0)


@dataclass(frozen=True)
class World:
    """One realisation: times of changes and of signals, by source, and the rates behind them."""

    rates: Floats
    changes: list[Floats]
    signals: list[Floats]
    weights: Floats
    level: Floats | None = None
    """What the oracle knows of rates that move, relative to `rates`: [n, _GRID] over the run."""


def _rates(name: str, rng: np.random.Generator, n: int) -> Floats:
    draw: dict[str, Callable[[], Floats]] = {
        "lognormal": lambda: rng.lognormal(0, 1.5, n),
        "pareto": lambda: rng.pareto(1.2, n) + 0.05,
        "two kinds": lambda: np.where(rng.random(n) < 0.2, 10.0, 0.3) * rng.uniform(0.7, 1.3, n),
        "uniform": lambda: rng.uniform(0.05, 2.0, n),
        "alike": lambda: np.ones(n),
    }
    drawn = draw[name]()
    return np.asarray(drawn / drawn.mean(), dtype=np.float64)


def _drift(phases: Floats, times: Floats, horizon: float) -> Floats:
    """Each source's rate goes from 3 × to 1/3 × its mean and back, once over the run."""
    swing = np.exp(math.log(3.0) * np.sin(2 * np.pi * (times[None] / horizon + phases)))
    return np.asarray(swing / swing.mean(axis=1, keepdims=True), dtype=np.float64)


def _diurnal(phases: Floats, times: Floats, _horizon: float) -> Floats:
    """Days of 24 units, in which nights have a tenth of the rate of days; all in one zone."""
    hour = (times[None] + 0 * phases) % 24
    level = np.where((hour >= 8) & (hour < 24), 1.0, 0.1)
    return np.asarray(level / level.mean(axis=1, keepdims=True), dtype=np.float64)


def _world(case: str, setting: Setting, seed: int) -> World:
    rng = np.random.default_rng([seed, sum(case.encode())])
    shape = case.split(",")[0]
    kind = (
        shape if shape in ("lognormal", "pareto", "two kinds", "uniform", "alike") else "lognormal"
    )
    rates = _rates(kind, rng, setting.sources)
    profile = {"drift": _drift, "rhythm": _diurnal}.get(case)
    times = np.linspace(0, setting.horizon, _GRID)
    phases = rng.random((setting.sources, 1))
    level = (
        np.ones((setting.sources, _GRID))
        if profile is None
        else profile(phases, times, setting.horizon)
    )
    step = times[1]
    passed = np.concatenate(
        [np.zeros((setting.sources, 1)), np.cumsum(level[:, :-1] * step, axis=1)], axis=1
    )
    changes = []
    for i, rate in enumerate(rates):
        n = rng.poisson(rate * passed[i, -1])
        changes.append(np.interp(np.sort(rng.uniform(0, passed[i, -1], n)), passed[i], times))
    precision, recall = {"signals, good": (0.9, 0.8), "signals, noise": (0.1, 0.3)}.get(
        case, (1.0, 0.0)
    )
    signals = []
    for rate, at in zip(rates, changes, strict=True):
        true = at[rng.random(len(at)) < recall]
        false_rate = rate * recall * (1 / precision - 1)
        false = rng.uniform(0, setting.horizon, rng.poisson(false_rate * setting.horizon))
        signals.append(np.sort(np.concatenate([true, false])))
    weights = rng.lognormal(0, 1.5, setting.sources) if case == "weights" else np.ones_like(rates)
    weights /= weights.mean()
    return World(rates, changes, signals, weights, level if case == "drift" else None)


def _oracle_rates(rates: Floats, weights: Floats, budget: float) -> Floats:
    """Optimal evenly spaced polls: equal w (1 - e^-x (1 + x)) / rate, x changes between polls."""
    relative = rates / weights

    def polls(price: float) -> Floats:
        gain = np.minimum(price * relative, 1 - 1e-12)
        x = -1 - lambertw(-(1 - gain) / math.e, -1).real
        return np.where(price * relative < 1, rates / np.maximum(x, 1e-12), 0.0)

    low, high = math.log(1e-12 / relative.max()), math.log(1.01 / relative.min())
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if polls(math.exp(middle)).sum() > budget else (low, middle)
    return polls(math.exp(high))


def _fresh(changes: Floats, polls: Sequence[float], begin: float, end: float) -> float:
    """Share of [begin, end] in which one source has no unseen change; at 0 all are fresh."""
    starts = np.array([0.0, *polls])
    stops = np.append(starts[1:], math.inf)
    following = np.append(changes, math.inf)[np.searchsorted(changes, starts, side="right")]
    low, high = np.maximum(starts, begin), np.minimum(np.minimum(stops, following), end)
    return float(np.sum(np.maximum(0.0, high - low))) / (end - begin)


def _scores(world: World, polls: list[list[float]], horizon: float) -> dict[str, float]:
    half = horizon / 2

    def mean(begin: float, end: float) -> float:
        pairs = zip(world.changes, polls, strict=True)
        shares = [_fresh(changes, at, begin, end) for changes, at in pairs]
        return float(np.average(shares, weights=world.weights))

    return {"learning": mean(0, half), "learnt": mean(half, horizon), "whole": mean(0, horizon)}


def _scheduled(world: World, budget: float, setting: Setting) -> list[list[float]]:
    """Poll times of the real scheduler under a budget of all sources together."""
    n = len(world.rates)
    rate = budget * n / _SECONDS
    schedule = PollSchedule(host_rate=rate, slowest=1000.0, polls_per_change=1e6)
    names = [str(i) for i in range(n)]
    every = 0.02 * _SECONDS
    for name, weight in zip(names, world.weights, strict=True):
        schedule.add(name, "host", every, 0.0, weight=float(weight))
    polls: list[list[float]] = [[] for _ in names]
    looks = [0] * n
    """Only the newest look of a source counts: a signal puts another one in its place."""
    waiting = [(0.0, 0, i) for i in range(n)]
    waiting += [(at, -1, i) for i, times in enumerate(world.signals) for at in times]
    heapq.heapify(waiting)
    while waiting and waiting[0][0] < setting.horizon:
        now, look, i = heapq.heappop(waiting)
        if look == -1:
            schedule.hear(names[i])
            looks[i] += 1
        elif look != looks[i]:
            continue
        wait = schedule.ask(names[i], now * _SECONDS) / _SECONDS
        if wait == 0:
            last = polls[i][-1] if polls[i] else 0.0
            changed = bisect_right(world.changes[i], now) > bisect_right(world.changes[i], last)
            schedule.polled(names[i], changed=changed)
            polls[i].append(now)
        # What is learnt of others may bring a poll forward: a source looks again now and then.
        heapq.heappush(waiting, (now + max(min(wait, 1.0), 1e-9), looks[i], i))
    return polls


def _evenly(
    rates_at: Callable[[float], Floats], weights: Floats, budget: float, setting: Setting
) -> list[list[float]]:
    """Poll times of a policy that knows each moment's rates: the optimum, planned each unit."""
    n = setting.sources
    polls: list[list[float]] = [[] for _ in range(n)]
    debt = np.random.default_rng(0).random(n)
    for unit in range(math.ceil(setting.horizon)):
        wanted = _oracle_rates(rates_at(unit + 0.5), weights, budget * n)
        for i in range(n):
            # Polls fall where the source's cumulated rate of polls passes a whole number.
            first, last = debt[i], debt[i] + wanted[i]
            for whole in range(math.floor(first) + 1, math.floor(last) + 1):
                polls[i].append(unit + (whole - first) / wanted[i])
            debt[i] = last
    return polls


def _known(world: World, budget: float, setting: Setting) -> list[list[float]]:
    """Poll times of the oracle."""
    if world.level is None:
        return _evenly(lambda _: world.rates, world.weights, budget, setting)
    table, step = world.rates[:, None] * world.level, setting.horizon / (_GRID - 1)

    def rates_at(unit: float) -> Floats:
        return np.asarray(table[:, min(round(unit / step), _GRID - 1)])

    return _evenly(rates_at, world.weights, budget, setting)


def _uniform(budget: float, setting: Setting) -> list[list[float]]:
    n = setting.sources
    return [
        [float(at) for at in np.arange((i + 1) / n / budget, setting.horizon, 1 / budget)]
        for i in range(n)
    ]


def _run(case: str, budget: float, setting: Setting, seed: int) -> dict[str, Any]:
    world = _world(case, setting, seed)
    began = time.process_time()
    polls = _scheduled(world, budget, setting)
    took = time.process_time() - began
    made = sum(map(len, polls))
    ours = _scores(world, polls, setting.horizon)
    uniform = _scores(world, _uniform(budget, setting), setting.horizon)["learnt"]
    known = _scores(world, _known(world, budget, setting), setting.horizon)["learnt"]
    return {
        "oracle": known,
        "uniform": uniform,
        **ours,
        "of_oracle": ours["learnt"] / known,
        "of_oracle_learning": ours["learning"] / known,
        "over_uniform": ours["learnt"] / uniform,
        "budget_used": made / (budget * setting.sources * setting.horizon),
        "microseconds_per_poll": 1e6 * took / max(1, made),
    }


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval over seeds (Student's t)."""
    array = np.array(values)
    width = student.ppf(0.975, len(array) - 1) * array.std(ddof=1) / math.sqrt(len(array))
    return float(array.mean()), float(width)


CASES = (
    "lognormal",
    "pareto",
    "two kinds",
    "uniform",
    "alike",
    "weights",
    "drift",
    "rhythm",
    "signals, good",
    "signals, noise",
)


def bench_freshness(setting: Setting, *, results: Path = RESULTS) -> dict[str, Any]:
    """All cases at all budgets, and a dated result."""
    rows = []
    for case in CASES:
        for budget in setting.budgets:
            runs = [_run(case, budget, setting, seed) for seed in range(setting.seeds)]
            row = {name: _interval([run[name] for run in runs]) for name in runs[0]}
            rows.append({"case": case, "budget": budget, **row})
            print(_line(rows[-1]), flush=True)
    report = {
        **facts("freshness", ("numpy", "scipy")),
        "setting": asdict(setting),
        "rows": rows,
    }
    lines = [_HEAD, *map(_line, rows)]
    keep(report, "\n".join(lines) + "\n", results=results)
    return report


_HEAD = (
    "Mean over seeds ± 95 % interval; freshness in %.\n\n"
    "| rates | budget | oracle | uniform | learning | learnt | learnt / oracle | learnt / uniform |"
    "\n|---|---|---|---|---|---|---|---|"
)


def _line(row: dict[str, Any]) -> str:
    def percent(name: str) -> str:
        return f"{100 * row[name][0]:.1f} ± {100 * row[name][1]:.1f}"

    cells = [percent(name) for name in ("oracle", "uniform", "learning", "learnt", "of_oracle")]
    gain = f"{row['over_uniform'][0]:.2f} ± {row['over_uniform'][1]:.2f}"
    return "| " + " | ".join([row["case"], f"{row['budget']:g}", *cells, gain]) + " |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=Setting.seeds)
    parser.add_argument("--sources", type=int, default=Setting.sources)
    parser.add_argument("--horizon", type=float, default=Setting.horizon)
    parser.add_argument("--budgets", type=float, nargs="+", default=Setting.budgets)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    setting = Setting(given.sources, given.seeds, given.horizon, tuple(given.budgets))
    bench_freshness(setting, results=given.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
