"""Rows that a node keeps are those of the server, whoever changes them, and are not sent again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PullRequest, Push
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from generated import examples
from yeoron_lab.keeping.rowcache import CachedRows, RowCache
from yeoron_lab.keeping.versions import RowVersions

DIM, WORDS = 4, 12
CONFIG = ExchangeConfig(rows="float32", compression="none", cache_bytes=1 << 20).model_copy(
    update={"pull_timeout_s": 60, "request_timeout_s": 60}
)
SLOW = settings(
    deadline=None,
    max_examples=examples(15),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
events = st.lists(
    st.tuples(
        st.sampled_from(["n0", "n1", "plain"]),
        st.sampled_from(["pull", "push", "push"]),
        st.sets(st.integers(0, WORDS - 1), min_size=1, max_size=8),
    ),
    max_size=30,
)


class Node:
    def __init__(self, server, name: str, config: ExchangeConfig) -> None:
        self.client = ParameterClient(server.location, node=name, config=config)
        welcome = self.client.hello()
        self.name, self.clock, self.sequence = name, welcome.clock, welcome.sequence

    def pull(self, ids: np.ndarray) -> np.ndarray:
        rows = self.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids[::2]}, clock=self.clock))
        self.clock = rows.clock
        return np.concatenate([rows.rows[Table.IN], rows.rows[Table.OUT]])

    def push(self, ids: np.ndarray, value: float) -> None:
        self.sequence += 1
        deltas = tuple(
            RowDelta(table, ids, np.full((len(ids), DIM), value, dtype=np.float32))
            for table in (Table.IN, Table.OUT)
        )
        ack = self.client.push(Push(self.name, self.sequence, self.clock, deltas))
        self.clock = ack.clock


@pytest.fixture(params=["sum", "adagrad"])
def server(request):
    config = ServerConfig(min_count=1, half_life_tokens=None, optimizer=request.param)
    with running_server(config, SyncConfig(policy="asp"), dim=DIM) as running:
        yield running


@pytest.fixture
def nodes(server):
    made = {
        "n0": Node(server, "n0", CONFIG),
        "n1": Node(server, "n1", CONFIG),
        "plain": Node(server, "plain", replace_config(cache_bytes=0)),
    }
    words = [f"말{i}" for i in range(WORDS)]
    made["ids"] = made["n0"].client.admit(words, np.full(WORDS, 9, dtype=np.int64))
    yield made
    for name in ("n0", "n1", "plain"):
        made[name].client.close()


def replace_config(**changes) -> ExchangeConfig:
    return CONFIG.model_copy(update=changes)


@SLOW
@given(events)
def test_a_node_that_keeps_rows_sees_what_one_that_keeps_none_sees(nodes, story):
    for at, (name, what, chosen) in enumerate(story):
        ids = nodes["ids"][sorted(chosen, reverse=at % 2 == 0)]
        if what == "push":
            nodes[name].push(ids, 0.25 + at / 64)
        else:
            assert np.allclose(nodes[name].pull(ids), nodes["plain"].pull(ids), atol=1e-6)
    for name in ("n0", "n1"):
        assert np.allclose(
            nodes[name].pull(nodes["ids"]), nodes["plain"].pull(nodes["ids"]), atol=1e-6
        )


def test_only_rows_that_others_changed_come_again(server, nodes):
    one, other, ids = nodes["n0"], nodes["n1"], nodes["ids"]
    cache, meters = one.client.rows.kept.cache, server.state.meters
    one.pull(ids)
    one.push(ids[:6], 1.0)
    other.push(ids[4:8], 1.0)
    spared = cache.spared
    one.pull(ids)
    asked = len(ids) + len(ids[::2])
    # With adagrad the server decides how far a row moves: nothing that was pushed is known.
    came = 4 + 2 if server.config.optimizer == "sum" else 8 + 4
    assert cache.spared - spared == asked - came == meters.rows_spared


def test_rows_of_another_life_of_the_server_are_forgotten(tmp_path):
    config = ServerConfig(min_count=1, state_dir=tmp_path, half_life_tokens=None)
    sync = SyncConfig(policy="asp")
    with running_server(config, sync, dim=DIM) as server:
        port = int(server.location.rsplit(":", 1)[1])
        node = Node(server, "n0", CONFIG)
        ids = node.client.admit(["말", "글"], np.array([9, 9]))
        node.push(ids, 1.0)
        before = node.pull(ids)
    with running_server(config.model_copy(update={"port": port}), sync, dim=DIM):
        assert np.array_equal(node.pull(ids), before)
        assert node.client.rows.kept.cache.spared == 0
        node.pull(ids)
        assert node.client.rows.kept.cache.spared == 3
        node.client.close()


def test_the_cache_takes_no_more_memory_than_it_may():
    cache = RowCache(64 * 1024)
    answer = Message({"versions": 1}, {})
    rng = np.random.default_rng(0)
    for _ in range(20):
        ids = rng.choice(5_000, 300, replace=False).astype(np.int64)
        rows = np.ones((300, 16), dtype=np.float32)
        cache.filled({Table.IN: ids}, {Table.IN: rows}, answer, sequence=0)
    assert 0 < cache.nbytes <= 64 * 1024


def test_a_dropped_push_makes_the_node_ask_for_all_it_keeps():
    versions, slots = RowVersions(), np.arange(3)
    assert versions.unknown("n", Table.IN, slots, np.full(3, -1)).all()
    since = np.full(3, versions.clock)
    assert not versions.unknown("n", Table.IN, slots, since).any()
    versions.lost(["n"])
    assert versions.unknown("n", Table.IN, slots, since).all()
    assert not versions.unknown("m", Table.IN, slots, since).any()


def test_malformed_claims_are_refused(nodes):
    asked = {Table.IN: np.arange(3)}
    good = Message(
        {"op": "pull", "kept": [1, 0]},
        {"clocks": np.array([4]), "in.kept": np.array([0, 1, 0], dtype=np.uint8)},
    )
    assert CachedRows.of(good, asked).since[Table.IN].tolist() == [-1, 4, -1]
    for bad in (
        replace(good, header={"kept": 7}),
        replace(good, header={"kept": [1, True]}),
        replace(good, arrays={"clocks": np.array([4])}),
        replace(good, arrays={**good.arrays, "clocks": np.array([], dtype=np.int64)}),
        replace(good, arrays={**good.arrays, "in.kept": np.zeros(2, dtype=np.uint8)}),
    ):
        with pytest.raises(RefusedError):
            CachedRows.of(bad, asked)
