"""fastText's n-gram rows on shards: pulled, pushed, kept and composed as one server does it."""

from __future__ import annotations

import os
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from named import LEARNT, QUICK, named
from threads import crash_primary, fleet, sharded

from embedding.evaluation.gold import PairGold
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PullRequest, Push
from embedding.exchange.wire import Message
from embedding.kernel.errors import ConfigError, RefusedError
from embedding.kernel.records import ScorePairs, Table, Window
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rows.devices import pick_device
from embedding.server.rows.tables import Optimizer, Tables
from embedding.server.service import ParameterServer, running_server
from embedding.server.snapshotting.live import LiveModel
from embedding.snapshots.store import SnapshotStore
from embedding.worker.process.making import connect as greet
from waiting import until

pytestmark = pytest.mark.laboratory

DIM, BUCKETS, SEED = 4, 301, 3
DAY = Window(datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 3, 2, tzinfo=UTC))
MARCH_1 = int(DAY.start.timestamp())
WORDS = ["확진자", "확진", "cat", "cats", "·", "바다", "바다가", "하늘"]
NONE = np.array([], dtype=np.int64)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def grams(*buckets: int, value: float = 1.0) -> RowDelta:
    return RowDelta(Table.SUB, ints(*buckets), np.full((len(buckets), DIM), value, np.float32))


def settings(shards: int, **changes) -> ServerConfig:
    return ServerConfig(**{"min_count": 1, "shards": shards, "device": "cpu", **changes})


def first_rows() -> np.ndarray:
    """What one server's table of n-grams holds before anything is learnt."""
    tables = Tables(
        DIM,
        device=pick_device("cpu"),
        capacity=1,
        seed=SEED,
        optimizer=Optimizer(),
        buckets=BUCKETS,
    )
    return tables.read(Table.SUB, np.arange(BUCKETS))


@pytest.fixture(params=[1, 2, 3])
def shards(request) -> int:
    return request.param


@pytest.fixture
def server(shards, tmp_path):
    kept = settings(shards, snapshots=str(tmp_path / "store"))
    with sharded(kept, buckets=BUCKETS) as running:
        yield running


def test_rows_of_buckets_start_alike_come_in_any_order_and_change(server, connect):
    node, first = connect(server), first_rows()
    asked = ints(300, 7, 0, 151)
    assert np.array_equal(node.pull(NONE, grams=asked).rows[Table.SUB], first[asked])
    ids = node.words(*WORDS)
    words = RowDelta(Table.OUT, ids, np.ones((len(ids), DIM), np.float32))
    node.push((words, grams(0, 7, 300, value=2.0)))
    rows = node.pull(NONE, ids, grams=asked)
    assert np.array_equal(rows.rows[Table.SUB], first[asked] + np.float32([[2], [2], [2], [0]]))
    assert rows.rows[Table.OUT].tolist() == [[1.0] * DIM] * len(WORDS)
    assert node.pull(NONE, grams=NONE).rows[Table.SUB].shape == (0, DIM)
    assert Table.SUB not in node.pull(NONE).rows


@pytest.mark.parametrize("bad", [(-1,), (BUCKETS,), (3, BUCKETS + 10)])
def test_a_bucket_out_of_range_is_refused_and_changes_no_shard(server, connect, bad):
    node, every = connect(server), np.arange(BUCKETS)
    with pytest.raises(RefusedError, match="0 to 300 are accepted"):
        node.push((grams(*bad),))
    with pytest.raises(RefusedError, match="0 to 300 are accepted"):
        node.pull(NONE, grams=ints(*bad))
    node.sequence -= 1
    node.push((grams(3, value=0.5),), named(["말"]))
    moved = node.pull(NONE, grams=every).rows[Table.SUB] - first_rows()
    assert np.flatnonzero(moved.any(axis=1)).tolist() == [3]


def test_a_shard_refuses_buckets_that_are_not_its_own_and_bags_that_do_not_fit():
    with sharded(settings(2), buckets=BUCKETS) as server:
        link, state = server.state.rows.links.links[1], server.state
        at = (state.rows.log.number, state.rows.log.position)
        with pytest.raises(RefusedError, match="bucket mod 2 = 1"):
            link.rows(Table.SUB, ints(1, 2), at)
        for offsets in (ints(), ints(0), ints(1, 2), ints(0, 2, 1), ints(0, 1, 5)):
            message = Message(
                {"op": "sums", "at": list(at)}, {"ids": ints(1, 3), "offsets": offsets}
            )
            with pytest.raises(RefusedError, match="must rise from 0"):
                link.fetch(message)


def test_a_model_without_n_grams_has_no_such_rows_on_shards(connect):
    with sharded(settings(2)) as server:
        node = connect(server)
        with pytest.raises(RefusedError, match="its model is not fasttext"):
            node.pull(NONE, grams=ints(1))
        with pytest.raises(RefusedError, match="its model is not fasttext"):
            node.push((grams(1),))


