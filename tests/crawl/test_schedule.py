"""The poll schedule as a pure machine."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.crawl.schedule import PollSchedule
from generated import examples

BURST = 5


def run(
    schedule: PollSchedule, names: list[str], end: float, changes: dict[str, float], seed: int = 0
) -> dict[str, list[float]]:
    """Poll times of an ideal crawler: it asks when it was told to, and each poll takes no time."""
    rng = np.random.default_rng(seed)
    polls: dict[str, list[float]] = {name: [] for name in names}
    due = dict.fromkeys(names, 0.0)
    while True:
        name = min(due, key=lambda one: due[one])
        now = due[name]
        if now > end:
            return polls
        wait = schedule.ask(name, now)
        if wait > 0:
            due[name] = now + max(wait, 1e-6)
            continue
        gone = now - polls[name][-1] if polls[name] else math.inf
        schedule.polled(name, changed=bool(rng.random() < -math.expm1(-changes[name] * gone)))
        polls[name].append(now)


def most_within(times: list[float], span: float) -> int:
    times = sorted(times)
    ends = np.searchsorted(times, np.array(times) + span, side="right")
    return int((ends - np.arange(len(times))).max()) if times else 0


@given(
    st.lists(st.tuples(st.integers(0, 2), st.floats(1, 100), st.floats(1e-4, 1)), min_size=1,
             max_size=12),
    st.floats(0.02, 2),
    st.floats(0.02, 2),
    st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=examples(25))
def test_budgets_hold_and_nobody_starves(
    sources: list[tuple[int, float, float]], host_rate: float, node_rate: float, seed: int
) -> None:
    schedule = PollSchedule(host_rate=host_rate, node_rate=node_rate)
    hosts = {f"s{i}": f"h{host}" for i, (host, _, _) in enumerate(sources)}
    every = {f"s{i}": every for i, (_, every, _) in enumerate(sources)}
    for name, host in hosts.items():
        schedule.add(name, host, every[name], 0.0)
    rates = {f"s{i}": rate for i, (_, _, rate) in enumerate(sources)}
    polls = run(schedule, list(hosts), 400.0, rates, seed)
    everything = [at for times in polls.values() for at in times]
    for span in (0.5, 10.0, 100.0):
        assert most_within(everything, span) <= node_rate * span + BURST + 1e-6
        for host in set(hosts.values()):
            of_host = [at for name in hosts if hosts[name] == host for at in polls[name]]
            assert most_within(of_host, span) <= host_rate * span + BURST + 1e-6
    # The longest wait: the least rates scaled into the tightest budget, and the queue before it.
    tightest = min(host_rate, node_rate)
    needed = sum(1 / (4 * one) for one in every.values())
    for name, times in polls.items():
        longest = 4 * every[name] * max(1.0, needed / tightest) + 2 * len(sources) / tightest
        gaps = np.diff([0.0, *times, 400.0])
        assert gaps.max() <= longest + 1e-3
        assert np.diff(times).min(initial=math.inf) >= every[name] - 1e-3


def test_a_busy_source_is_polled_often_and_a_quiet_one_seldom() -> None:
    schedule = PollSchedule(host_rate=10.0)
    for name in ("busy", "quiet"):
        schedule.add(name, name, 10.0, 0.0)
    polls = run(schedule, ["busy", "quiet"], 4000.0, {"busy": 1.0, "quiet": 1e-9})
    assert np.diff(polls["busy"])[-20:].mean() == pytest.approx(10.0, abs=0.1)
    assert np.diff(polls["quiet"])[-20:].mean() == pytest.approx(40.0, abs=0.1)


def test_scarce_polls_go_where_they_are_worth_most_and_weight_counts() -> None:
    schedule = PollSchedule(host_rate=0.05, slowest=100.0, polls_per_change=1e6)
    for name, weight in (("slow", 1.0), ("wild", 1.0), ("dear", 30.0)):
        schedule.add(name, "h", 10.0, 0.0, weight=weight)
    rates = {"slow": 0.003, "wild": 1.0, "dear": 0.02}
    n = {name: len(times) for name, times in run(schedule, list(rates), 10_000.0, rates).items()}
    assert n["dear"] > 10 * max(n["slow"], n["wild"])
    assert min(n["slow"], n["wild"]) >= 0.9 * 10_000 / (10.0 * 100)
    assert sum(n.values()) > 0.9 * 0.05 * 10_000


def test_a_signal_that_can_be_trusted_brings_a_poll_forward() -> None:
    schedule = PollSchedule(host_rate=1.0, slowest=100.0)
    schedule.add("listens", "h", 1.0, 0.0)
    schedule.add("tells", "h", 1.0, 0.0)
    now = 0.0

    def poll(name: str, *, changed: bool) -> None:
        nonlocal now
        while (wait := schedule.ask(name, now)) > 0:
            now += wait
        schedule.polled(name, changed=changed)

    for i in range(60):
        now += 10.0
        if i % 2:
            assert schedule.signal("tells") == ["listens"]
        poll("listens", changed=i % 2 == 1)
    now += 1.0
    schedule.ask("listens", now)
    before = schedule.report("listens", now)
    schedule.signal("tells")
    after = schedule.report("listens", now)
    assert before["next_poll_s"] > 2 * after["next_poll_s"]
    assert after["signal_precision"] > 0.3


def test_failures_double_the_delay_and_success_forgets_them() -> None:
    schedule = PollSchedule(host_rate=1e6)
    schedule.add("s", "h", 1.0, 0.0)
    now, gaps = 0.0, []
    for _ in range(7):
        began = now
        while (wait := schedule.ask("s", now)) > 0:
            now += wait
        gaps.append(round(now - began))
        schedule.failed("s", now)
    assert gaps == [0, 1, 2, 4, 8, 16, 16]
    now += schedule.ask("s", now)
    assert schedule.ask("s", now) == 0
    schedule.failed("s", now, retry_after=100.0)
    assert schedule.ask("s", now) == pytest.approx(100.0)
    assert schedule.ask("s", now + 100) == 0
    schedule.polled("s", changed=True)
    now += 101
    while (wait := schedule.ask("s", now)) > 0:
        now += wait
    schedule.failed("s", now)
    assert schedule.ask("s", now) == pytest.approx(1.0)


def test_what_was_learnt_survives_a_restart() -> None:
    first = PollSchedule(host_rate=10.0)
    first.add("s", "h", 10.0, 0.0)
    run(first, ["s"], 5000.0, {"s": 0.004})
    learnt = first.report("s", 5000.0)["changes_per_hour"]
    state = json.loads(json.dumps(first.state("s", 5000.0)))
    second = PollSchedule(host_rate=10.0)
    second.add("s", "h", 10.0, 70.0)
    second.restore("s", state, 70.0, away=30.0)
    assert second.report("s", 70.0)["changes_per_hour"] == pytest.approx(learnt, rel=0.05)
    assert second.ask("s", 70.0) == 0
    second.polled("s", changed=False)
    assert second.report("s", 70.0)["polls"] == first.report("s", 5000.0)["polls"] + 1
    assert second.ask("s", 71.0) > 9.0


@pytest.mark.parametrize(
    "state", [{}, {"cost": 1, "age": 1}, {"cost": "x", "age": None, "changes": {}},
              {"cost": math.inf, "age": 1, "changes": {}}]
)  # fmt: skip
def test_a_broken_state_changes_nothing(state: dict[str, object]) -> None:
    schedule = PollSchedule(host_rate=1.0)
    schedule.add("s", "h", 10.0, 0.0)
    before = schedule.report("s", 0.0)
    schedule.restore("s", state, 0.0, 1.0)
    assert schedule.report("s", 0.0) == before


def test_a_source_that_leaves_gives_its_share_back() -> None:
    schedule = PollSchedule(host_rate=0.1)
    for name in ("a", "b"):
        schedule.add(name, "h", 10.0, 0.0)
    with pytest.raises(ValueError, match="already"):
        schedule.add("a", "h", 10.0, 0.0)
    schedule.remove("b")
    polls = run(schedule, ["a"], 500.0, {"a": 1.0})["a"]
    assert np.diff(polls)[5:].mean() == pytest.approx(10.0, abs=0.5)
