"""What a node keeps of rows, whole or by changes: it sees what one that keeps none sees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedding.exchange.client import ParameterClient
from embedding.exchange.codec import to_message, with_record
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PulledRows, PullRequest, Push
from embedding.exchange.wire import Message
from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError, RefusedError
from embedding.kernel.records import Table
from embedding.models.starting import first_vectors
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from generated import examples
from waiting import until
from yeoron_lab.keeping.rowcache import CachedRows, RowCache
from yeoron_lab.keeping.versions import RowVersions
from yeoron_lab.steps.changes import Mirror, StreamMirror, Wanted

DIM, WORDS = 6, 14
STEP = 0.01
NAMES = ("n0", "n1", "c0", "c1", "plain")
SLOW = settings(
    deadline=None,
    max_examples=examples(20),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
seeds = st.integers(0, 2**32 - 1)
chosen = st.sets(st.integers(0, WORDS - 1), min_size=1, max_size=9)


CACHE = {"pulls": "rows", "rows": "float32", "cache_bytes": 1 << 20}
PLAIN = {"pulls": "rows", "rows": "float32", "cache_bytes": 0}


def config(**more) -> ExchangeConfig:
    changes = {"pulls": "changes", "cache_bytes": 1 << 20, "compression": "none", "threshold": STEP}
    return ExchangeConfig(**{**changes, "relative_threshold": 0.0, "max_backoff_s": 0.1, **more})


class Node:
    def __init__(self, server, name: str, **more) -> None:
        self.client = ParameterClient(server.location, node=name, config=config(**more))
        welcome = self.client.hello()
        self.name, self.clock, self.sequence = name, welcome.clock, welcome.sequence

    def pull(self, ids: np.ndarray) -> np.ndarray:
        rows = self.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids[::2]}, clock=self.clock))
        self.clock = rows.clock
        return np.concatenate([rows.rows[Table.IN], rows.rows[Table.OUT]])

    def push(self, ids: np.ndarray, values: np.ndarray) -> None:
        self.sequence += 1
        deltas = tuple(RowDelta(table, ids, values) for table in (Table.IN, Table.OUT))
        self.clock = self.client.push(Push(self.name, self.sequence, self.clock, deltas)).clock


@pytest.fixture(params=["sum", "adagrad"])
def server(request):
    settings_ = ServerConfig(min_count=1, half_life_tokens=None, optimizer=request.param)
    with running_server(settings_, SyncConfig(policy="asp"), dim=DIM) as running:
        yield running


@pytest.fixture
def nodes(server):
    made = {
        "n0": Node(server, "n0"),
        "n1": Node(server, "n1", compression="threshold"),
        "c0": Node(server, "c0", **CACHE),
        "c1": Node(server, "c1", **CACHE),
        "plain": Node(server, "plain", **PLAIN),
    }
    words = [f"말{i}" for i in range(WORDS)]
    made["ids"] = made["n0"].client.admit(words, np.full(WORDS, 9, dtype=np.int64))
    yield made
    for name in NAMES:
        made[name].client.close()


@SLOW
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.booleans(), chosen, seeds)))
def test_a_node_sees_what_one_that_keeps_no_rows_sees(nodes, story):
    """A node that pulls changes sees it to within a step."""
    for at, (name, pushes, which, seed) in enumerate(story):
        ids = nodes["ids"][sorted(which, reverse=at % 2 == 0)]
        if pushes:
            values = np.random.default_rng(seed).normal(size=(len(ids), DIM), scale=0.1)
            nodes[name].push(ids, values.astype(np.float32))
        else:
            near(nodes[name], ids, nodes["plain"].pull(ids))
    for name in NAMES[:-1]:
        near(nodes[name], nodes["ids"], nodes["plain"].pull(nodes["ids"]))


def near(node: Node, ids: np.ndarray, expected: np.ndarray) -> None:
    seen = node.pull(ids)
    if node.client.config.pulls == "rows":
        assert np.allclose(seen, expected, atol=1e-6)
        return
    # A row that is new to a node comes in parts of its size, any other to within a step. What
    # compression of its own pushes keeps back a node sees, and the server does not.
    largest = np.abs(expected).max(axis=1, keepdims=True)
    own = STEP if node.client.feedback.leaves else 0.0
    assert (np.abs(seen - expected) <= np.maximum(STEP, 0.5 * largest) + own + 1e-5).all()
    if len(node.client.rows.kept[0].mirror.rows):
        again = node.pull(ids)
        assert (np.abs(again - expected) <= STEP + own + 1e-5).all()


def test_both_sides_hold_the_same_rows(server, nodes):
    node, ids = nodes["n0"], nodes["ids"]
    rng = np.random.default_rng(0)
    for _ in range(30):
        nodes["n1"].push(ids, rng.normal(size=(WORDS, DIM), scale=0.2).astype(np.float32))
        some = np.sort(rng.choice(ids, 6, replace=False))
        node.pull(some)
        node.push(some, rng.normal(size=(6, DIM), scale=0.02).astype(np.float32))
        node.pull(some)
    mirror = node.client.rows.kept[0].mirror
    assert mirror.pulls == 60
    assert mirror.rows.nbytes <= 1 << 20


@given(seeds)
@settings(max_examples=examples(40))
def test_over_time_a_node_gets_all_that_changed(seed):
    rng = np.random.default_rng(seed)
    server, node, wanted = Mirror(1 << 16), Mirror(1 << 16), Wanted(0, 1 << 16, STEP, 1.5, 0)
    rows = rng.normal(size=(40, DIM)).astype(np.float32)
    for _ in range(6):
        ids = np.sort(rng.choice(40, 9, replace=False))
        rows[ids] += rng.normal(size=(9, DIM), scale=0.1).astype(np.float32)
        asked = {Table.IN: ids, Table.OUT: ids[:3]}
        packed = server.differences(asked, {t: rows[i] for t, i in asked.items()}, wanted)
        got = node.changed(asked, packed, 1 << 20)
        delta = RowDelta(Table.IN, ids[:4], rng.normal(size=(4, DIM)).astype(np.float16))
        rows[ids[:4]] += delta.values
        for side in (server, node):
            side.rows.move([delta])
    # Nothing changes any more: what is left shrinks to below the least step.
    for _ in range(40):
        packed = server.differences(asked, {t: rows[i] for t, i in asked.items()}, wanted)
        got = node.changed(asked, packed, 1 << 20)
    assert np.abs(got[Table.IN] - rows[ids]).max() <= STEP + 1e-5


def test_with_directions_both_sides_stay_alike_and_nothing_is_lost():
    rng = np.random.default_rng(3)
    server, node = Mirror(1 << 20), Mirror(1 << 20)
    wanted, few = Wanted(0, 1 << 20, 0.001, 1.0, 4), rng.normal(size=(3, 24))
    rows = rng.normal(size=(700, 24)).astype(np.float32)
    for turn in range(60):
        ids = np.sort(rng.choice(700, 500, replace=False))
        if turn < 30:
            rows[ids] += rng.normal(size=(500, 3), scale=0.1).astype(np.float32) @ few
        packed = server.differences({Table.IN: ids}, {Table.IN: rows[ids]}, wanted)
        assert packed[0].data[1] == min(4, 5 * packed[0].rows)
        got = node.changed({Table.IN: ids}, packed, 1 << 20)[Table.IN]
        known, _ = server._known(Table.IN, ids, 24)
        assert np.abs(got - known).max() < 1e-4
    assert np.abs(got - rows[ids]).max() < 0.01


def test_a_word_that_nobody_has_learnt_costs_nothing(server):
    node, meters = Node(server, "fresh"), server.state.meters
    words = [f"새{i}" for i in range(4_000)]
    ids = node.client.admit(words, np.full(len(words), 9, dtype=np.int64))
    node.pull(ids[:1])
    before = meters.bytes_out
    rows = node.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=node.clock))
    assert meters.bytes_out - before < 1_500
    assert np.array_equal(rows.rows[Table.IN], first_vectors(ids, DIM, server.state.tables.seed))
    assert not rows.rows[Table.OUT].any()

    def parts() -> dict[str, int]:
        found: dict[str, int] = meters.parts.describe()
        return found

    # An answer is counted once it is sent, perhaps after it arrived.
    until(lambda: sum(parts().values()) == meters.bytes_in + meters.bytes_out)
    assert {"pull in ids.in.i8", "pull out in.u1", "pull out frame", "admit in words"} <= set(
        parts()
    )
    node.client.close()


def test_memory_is_bounded_alike_on_both_sides():
    rng = np.random.default_rng(1)
    limit = 8 * 3 * (4 * DIM + 64)  # eight rows of each table
    server, node, wanted = Mirror(limit), Mirror(limit), Wanted(0, limit, STEP, 0.0, 0)
    rows = rng.normal(size=(50, DIM)).astype(np.float32)
    for _ in range(30):
        ids = np.sort(rng.choice(50, rng.integers(1, 14), replace=False))
        packed = server.differences({Table.IN: ids}, {Table.IN: rows[ids]}, wanted)
        got = node.changed({Table.IN: ids}, packed, 1 << 20)[Table.IN]
        assert np.abs(got - rows[ids]).max() <= 0.5 * np.abs(rows).max()
    assert node.rows.nbytes == server.rows.nbytes <= limit


def test_a_broken_stream_begins_anew(server, nodes):
    node, ids = nodes["n0"], nodes["ids"]
    nodes["plain"].push(ids, np.full((WORDS, DIM), 0.5, dtype=np.float32))
    for _ in range(4):
        node.pull(ids)
    node.client.drop()
    expected = nodes["plain"].pull(ids)
    assert np.allclose(node.pull(ids), expected, atol=1e-2)
    assert (
        node.client.rows.kept[0].mirror.pulls == 0
    )  # whole rows: the server knew of no earlier pull
    node.pull(ids)
    assert np.allclose(node.pull(ids), expected, atol=STEP)
    assert node.client.rows.kept[0].mirror.pulls == 2


def test_rows_without_the_nodes_last_push_come_whole():
    stream, ids = StreamMirror(0), np.arange(3)
    rows = {Table.IN: np.ones((3, DIM), np.float32), Table.OUT: np.ones((0, DIM), np.float32)}
    asked = {Table.IN: ids, Table.OUT: ids[:0]}
    assert stream.changes(Wanted(0, 1 << 20, STEP, 0.0, 0), asked, rows, 1) is not None
    stream.learnt(Push("n", 2, 0, (RowDelta(Table.IN, ids, rows[Table.IN]),), keeps=True))
    assert stream.changes(Wanted(1, 1 << 20, STEP, 0.0, 0), asked, rows, 1) is None
    assert stream.changes(Wanted(0, 1 << 20, STEP, 0.0, 0), asked, rows, 1) is not None


def test_a_pull_of_changes_takes_a_part_of_the_bytes(server):
    big = Node(server, "big")
    words = [f"글{i}" for i in range(4_000)]
    ids = big.client.admit(words, np.full(len(words), 9, dtype=np.int64))
    big.pull(ids)
    meters = server.state.meters
    other = Node(server, "other", pulls="rows", cache_bytes=0)
    rng = np.random.default_rng(0)
    for node, share in ((big, 8.0), (other, 1.0)):
        other.push(ids[:500], rng.normal(size=(500, DIM), scale=0.005).astype(np.float32))
        before = meters.bytes_out
        node.pull(ids)
        assert meters.bytes_out - before < 6_000 * 2 * DIM / share + 4_096
    big.client.close()
    other.client.close()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (3, "changes must be"),
        ([], "pulls"),
        ([-1, 9, 0.1, 0, 0], "pulls"),
        ([0, 0, 0.1, 0, 0], "memory"),
        ([0, 9, 0, 0, 0], "least"),
        ([0, 9, 0.1, -1, 0], "relative"),
        ([0, 9, 0.1, "x", 0], "relative"),
        ([0, 9, 0.1, 1, -1], "directions"),
    ],
)
def test_a_malformed_wish_is_refused(nodes, changes, reason):
    client, ids = nodes["n0"].client, nodes["ids"]
    message = to_message(PullRequest({Table.IN: ids, Table.OUT: ids[:0]}, 0))
    with pytest.raises(RefusedError, match=reason):
        client.peer.request(Message({**message.header, "changes": changes}, message.arrays))
    nodes["n0"].pull(ids)


def test_ids_of_a_pull_of_changes_must_increase(nodes):
    client, ids = nodes["n0"].client, nodes["ids"]
    message = to_message(PullRequest({Table.IN: ids[::-1], Table.OUT: ids[:0]}, 0))
    with pytest.raises(RefusedError, match="must increase"):
        client.peer.request(with_record(message, "changes", Wanted(0, 1 << 20, STEP, 0.0, 0)))


def test_an_answer_that_does_not_fit_is_refused():
    asked, wanted = {Table.IN: np.arange(4)}, Wanted(0, 1 << 20, STEP, 0.0, 0)
    packed = Mirror(1 << 20).differences(asked, {Table.IN: np.ones((4, DIM), np.float32)}, wanted)
    with pytest.raises(RefusedError, match="more rows"):
        Mirror(1 << 20).changed({Table.IN: np.arange(2)}, packed, 1 << 20)
    with pytest.raises(RefusedError, match="other tables"):
        Mirror(1 << 20).changed({Table.OUT: np.arange(4)}, packed, 1 << 20)


def test_changes_without_memory_are_refused():
    with pytest.raises(ConfigError, match="pulls changes with cache_bytes 0"):
        validate(ExchangeConfig, {"pulls": "changes"}, "exchange")


def test_only_rows_that_others_changed_come_again(server, nodes):
    one, other, ids = nodes["c0"], nodes["c1"], nodes["ids"]
    cache, meters = one.client.rows.kept[0], server.state.meters
    one.pull(ids)
    one.push(ids[:6], np.ones((6, DIM), np.float32))
    other.push(ids[4:8], np.ones((4, DIM), np.float32))
    spared = cache.spared
    one.pull(ids)
    asked = len(ids) + len(ids[::2])
    # With adagrad the server decides how far a row moves: nothing that was pushed is known.
    came = 4 + 2 if server.config.optimizer == "sum" else 8 + 4
    assert cache.spared - spared == asked - came == meters.rows_spared


def test_rows_of_another_life_of_the_server_are_forgotten(tmp_path):
    lasting = ServerConfig(min_count=1, state_dir=tmp_path, half_life_tokens=None)
    sync = SyncConfig(policy="asp")
    with running_server(lasting, sync, dim=DIM) as server:
        port = int(server.location.rsplit(":", 1)[1])
        node = Node(server, "n0", **CACHE)
        ids = node.client.admit(["말", "글"], np.array([9, 9]))
        node.push(ids, np.ones((2, DIM), np.float32))
        before = node.pull(ids)
    with running_server(lasting.model_copy(update={"port": port}), sync, dim=DIM):
        assert np.array_equal(node.pull(ids), before)
        assert node.client.rows.kept[0].spared == 0
        node.pull(ids)
        assert node.client.rows.kept[0].spared == 3
        node.client.close()


def test_the_cache_takes_no_more_memory_than_it_may():
    cache = RowCache(config(**{**CACHE, "cache_bytes": 64 * 1024}))
    answer, request = Message({"versions": 1}, {}), Message({})
    rng = np.random.default_rng(0)
    for _ in range(20):
        ids = rng.choice(5_000, 300, replace=False).astype(np.int64)
        rows = np.ones((300, 16), dtype=np.float32)
        cache.asking(request, {Table.IN: ids})
        cache.came(answer, PulledRows(0, {Table.IN: rows}), {Table.IN: ids})
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
