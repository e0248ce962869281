"""Replicas on nodes: every movement counted once, whichever way its row goes."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nodes_in_step import DIM, WORD_TABLES, Block, Ran, in_step

from embedding.exchange.topology import TopologyConfig
from embedding.kernel.records import Table
from embedding.models.starting import first_vectors
from embedding.server.config import SyncConfig
from generated import examples

WORDS = [f"w{i}" for i in range(12)]
BLOCKS = st.builds(
    Block,
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(tuple),
    by=st.integers(1, 9),
    window=st.integers(0, 2).map(lambda day: day * 86_400),
)
SCRIPTS = st.lists(st.lists(BLOCKS, max_size=12), min_size=2, max_size=3)
CONFIGS = st.builds(
    TopologyConfig,
    kind=st.sampled_from(["allreduce", "hybrid"]),
    write_back_blocks=st.integers(1, 4),
    rechoose_blocks=st.integers(1, 3),
)
SYNCS = st.builds(SyncConfig, policy=st.sampled_from(["bsp", "ssp", "asp"]))


def check_every_movement_once(ran: Ran, scripts: list[list[Block]]) -> None:
    """The server ends at first values plus all movements, and so do the replicas, bit for bit."""
    moved: Counter[str] = Counter()
    for block in (each for script in scripts for each in script):
        for word in set(block.words):
            moved[word] += block.by
    vocabulary = ran.state.vocabulary
    for word, total in moved.items():
        (row,) = vocabulary.ids([word])
        first = first_vectors(np.asarray([row]), DIM, 1)[0]
        assert np.allclose(ran.server_row(word), first + total, atol=1e-4)
        assert np.allclose(ran.server_row(word, Table.OUT), total, atol=1e-4)
    for table in WORD_TABLES:
        held = [route.replicas[table] for route in ran.routes]
        assert len({each.ids.tobytes() for each in held}) == 1
        assert len({each.rows.tobytes() for each in held}) == 1
        slots = vocabulary.slots(held[0].ids, "test")
        assert np.allclose(held[0].rows, ran.state.tables.read(table, slots), atol=1e-4)


@settings(max_examples=examples(50), suppress_health_check=list(HealthCheck))
@given(SCRIPTS, CONFIGS, SYNCS, st.sampled_from([0.3, 0.6, 0.9]))
def test_every_movement_is_counted_once_whatever_the_blocks(
    scripts: list[list[Block]], config: TopologyConfig, sync: SyncConfig, least: float
) -> None:
    ran = in_step(scripts, config, sync, least=least)
    check_every_movement_once(ran, scripts)
    for route, line, script in zip(ran.routes, ran.lines, scripts, strict=True):
        touched = 2 * sum(len(set(block.words)) for block in script)
        learnt = [push for push in line.pushes if push.tokens]
        by_server = sum(len(delta.ids) for push in learnt for delta in push.deltas)
        assert route.metrics.reduced_rows + by_server == touched, "each row by exactly one way"
        assert len(learnt) == len(script)
        assert [push.sequence for push in line.pushes] == list(range(1, len(line.pushes) + 1))
        if config.kind == "allreduce":
            assert by_server == 0


def test_a_node_sees_all_movements_of_the_blocks_before() -> None:
    scripts = [[Block(("a", "b"), 1) for _ in range(4)], [Block(("a", "c"), 10) for _ in range(4)]]
    ran = in_step(scripts, TopologyConfig(kind="allreduce"))
    for rank, other in ((0, "b"), (1, "c")):
        rows = ran.pulled[rank]
        for before, after in itertools.pairwise(rows):
            assert np.allclose(after["a"] - before["a"], 11, atol=1e-5)
            assert np.allclose(after[other] - before[other], 1 if rank == 0 else 10, atol=1e-5)


def test_rows_of_every_block_go_by_all_reduce_and_the_others_by_the_server() -> None:
    rare = iter(range(1_000))
    scripts = [[Block(("the", f"rare{next(rare)}"), 1) for _ in range(12)] for _ in range(2)]
    ran = in_step(scripts, TopologyConfig(kind="hybrid", rechoose_blocks=4), least=0.9)
    check_every_movement_once(ran, scripts)
    (the,) = ran.state.vocabulary.ids(["the"])
    for route in ran.routes:
        assert route.replicas[Table.IN].ids.tolist() == [the]
        figures = route.figures()
        assert figures["dense_rows"] == {"in": 1, "out": 1}
        # The first choice is after four blocks, and "the" alone is in all of them.
        assert figures["rows"]["allreduce"] == 2 * (12 - 4)
        assert figures["bytes"]["allreduce"] > 0


def test_a_row_that_gets_rare_is_the_server_s_again() -> None:
    scripts = [
        [Block(("old",), 1) for _ in range(8)] + [Block(("new",), 1) for _ in range(8)]
        for _ in range(2)
    ]
    ran = in_step(scripts, TopologyConfig(kind="hybrid", rechoose_blocks=2), least=0.9)
    check_every_movement_once(ran, scripts)
    (new,) = ran.state.vocabulary.ids(["new"])
    assert ran.routes[0].replicas[Table.IN].ids.tolist() == [new]


def test_the_server_has_the_tables_before_anybody_learns_of_a_new_window() -> None:
    days = [Block(("a",), 1, 0), Block(("a",), 1, 0), Block(("a",), 1, 86_400)]
    ran = in_step([days, days], TopologyConfig(kind="allreduce", write_back_blocks=1_000))
    (leader, other) = (line.pushes for line in ran.lines)
    # Two blocks, what both nodes moved by then, the block of the new day, the rest.
    assert [bool(push.deltas) for push in leader] == [False, False, True, False, True]
    assert float(leader[2].deltas[0].values[0, 0]) == pytest.approx(4.0, abs=1e-5)
    assert leader[3].progress[0].window == 86_400
    assert not any(push.deltas for push in other)


def test_the_server_has_the_tables_when_the_last_node_leaves_a_window() -> None:
    """The leader is in the new window before the other: what that learns of the old one counts."""
    early = [Block(("a",), 1, 0), *(Block(("a",), 1, 86_400) for _ in range(3))]
    late = [*(Block(("a",), 1, 0) for _ in range(3)), Block(("a",), 1, 86_400)]
    ran = in_step([early, late], TopologyConfig(kind="allreduce", write_back_blocks=1_000))
    brought = [push for push in ran.lines[0].pushes if push.deltas]
    # Before the leader's second block, before the other's fourth, at the end.
    assert [round(float(push.deltas[0].values[0, 0])) for push in brought] == [2, 4, 2]


def test_a_leader_without_a_block_holds_nobody_up() -> None:
    scripts = [[], [Block(("a", "b"), 1) for _ in range(5)]]
    for policy in ("bsp", "ssp"):
        ran = in_step(scripts, TopologyConfig(kind="allreduce"), SyncConfig(policy=policy))
        check_every_movement_once(ran, scripts)
