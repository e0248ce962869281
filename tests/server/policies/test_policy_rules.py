"""What sets backup, averaging and auto apart, and what a change of policy does to the clocks."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constants import with_constants
from embedding.exchange.codec import from_message, to_message
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import (
    Ack,
    Pace,
    Push,
)
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Table
from embedding.server.config import SyncConfig
from embedding.server.consistency import ConsistencyMachine
from embedding.server.policies.base import Apply, Drop, PendingPush
from yeoron_lab.averaging import averaged


def machine_of(*nodes: str, **sync: Any) -> ConsistencyMachine:
    """Nodes that have all read at clock 0."""
    machine = ConsistencyMachine(with_constants(SyncConfig, **sync))
    for node in nodes:
        machine.join(node, now=0.0)
    for node in nodes:
        assert machine.pull(node, 0, now=0.0)[:2] == (0, [])
    return machine


def tick(machine: ConsistencyMachine, node: str, clock: int, now: float = 0.0) -> list[Any]:
    """Push what was read at `clock`, and read again."""
    found = machine.push(PendingPush(node, clock, clock + 1), now=now)
    _, _, more = machine.pull(node, machine.board.members[node].clock, now=now)
    return [*found, *more]


# -- backup -------------------------------------------------------------------------------------


def test_the_first_of_a_clock_are_applied_together_and_the_last_is_dropped():
    machine = machine_of("a", "b", "c", policy="backup", backups=1)
    assert machine.push(PendingPush("c", 0, 1), now=0) == []
    assert machine.push(PendingPush("a", 0, 1), now=0) == [
        Apply((PendingPush("a", 0, 1), PendingPush("c", 0, 1)))
    ]
    assert machine.push(PendingPush("b", 0, 1), now=0) == [Drop((PendingPush("b", 0, 1),))]


def test_a_late_node_goes_on_at_the_clock_that_is_open():
    machine = machine_of("a", "b", "c", policy="backup", backups=1)
    for clock in range(5):
        tick(machine, "a", clock)
        tick(machine, "b", clock)
    assert machine.push(PendingPush("c", 0, 1), now=0) == [Drop((PendingPush("c", 0, 1),))]
    assert machine.pull("c", 1, now=0)[:2] == (5, [])


def test_a_reader_waits_until_enough_have_pushed_and_no_longer():
    machine = machine_of("a", "b", "c", policy="backup", backups=1)
    machine.push(PendingPush("a", 0, 1), now=0)
    assert machine.pull("a", 1, now=0)[1] == ["b", "c"]
    machine.push(PendingPush("c", 0, 1), now=0)
    assert machine.pull("a", 1, now=0)[1] == []


def test_a_lone_node_drops_nothing_however_many_may_be_late():
    machine = machine_of("a", policy="backup", backups=5)
    for clock in range(4):
        assert tick(machine, "a", clock) == [Apply((PendingPush("a", clock, clock + 1),))]


def test_when_a_node_leaves_fewer_close_a_clock():
    machine = machine_of("a", "b", "c", policy="backup", backups=1)
    machine.push(PendingPush("a", 0, 1), now=0)
    assert machine.leave("c") == [Apply((PendingPush("a", 0, 1),))]


def test_what_is_sent_again_after_a_restart_is_applied_however_old():
    machine = ConsistencyMachine(SyncConfig(policy="backup"))
    machine.join("fast", now=0, clock=50)
    machine.pull("fast", 50, now=0)
    machine.join("slow", now=0, clock=12)
    assert machine.board.closed == 50
    assert machine.push(PendingPush("slow", 10, 1), now=0) == [Apply((PendingPush("slow", 10, 1),))]
    assert machine.push(PendingPush("slow", 12, 2), now=0) == [Drop((PendingPush("slow", 12, 2),))]


# -- what nodes are told ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sync", "pace"),
    [
        ({"policy": "bsp"}, Pace(pooled=6)),
        ({"policy": "bsp", "combine": "mean"}, Pace(pooled=1)),
        ({"policy": "backup", "backups": 1}, Pace(pooled=4)),
        ({"policy": "backup", "backups": 9}, Pace(pooled=1)),
        ({"policy": "ssp"}, Pace(pooled=6)),
        ({"policy": "asp", "n_push": 2, "n_fetch": 5}, Pace(6, 2, 5)),
        ({"policy": "averaging", "tau": 7}, Pace(6, 7, 7)),
        ({"policy": "averaging", "tau": 7, "combine": "mean"}, Pace(1, 7, 7)),
        ({"policy": "easgd", "tau": 3, "elasticity": 0.5}, Pace(6, 3, 3, 0.5)),
        ({"policy": "auto"}, Pace(pooled=6)),
    ],
)
def test_nodes_are_told_how_many_deltas_meet_and_when_to_pull_and_push(sync, pace):
    machine = machine_of("a", "b", "c", "d", **sync)
    assert machine.policy.pace(machine.board) == pace
    assert from_message(Ack, to_message(Ack(1, 0, 0, pace=pace))).pace == pace


@pytest.mark.parametrize("policy", ["asp", "ssp", "bsp", "easgd", "averaging"])
@pytest.mark.parametrize("nodes", ["a", "ab"])
def test_one_node_pushes_all_and_two_share_by_two(policy, nodes):
    machine = machine_of(*nodes, policy=policy)
    assert machine.policy.pace(machine.board).pooled == len(nodes)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        [0, 0, 1, 0.0, 0, 0],
        [True, 1, 1, 0.0, 0, 0],
        [0, 1, 1, float("nan"), 0, 0],
        [0, 1, 1, "1", 0, 0],
    ],
)
def test_a_malformed_pace_is_refused(wrong):
    message = to_message(Ack(1, 0, 0, pace=Pace(pooled=2)))
    with pytest.raises(RefusedError, match="pace"):
        from_message(Ack, replace(message, header={**message.header, "pace": wrong}))


@pytest.mark.parametrize(("combine", "average"), [("sum", False), ("mean", True)])
def test_averaging_adds_up_shares_or_takes_the_mean(combine, average):
    machine = machine_of("a", "b", policy="averaging", combine=combine)
    assert machine.push(PendingPush("b", 0, 1), now=0) == []
    both = (PendingPush("a", 0, 1), PendingPush("b", 0, 1))
    assert machine.push(PendingPush("a", 0, 1), now=0) == [
        Apply(both, combine=averaged if average else None)
    ]


def test_a_mean_is_taken_over_those_that_touched_a_row():
    def push(node: str, table: Table, ids: list[int], value: float) -> Push:
        values = np.full((len(ids), 2), value, dtype=np.float32)
        return Push(node, 1, 0, (RowDelta(table, np.array(ids, dtype=np.int64), values),))

    pushes = [
        push("a", Table.IN, [1, 5], 2.0),
        push("b", Table.IN, [5, 9], 4.0),
        push("c", Table.OUT, [5], 1.0),
    ]
    moved = {}
    for each in averaged(pushes):
        for delta in each.deltas:
            for row, values in zip(delta.ids.tolist(), delta.values.tolist(), strict=True):
                moved[delta.table, row] = moved.get((delta.table, row), 0.0) + values[0]
    assert moved == {
        (Table.IN, 1): 2.0,
        (Table.IN, 5): 3.0,
        (Table.IN, 9): 4.0,
        (Table.OUT, 5): 1.0,
    }


# -- a change of policy -------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["bsp", "averaging", "backup", "ssp"])
def test_nobody_waits_until_those_behind_have_caught_up_clock_by_clock(policy):
    machine = machine_of("a", "b", "c", policy="asp")
    for clock in range(30):
        tick(machine, "a", clock)
        tick(machine, "b", clock)
    assert machine.board.members["c"].clock == 0
    machine.configure(SyncConfig(policy=policy, staleness=0, backups=0))
    assert machine.pull("a", 30, now=0)[1] == ["c"]
    # One block of the slow node's, read before the change, and it is level with the others.
    assert machine.push(PendingPush("c", 0, 1), now=0) == [Apply((PendingPush("c", 0, 1),))]
    assert machine.pull("c", 1, now=0)[:2] == (30, [])
    assert machine.pull("a", 30, now=0)[1] == []


def test_each_change_of_the_ruling_policy_is_kept_with_its_reason():
    machine = machine_of("a", policy="bsp")
    machine.configure(SyncConfig(policy="bsp", combine="mean"))
    machine.configure(SyncConfig(policy="asp"), now=3.0)
    (switch,) = machine.switches
    assert (switch.at, switch.before, switch.after) == (3.0, "bsp", "asp")
    assert "asked" in switch.reason


# -- auto ---------------------------------------------------------------------------------------


def auto(*nodes: str, **more: Any) -> ConsistencyMachine:
    settings = {"auto_alike": 0.2, "auto_apart": 0.4, "auto_stay_s": 10.0}
    machine = machine_of(*nodes, **{"policy": "auto", **settings, **more})
    machine.reconsider(now=0.0)
    return machine


def hear(machine: ConsistencyMachine, now: float, *rates: float) -> list[Any]:
    """Every node says how many tokens it learnt in a second."""
    found = []
    for node, rate in zip("abcd", rates, strict=False):
        found += machine.measured(node, {f"source of {node}": int(rate)}, 1.0, now=now)
    return found


def test_alike_rates_keep_the_barrier_and_unlike_ones_lift_it():
    machine = auto("a", "b", "c", "d")
    for now in range(20):
        hear(machine, float(now), 100, 110, 95, 105)
    assert machine.policy.name == "bsp"
    for now in range(20, 80):
        hear(machine, float(now), 100, 110, 95, 10)
    assert machine.policy.name == "asp"
    assert "above 0.4" in machine.switches[-1].reason
    assert [switch.after for switch in machine.switches] == ["ssp", "asp"]


def test_rates_that_differ_a_little_take_ssp_and_it_takes_more_to_come_back():
    machine = auto("a", "b", auto_stay_s=0.0)
    hear(machine, 1.0, 100, 60)  # 0.25
    assert machine.policy.name == "ssp"
    for now, slower, ruling in ((100.0, 70, "ssp"), (200.0, 90, "bsp")):  # 0.18, 0.05
        for _ in range(3):
            hear(machine, now, 100, slower)
        assert machine.policy.name == ruling
    assert "well below 0.2" in machine.switches[-1].reason
    assert machine.switched == len(machine.switches) >= 2


def test_none_rules_for_less_than_its_time():
    machine = auto("a", "b", auto_stay_s=10.0)
    hear(machine, 5.0, 100, 10)
    assert machine.policy.name == "bsp"
    hear(machine, 10.0, 100, 10)
    assert machine.policy.name == "asp"
    hear(machine, 15.0, 100, 100)
    assert machine.policy.name == "asp"


def test_each_switch_is_logged_with_its_reason(caplog):
    caplog.set_level(logging.INFO, logger="embedding.server.consistency")
    machine = auto("a", "b", auto_stay_s=0.0)
    hear(machine, 1.0, 100, 10)
    hear(machine, 2.0, 100, 10)
    (record,) = caplog.records
    assert record.getMessage() == (
        "policy bsp → asp: the sources' token rates have a coefficient of variation of 0.82, "
        "above 0.4"
    )


@given(
    st.lists(
        st.tuples(st.floats(0.0, 40.0), st.sampled_from("ab"), st.integers(1, 100)), max_size=60
    )
)
def test_auto_keeps_its_thresholds_its_margin_and_its_time_whatever_it_hears(heard):
    """A switch up comes beyond its threshold, one down a margin below it, none before its time."""
    machine = auto("a", "b", auto_stay_s=10.0)
    ladder, began, now = ("bsp", "ssp", "asp"), 0.0, 0.0
    for seconds, node, rate in heard:
        before, now = machine.policy.name, now + seconds
        machine.measured(node, {f"source of {node}": rate}, 1.0, now=now)
        after = machine.policy.name
        if after == before:
            continue
        variation = machine.board.speeds.variation(["a", "b"])
        switch = machine.switches[-1]
        assert (switch.before, switch.after, switch.at) == (before, after, now)
        assert now - began >= 10.0
        assert f"{variation:.2f}" in switch.reason
        began = now
        up, down = ladder.index(after), ladder.index(before)
        if up > down:
            assert variation > (0.2, 0.4)[up - 1]
            assert "above" in switch.reason
        else:
            assert variation < 0.75 * (0.2, 0.4)[up]
            assert "well below" in switch.reason
    assert machine.switched <= now / 10.0


def test_rates_between_the_two_thresholds_of_a_way_never_switch():
    """Between a margin below a threshold and the threshold it stays as it is: no flutter."""
    for first, ruling in ((100, "bsp"), (60, "ssp")):
        machine = auto("a", "b", auto_stay_s=0.0)
        hear(machine, 1.0, 100, first)
        assert machine.policy.name == ruling
        for now in range(100, 4000, 100):
            # One old figure is kept: so long that only this one counts, 0.16 and 0.19 in turn.
            hear(machine, float(now), 100, 72 if now % 200 else 68)
            hear(machine, float(now), 100, 72 if now % 200 else 68)
        assert machine.policy.name == ruling
        assert machine.switched == (ruling == "ssp")


def test_one_source_or_a_node_that_was_not_heard_tells_nothing():
    machine = auto("a", auto_stay_s=0.0)
    hear(machine, 1.0, 100)
    machine.join("b", now=1.0)
    machine.pull("b", 0, now=1.0)
    machine.measured("a", {"another": 1}, 1.0, now=2.0)
    machine.measured("b", {"third": 100}, 0.0, now=2.0)  # not measured
    assert machine.board.speeds.variation(machine.board.active()) is None
    assert machine.policy.name == "bsp"


def test_what_the_barrier_held_is_applied_when_it_is_lifted():
    machine = auto("a", "b", auto_stay_s=0.0)
    assert machine.push(PendingPush("a", 0, 1), now=0) == []
    assert Apply((PendingPush("a", 0, 1),)) in hear(machine, 1.0, 100, 10)
