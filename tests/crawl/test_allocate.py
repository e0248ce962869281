from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.crawl.lease import allocate, imbalance, node_loads

NODES = ("a", "b", "c", "d")
RATES = st.dictionaries(
    st.text("stuvwxyz", min_size=1, max_size=3), st.floats(0, 1e6), min_size=1, max_size=30
)


def loads(rates: dict[str, float], owners: dict[str, str], nodes: tuple[str, ...] = NODES):
    return node_loads(rates, owners, nodes)


@settings(deadline=None)
@given(RATES, st.sampled_from([NODES[:1], NODES[:2], NODES]), st.randoms(use_true_random=False))
def test_each_source_has_one_node_that_is_there(rates, nodes, chance: random.Random) -> None:
    current = {name: chance.choice((*nodes, "gone")) for name in rates if chance.random() < 0.7}
    found = allocate(rates, nodes, current)
    assert set(found) == set(rates)
    assert set(found.values()) <= set(nodes)
    assert found == allocate(rates, tuple(reversed(nodes)), dict(reversed(current.items())))


@settings(deadline=None)
@given(RATES, st.integers(0, 6), st.randoms(use_true_random=False))
def test_few_change_hands_and_never_for_the_worse(rates, moves, chance: random.Random) -> None:
    current = {name: chance.choice(NODES) for name in rates}
    found = allocate(rates, NODES, current, moves=moves)
    moved = [name for name in rates if found[name] != current[name]]
    assert len(moved) <= moves
    before, after = loads(rates, current), loads(rates, found)
    assert max(after.values()) <= max(before.values()) * (1 + 1e-9)
    if imbalance(before) <= 1.25:
        assert not moved


@settings(deadline=None)
@given(RATES)
def test_a_first_allocation_keeps_the_bound_of_list_scheduling(rates) -> None:
    after = loads(rates, allocate(rates, NODES, {}, moves=0))
    mean = sum(after.values()) / len(NODES)
    assert max(after.values()) <= (mean + max(rates.values())) * (1 + 1e-9)


@settings(deadline=None)
@given(RATES, st.randoms(use_true_random=False))
def test_it_comes_to_rest(rates, chance: random.Random) -> None:
    owners = {name: chance.choice(NODES) for name in rates}
    for _ in range(60):
        before, owners = owners, allocate(rates, NODES, owners)
    assert owners == before


def test_rates_that_waver_move_nothing() -> None:
    chance = random.Random(3)
    rates = {f"s{n}": 1000.0 / (n + 1) ** 0.8 for n in range(40)}
    owners = allocate(rates, NODES, {})
    for _ in range(50):
        measured = {name: rate * chance.uniform(0.85, 1.15) for name, rate in rates.items()}
        assert allocate(measured, NODES, owners) == owners


def test_two_are_swapped_where_no_single_move_helps() -> None:
    rates = {"s6": 6.0, "s5": 5.0, "s3": 3.0, "s1": 1.0}
    current = {"s6": "a", "s5": "a", "s3": "b", "s1": "b"}
    found = allocate(rates, ("a", "b"), current)
    assert imbalance(loads(rates, found, ("a", "b"))) == pytest.approx(8 / 7.5)


def test_skewed_rates_are_balanced_better_than_by_turns() -> None:
    rates = {f"s{n:02d}": 1000.0 / (n + 1) for n in range(60)}
    turns = {name: NODES[n % 4] for n, name in enumerate(sorted(rates))}
    ours = allocate(rates, NODES, {})
    assert imbalance(loads(rates, turns)) > 1.35
    assert imbalance(loads(rates, ours)) < 1.02


def test_a_node_that_dies_gives_its_sources_to_the_others_alone() -> None:
    rates = {f"s{n:02d}": 100.0 / (n + 1) ** 0.5 for n in range(40)}
    owners = allocate(rates, NODES, {})
    found = allocate(rates, NODES[:3], owners)
    assert all(found[s] == owners[s] for s in rates if owners[s] != "d")
    assert imbalance(loads(rates, found, NODES[:3])) < 1.1


def test_without_a_node_nothing_can_be_read() -> None:
    with pytest.raises(ValueError, match="no node"):
        allocate({"s": 1.0}, (), {})