def learnt(server, connect) -> dict[str, object]:
    """A small history, and all that is read of what is left of it."""
    node = connect(server)
    ids, rng, scores = node.words(*WORDS), np.random.default_rng(5), []
    for _ in range(5):
        c, o, n = (rng.choice(ids, size) for size in (8, 8, (8, 3)))
        pairs = ScorePairs("뉴스", c, o, n, np.full(8, MARCH_1))
        more = ScorePairs("글판", o[:3], c[:3], n[2:5], np.full(3, MARCH_1))
        scores.extend(node.pull(contexts=ids, score=[pairs, more]).nll)
        values = rng.normal(size=(len(ids), DIM)).astype(np.float32)
        buckets = np.sort(rng.choice(BUCKETS, 80, replace=False))
        sub = RowDelta(Table.SUB, buckets, rng.normal(size=(80, DIM)).astype(np.float32))
        rows = (RowDelta(Table.IN, ids, values), RowDelta(Table.OUT, ids, values[::-1].copy()))
        node.push((*rows, sub), named(WORDS, window=MARCH_1), window=MARCH_1)
    node.pull()
    server.state.report(node.client.node, LEARNT)
    live = LiveModel(server.state)
    near = live.neighbours("확진", 3)
    gold = PairGold("집", (("확진", "확진자", 9.0), ("cat", "바다", 1.0), ("바다", "하늘", 5.0)))
    judged = live.evaluate(gold)
    judged.pop("pause_ms")
    judged.pop("pip", None)  # there once frequent words were followed, which goes by the clock
    ref = node.client.cut(DAY)
    snapshot = SnapshotStore(server.config.snapshots).open(ref.id)
    return {
        "words": list(snapshot.words),
        "vectors": np.array(snapshot.vectors),
        "contexts": np.array(snapshot.contexts),
        "config": snapshot.manifest.config,
        "near": [each.word for each in near],
        "nearness": [each.nearness for each in near],
        "judged": judged,
        "scores": scores,
        "quality": snapshot.manifest.quality["nll"],
    }


def test_the_same_history_is_read_alike_everywhere(connect, tmp_path):
    found = {}
    for shards in (1, 2, 3):
        kept = settings(shards, snapshots=str(tmp_path / str(shards)))
        with sharded(kept, buckets=BUCKETS) as server:
            found[shards] = learnt(server, connect)
    alone = found.pop(1)
    assert alone["config"]["buckets"] == BUCKETS
    assert alone["judged"]["coverage/집"] == 1.0
    for other in found.values():
        for name in ("words", "vectors", "contexts", "near"):
            assert np.array_equal(alone[name], other[name])
        assert other["config"]["vectors"] == alone["config"]["vectors"]
        for name in ("nearness", "judged", "scores", "quality"):
            assert other[name] == pytest.approx(alone[name], rel=1e-4)


def test_an_evicted_word_is_nothing_and_a_new_one_has_its_n_grams(connect):
    with sharded(settings(2, max_words=2, half_life_tokens=None), buckets=BUCKETS) as server:
        node, state = connect(server), server.state
        ids = node.words("말", "확진")
        node.push((grams(*range(BUCKETS)),), named(["확진"], 9))
        state.vocabulary.version += 32
        (new,) = node.words("확진자").tolist()
        node.pull(NONE)
        assert new >= 2, "it took the place of the one that was read less"
        rows = state.rows.live(Table.IN, np.array([ids[0], ids[1], new]))
        assert not rows[0].any()
        assert (rows[1:] > 0.5).all(), "the mean of what n-grams have learnt"


@pytest.mark.parametrize(
    "changes",
    [
        {"compression": "threshold", "threshold": 0.05},
        {"compression": "topk", "top_share": 0.2},
        {"cache_bytes": 1 << 20},
        {"cache_bytes": 1 << 20, "pulls": "changes"},
    ],
)
def test_packed_and_kept_rows_are_the_shards(connect, changes):
    config = ExchangeConfig(**{**QUICK.model_dump(), **changes})
    with sharded(settings(3), SyncConfig(policy="asp"), buckets=BUCKETS) as server:
        node, plain = connect(server, config=config), connect(server, "plain")
        every, rng = np.arange(BUCKETS, dtype=np.int64), np.random.default_rng(3)
        wanted = first_rows()
        for _ in range(6):
            node.pull(NONE, grams=every)
            ids = np.sort(rng.choice(BUCKETS, 40, replace=False))
            values = rng.normal(size=(40, DIM), scale=0.1).astype(np.float32)
            node.push((RowDelta(Table.SUB, ids, values),))
            wanted[ids] += values
        node.client.flush_residuals(node.clock, node.sequence + 1)
        seen = node.pull(NONE, grams=every).rows[Table.SUB]
        assert np.allclose(plain.pull(NONE, grams=every).rows[Table.SUB], wanted, atol=0.15)
        assert np.allclose(seen, wanted, atol=0.15)
        assert np.abs(wanted - first_rows()).max() > 0.2


