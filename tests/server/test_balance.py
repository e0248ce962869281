"""Block sizes that follow the nodes' speeds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.exchange.protocol import Push
from embedding.kernel.records import SourceProgress
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.consistency import Balance
from embedding.server.service import running_server

LEAST = 0.03125
MOST = 4.0
STILL = 0.15

BLOCK = 10_000


def run(
    speeds: dict[str, float], clocks: int, *, cost: float = 0.0, policy: str = "bsp"
) -> Balance:
    """Nodes that learn blocks of the size that they were told; a block costs `cost` s besides."""
    balance = Balance()
    shares = dict.fromkeys(speeds, 1.0)
    for _ in range(clocks):
        for node, speed in speeds.items():
            tokens = round(BLOCK * shares[node])
            balance.learnt(node, tokens, cost + tokens / speed)
        shares = {node: balance.share(node, speeds, policy) for node in speeds}
    return balance


def times(balance: Balance, speeds: dict[str, float], cost: float = 0.0) -> list[float]:
    return [cost + BLOCK * balance.nodes[node].share / speeds[node] for node in speeds]


def test_blocks_of_a_slow_node_shrink_until_all_take_the_same_time():
    speeds = {"a": 1e5, "b": 1e5, "c": 1e5, "d": 1e4}
    took = times(run(speeds, 30), speeds)
    assert max(took) / min(took) < (1 + STILL) ** 2
    shares = [each.share for each in run(speeds, 30).nodes.values()]
    assert sum(shares) == pytest.approx(4, rel=STILL), (
        "all together learn as much a clock as before"
    )
    with_costs = times(run(speeds, 60, cost=0.02), speeds, 0.02)
    assert max(with_costs) / min(with_costs) < 1.6 < 1.02 / 0.12


@given(
    st.lists(st.floats(1e2, 1e6), min_size=1, max_size=6),
    st.floats(0, 1),
    st.sampled_from(["bsp", "ssp", "averaging"]),
)
def test_a_share_keeps_its_bounds_and_is_1_alone(rates, cost, policy):
    speeds = {str(i): rate for i, rate in enumerate(rates)}
    balance = run(speeds, 12, cost=cost, policy=policy)
    assert all(LEAST <= each.share <= MOST for each in balance.nodes.values())
    if len(rates) == 1:
        assert balance.nodes["0"].share == 1.0


def test_alike_nodes_keep_blocks_of_one_size():
    speeds = {"a": 1.0e5, "b": 1.1e5, "c": 0.95e5}
    assert {each.share for each in run(speeds, 20).nodes.values()} == {1.0}


def test_where_nobody_waits_and_beside_unmeasured_nodes_nothing_changes():
    speeds = {"a": 1e5, "b": 1e3}
    assert {each.share for each in run(speeds, 20, policy="asp").nodes.values()} == {1.0}
    balance = run(speeds, 20)
    assert balance.share("b", ["a", "b", "new"], "bsp") == 1.0
    assert balance.share("b", ["b"], "bsp") == 1.0, "the others have gone"
    balance = run(speeds, 20)
    balance.forget("b")
    assert balance.share("a", speeds, "bsp") == 1.0


def test_a_node_that_gets_quick_again_gets_large_blocks_again():
    balance = run({"a": 1e5, "b": 1e3}, 20)
    assert balance.nodes["b"].share < 0.1
    for _ in range(20):
        for node in ("a", "b"):
            balance.learnt(node, 1_000, 0.01)
            balance.share(node, ["a", "b"], "bsp")
    assert balance.nodes["b"].share == pytest.approx(1.0, abs=STILL)


@pytest.mark.parametrize("on", [True, False])
def test_the_answer_to_a_push_carries_the_share(connect, on):
    with running_server(ServerConfig(), SyncConfig(policy="bsp", balance=on), dim=4) as server:
        nodes = [connect(server, name) for name in ("quick", "slow")]
        for sequence in range(1, 8):
            for node in nodes:
                node.pull()
            for node, seconds in zip(nodes, (0.1, 0.9), strict=True):
                progress = (SourceProgress("뉴스", 1, 1_000, 0.0, 0),)
                push = Push(node.name, sequence, node.clock, progress=progress, busy_s=seconds)
                ack = node.client.push(push)
                node.clock = ack.clock
        shares = {name: n["block_share"] for name, n in server.status()["nodes"].items()}
    assert ack.share == pytest.approx(0.2 if on else 1.0, rel=STILL)
    assert shares["quick"] == pytest.approx(1.8 if on else 1.0, rel=STILL)
