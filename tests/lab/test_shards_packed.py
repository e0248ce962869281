"""What nodes pack, keep and are told of, with rows on shards: the same as with one server."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from named import QUICK, named
from threads import fleet, sharded

from embedding.exchange.client import ParameterClient
from embedding.exchange.compression.base import packing
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PullRequest
from embedding.kernel.errors import ConfigError, RefusedError
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from embedding.worker.process.making import connect as greet
from waiting import until
from yeoron_lab.columns.path import ColumnsOnShards

pytestmark = pytest.mark.laboratory

DIM, WORDS = 16, 40
ASP = SyncConfig(policy="asp")
NONE = np.array([], dtype=np.int64)


def config(kind: str, **more) -> ExchangeConfig:
    settings = {"threshold": 0.05, "top_share": 0.2, "compression": kind, **more}
    return QUICK.model_copy(update=settings)


def settings(shards: int, **more) -> ServerConfig:
    return ServerConfig(shards=shards, min_count=1, half_life_tokens=None, device="cpu", **more)


def deltas(rng, ids: np.ndarray) -> tuple[RowDelta, ...]:
    chosen = rng.choice(ids, 24, replace=False)
    values = rng.normal(size=(24, DIM), scale=0.05).astype(np.float32)
    return tuple(RowDelta(table, chosen, values) for table in (Table.IN, Table.OUT))


def admitted(node) -> np.ndarray:
    return node.words(*(f"말{i}" for i in range(WORDS)))


def history(connect, shards: int, kind: str) -> tuple[np.ndarray, ...]:
    """What two nodes see, in the end what the tables hold, and bytes a number."""
    with sharded(settings(shards), ASP, dim=DIM) as server:
        one, two = (connect(server, name, config=config(kind)) for name in ("n0", "n1"))
        ids = admitted(one)
        rng, seen = np.random.default_rng(3), []
        for node in (one, two, one, one, two):
            node.pull(ids, ids)
            node.push(deltas(rng, ids))
            seen.append(node.pull(ids, ids[::-1].copy()).rows[Table.OUT])
        plain = connect(server, "plain").pull(ids, ids)
        # The status adds up figures that come with each beat of the shards.
        until(lambda: one.client.status()["bytes"]["pushed_per_entry"])
        told = one.client.status()["bytes"]["pushed_per_entry"]
        return (*seen, plain.rows[Table.IN], plain.rows[Table.OUT], np.array(told))


@pytest.mark.parametrize("kind", ["threshold", "onebit"])
def test_what_is_packed_moves_the_same_rows_however_many_shards(connect, kind):
    alone, others = history(connect, 1, kind), history(connect, 3, kind)
    assert all(np.array_equal(a, b) for a, b in zip(alone[:-1], others[:-1], strict=True))
    assert 0 < others[-1] < 2.0, "float16 takes more than 2 bytes an entry"


@pytest.mark.parametrize("kind", sorted(packing()))
def test_a_node_sees_what_it_learnt_and_in_the_end_the_shards_have_it(connect, kind):
    with sharded(settings(3), ASP, dim=DIM) as server:
        node = connect(server, config=config(kind, cache_bytes=1 << 20))
        ids = admitted(node)
        rng, learnt = np.random.default_rng(3), np.zeros((WORDS, DIM), dtype=np.float32)
        for _ in range(8):
            pushed = deltas(rng, ids)
            node.push(pushed)
            learnt[np.searchsorted(ids, pushed[1].ids)] += pushed[1].values
            assert np.allclose(node.pull(NONE, ids).rows[Table.OUT], learnt, atol=2e-3)
        plain = connect(server, "plain")
        kept = np.abs(plain.pull(NONE, ids).rows[Table.OUT] - learnt).max()
        assert kept > 2e-3
        node.client.flush_residuals(node.clock, node.sequence + 1)
        # What was kept back comes in steps of half of its size.
        last = np.abs(plain.pull(NONE, ids).rows[Table.OUT] - learnt).max()
        assert last <= 2e-3 + 0.5 * kept
        assert node.client.rows.figures()["cache"]["rows_spared"] > 0


@pytest.mark.parametrize(
    ("kind", "pulls"),
    [("fp16", "rows"), ("threshold", "changes"), ("onebit", "rows"), ("topk", "changes")],
)
def test_a_shard_that_crashed_gets_the_same_bytes_again(tmp_path, connect, kind, pulls):
    kept = settings(2, state_dir=tmp_path / "state", checkpoint_every_s=600.0)
    with sharded(kept, ASP, dim=DIM) as server:
        one = connect(server, "n0", config=config(kind, cache_bytes=1 << 20, pulls=pulls))
        two = connect(server, "n1", config=config(kind))
        plain = connect(server, "plain")
        ids, rng = admitted(one), np.random.default_rng(4)
        for node in (one, two):
            node.pull(ids, ids)
            node.push(deltas(rng, ids))
        one.client.checkpoint()
        for node in (one, two, one):
            node.pull(ids, ids)
            node.push(deltas(rng, ids))
        before = plain.pull(ids, ids)
        fleet(server).crash(1)
        fleet(server).restart(1)
        # The other node neither pulls nor pushes: its client looks after the shards by itself.
        after = plain.pull(ids, ids)
        assert np.array_equal(after.rows[Table.IN], before.rows[Table.IN])
        assert np.array_equal(after.rows[Table.OUT], before.rows[Table.OUT])
        left = np.zeros_like(after.rows[Table.OUT])
        one.client.feedback.add_to(Table.OUT, ids, left, one.sequence)
        for _ in range(12):
            seen = one.pull(ids, ids).rows[Table.OUT]
        step = 0.06 if pulls == "changes" else 2e-3
        assert np.allclose(seen, after.rows[Table.OUT] + left, atol=step)


def test_rows_that_a_node_keeps_are_not_sent_again_and_are_the_shards(connect):
    with sharded(settings(3), ASP, dim=DIM) as server:
        one, two = (
            connect(server, "n0", config=config("none", cache_bytes=1 << 20)),
            connect(server, "n1"),
        )
        ids, rng = admitted(one), np.random.default_rng(5)
        for _ in range(6):
            for node in (one, two, one):
                rows = one.pull(ids, ids)
                node.pull(ids[:5], ids[:5])
                node.push(deltas(rng, ids))
            rows, plain = one.pull(ids, ids), two.pull(ids, ids)
            assert np.allclose(rows.rows[Table.IN], plain.rows[Table.IN], atol=1e-5)
            assert np.allclose(rows.rows[Table.OUT], plain.rows[Table.OUT], atol=1e-5)
        spared = one.client.rows.figures()["cache"]["rows_spared"]
        one.pull(ids, ids)
        assert one.client.rows.figures()["cache"]["rows_spared"] == spared + 2 * WORDS
        until(lambda: server.status()["bytes"]["rows_spared"] > 0)


def test_changes_alone_are_sent_and_after_a_refusal_all_anew(connect):
    with sharded(settings(2), ASP, dim=DIM) as server:
        node = connect(server, config=config("none", cache_bytes=1 << 20, pulls="changes"))
        plain = connect(server, "plain")
        ids, rng = admitted(node), np.random.default_rng(6)
        node.pull(ids, ids)
        assert [kept.mirror.pulls for kept in node.client.rows.kept] == [1, 1]
        node.clock = 7
        with pytest.raises(RefusedError, match="reads at clock"):  # by the primary alone
            node.push(deltas(rng, ids))
        node.clock, node.sequence = 0, node.sequence - 1
        assert [kept.mirror.pulls for kept in node.client.rows.kept] == [0, 0]
        node.push(deltas(rng, ids))
        for _ in range(8):
            seen = node.pull(ids, ids)
        assert np.allclose(seen.rows[Table.OUT], plain.pull(ids, ids).rows[Table.OUT], atol=0.051)
        assert [kept.mirror.pulls for kept in node.client.rows.kept] == [8, 8]


def test_where_columns_lie_there_are_no_rows_to_pack_or_keep():
    def columns(**settings):
        config = ExchangeConfig(**settings)
        ParameterClient("grpc://x:1", node="n", config=config, rows=ColumnsOnShards)

    with pytest.raises(ConfigError, match="compression onebit with split columns"):
        columns(compression="onebit")
    with pytest.raises(ConfigError, match="cache_bytes 9 with split columns"):
        columns(cache_bytes=9)


def test_no_sums_of_contexts_are_asked_of_nodes_that_have_no_rows(connect):
    with sharded(settings(2, split="columns"), dim=DIM) as server:
        welcome = connect(server).client.welcome
        assert (welcome.usage, welcome.rare_mentions) == (False, 0)
    with sharded(settings(2), dim=DIM) as server:
        assert connect(server).client.welcome.usage


@pytest.mark.slow
def test_a_killed_shard_loses_nothing_of_what_was_packed_and_kept(tmp_path: Path):
    """kill -9 of both shards while a node packs and keeps rows: it still has all it learnt."""
    kept = settings(2, state_dir=tmp_path, checkpoint_every_s=0.5)
    stop, learnt = threading.Event(), np.zeros((WORDS, DIM), dtype=np.float32)
    pushed, failed = [0], []
    chosen = config("threshold", cache_bytes=1 << 20, max_unconfirmed=64)
    with running_server(kept, ASP, dim=DIM) as server:
        with (
            greet(server.location, node="n0", config=chosen) as client,
            greet(server.location, node="plain", config=QUICK) as plain,
        ):
            ids = client.admit([f"말{i}" for i in range(WORDS)], np.full(WORDS, 9))
            rng = np.random.default_rng(7)

            def train() -> None:
                from embedding.exchange.protocol import Push

                clock = 0
                while not stop.is_set():
                    rows = client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=clock))
                    if not np.allclose(rows.rows[Table.OUT], learnt, atol=2e-3):
                        failed.append(np.abs(rows.contexts - learnt).max())
                    parts = deltas(rng, ids)
                    counts = named([f"말{i}" for i in range(4)])
                    push = Push("n0", pushed[0] + 1, rows.clock, parts, counts, tokens=4)
                    clock = client.push(push).clock
                    learnt[np.searchsorted(ids, parts[1].ids)] += parts[1].values
                    pushed[0] += 1
                client.flush_residuals(clock, pushed[0] + 1)

            trainer = threading.Thread(target=train)
            trainer.start()
            try:
                for index in (0, 1, None):
                    goal = pushed[0] + 15
                    until(lambda goal=goal: pushed[0] >= goal or not trainer.is_alive())
                    if index is not None:
                        os.kill(server.pids[f"shard-{index}"], signal.SIGKILL)
            finally:
                stop.set()
                trainer.join(90)
            assert not failed
            seen = plain.pull(
                PullRequest({Table.IN: ids, Table.OUT: ids}, clock=plain.hello().clock)
            ).rows[Table.OUT]
            assert np.allclose(seen, learnt, atol=0.03)  # half a step is never sent
            status = client.status()
        assert status["tokens"] == 4 * pushed[0]
        assert [shard["restarts"] for shard in status["shards"]] == [1, 1]
        assert [shard["lost_pushes"] for shard in status["shards"]] == [0, 0]