def kept(tmp_path: Path, **changes) -> ServerConfig:
    return settings(2, state_dir=tmp_path / "state", checkpoint_every_s=600.0, **changes)


def test_a_shard_that_crashed_gets_what_it_lost_and_nothing_twice(tmp_path, connect):
    with sharded(kept(tmp_path), buckets=BUCKETS) as server:
        one, two = connect(server, "n0"), connect(server, "n1")
        asked, first = ints(0, 1, 150, 299), first_rows()
        for node in (one, two):
            node.pull(NONE)
            node.push((grams(*asked.tolist()),))
        one.client.checkpoint()
        for node in (one, two, one):
            node.pull(NONE)
            node.push((grams(*asked.tolist()),))
        fleet(server).crash(1)
        fleet(server).restart(1)
        moved = one.pull(NONE, grams=asked).rows[Table.SUB] - first[asked]
        assert moved == pytest.approx(np.full((4, DIM), 5.0), abs=1e-5)


def test_primary_and_shards_go_on_from_their_checkpoints(tmp_path, connect):
    """AdaGrad too remembers how far a bucket moved; and the seed is the checkpoint's."""
    chosen, asked = kept(tmp_path, optimizer="adagrad"), ints(7, 8)
    with sharded(chosen, buckets=BUCKETS) as server:
        node = connect(server)
        node.words("말")
        node.push((grams(7, 8),), named(["말"]))
        node.pull()
        node.client.checkpoint()
        crash_primary(server)
    with sharded(chosen, seed=99, buckets=BUCKETS) as server:
        assert [spec.seed for spec in fleet(server).specs] == [SEED] * chosen.shards
        node = connect(server, "n1")
        before = node.pull(NONE, grams=asked).rows[Table.SUB]
        assert np.allclose(before - first_rows()[asked], 1.0, atol=1e-5)
        node.push((grams(7, 8),))
        moved = node.pull(NONE, grams=asked).rows[Table.SUB] - before
        assert moved == pytest.approx(np.full((2, DIM), 0.5**0.5), rel=1e-4)
        untouched = ints(9, 10)
        assert np.array_equal(
            node.pull(NONE, grams=untouched).rows[Table.SUB], first_rows()[untouched]
        )
    for other in (0, BUCKETS + 1):
        with pytest.raises(ConfigError, match=f"buckets {BUCKETS}, the server was started"):
            ParameterServer(chosen, dim=DIM, buckets=other)


def test_status_counts_the_rows_of_n_grams(connect):
    with sharded(settings(2), buckets=BUCKETS) as server:
        node = connect(server)
        node.words("말", "글", "집")
        node.pull()
        until(lambda: [each.get("rows") for each in server.status()["shards"]] == [153, 151])
        held = server.status()["shards"][0]["bytes"]
        assert held >= 4 * (DIM + 1) * 151


@pytest.mark.slow
def test_a_killed_shard_loses_nothing(tmp_path):
    """kill -9 of each shard in the middle of two nodes' training: each push counts exactly once."""
    chosen = settings(2, state_dir=tmp_path, checkpoint_every_s=0.5)
    line = ExchangeConfig(rows="float32", max_backoff_s=0.2).model_copy(
        update={"max_unconfirmed": 64}
    )
    pushed, stop = {"n0": 0, "n1": 0}, threading.Event()
    every = np.arange(BUCKETS, dtype=np.int64)

    def train(name: str, location: str) -> None:
        with greet(location, node=name, config=line) as client:
            clock, sequence = client.welcome.clock, 0
            while not stop.is_set():
                clock = client.pull(
                    PullRequest(
                        {Table.IN: NONE, Table.OUT: NONE, Table.SUB: every[::7]}, clock=clock
                    )
                ).clock
                sequence += 1
                push = Push(name, sequence, clock, (grams(*range(BUCKETS)),), tokens=0)
                clock = client.push(push).clock
                pushed[name] = sequence

    def wait_for_more(pushes: int) -> None:
        reached = min(pushed.values())
        until(lambda: min(pushed.values()) >= reached + pushes)

    with running_server(chosen, dim=DIM, seed=SEED, buckets=BUCKETS) as server:
        trainers = [threading.Thread(target=train, args=(name, server.location)) for name in pushed]
        for trainer in trainers:
            trainer.start()
        try:
            for index in (0, 1):
                wait_for_more(20)
                os.kill(server.pids[f"shard-{index}"], signal.SIGKILL)
            wait_for_more(20)
        finally:
            stop.set()
            for trainer in trainers:
                trainer.join(90)
        total = sum(pushed.values())
        with greet(server.location, node="n0", config=line) as client:
            rows = client.pull(
                PullRequest(
                    {Table.IN: NONE, Table.OUT: NONE, Table.SUB: every}, clock=client.welcome.clock
                )
            ).rows[Table.SUB]
            status = client.status()
    assert np.allclose(rows - first_rows(), total, atol=1e-2)
    assert [shard["lost_pushes"] for shard in status["shards"]] == [0, 0]
    assert [shard["restarts"] for shard in status["shards"]] == [1, 1]
