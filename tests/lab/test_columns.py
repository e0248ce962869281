"""Shards of columns against one table: the torch reference's minibatches, and one node's pushes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from named import QUICK, named
from threads import fleet, sharded

from embedding.exchange.codec import with_record
from embedding.exchange.peer import Channel
from embedding.exchange.protocol import PROTOCOL_VERSION, PullRequest, Push
from embedding.exchange.wire import Message
from embedding.kernel.errors import ConfigError, RefusedError
from embedding.kernel.records import ScorePairs, Table
from embedding.models.base import LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.starting import first_vectors
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer
from torchreference import TorchTrainer
from yeoron_lab.columns.minibatches import (
    Minibatches,
    draws_of,
    encode_block_push,
)
from yeoron_lab.columns.path import ColumnsOnShards
from yeoron_lab.columns.shard import moved

pytestmark = pytest.mark.laboratory

DIM, SEED, WORDS = 10, 3, 30
WORD_LIST = [f"말{i}" for i in range(WORDS)]
SGNS = ModelConfig(dim=DIM, window=3, negative=4, span=16)


def settings(shards: int, **changes) -> ServerConfig:
    given = {"min_count": 1, "shards": shards, "split": "columns", "device": "cpu"}
    return ServerConfig(**{**given, **changes})


@contextmanager
def columns(shards: int, sync: SyncConfig | None = None, **changes):
    """A server whose shards hold columns."""
    with sharded(settings(shards, **changes), sync, dim=DIM, seed=SEED) as server:
        yield server


@pytest.fixture
def joined(connect):
    """A connected node, which says goodbye before its server ends."""

    @contextmanager
    def open_(server, name: str = "n0"):
        node = connect(server, name)
        try:
            yield node
        finally:
            node.client.close()

    return open_


def block(ids: np.ndarray, seed: int, config: ModelConfig = SGNS, pairs: int = 32) -> Minibatches:
    """A block of random text over all words, in which the last five occur as noise only."""
    rng = np.random.default_rng(seed)
    inputs = len(ids) - 5
    return Minibatches(
        words=rng.integers(0, inputs, 60).astype(np.int32),
        sentences=np.array([0, 25, 60], dtype=np.int32),
        pool=rng.integers(0, len(ids), 40).astype(np.int32),
        ids=ids,
        inputs=inputs,
        draws=draws_of(config),
        seed=seed,
        pairs=pairs,
        rate=0.05,
    )


class Reference:
    """Both tables whole, trained by the torch reference."""

    def __init__(self, ids: np.ndarray, config: ModelConfig = SGNS, pairs: int = 32) -> None:
        self.vectors = first_vectors(ids, DIM, SEED)
        self.contexts = np.zeros((len(ids), DIM), dtype=np.float32)
        self.trainer = TorchTrainer(config, batch=pairs)

    def learn(self, batch: Minibatches) -> float:
        keep = np.empty(0, np.float32)
        local = LocalBlock(batch.words, batch.sentences, keep, batch.pool)
        tables = self.vectors, self.contexts
        loss = self.trainer.train(local, *tables, learning_rate=batch.rate, seed=batch.seed)
        return loss.loss_sum


def learn(node, batch: Minibatches) -> float:
    """Pull, learn and push one block; the summed loss."""
    rows = node.client.pull(
        PullRequest({Table.IN: batch.ids, Table.OUT: batch.ids}, clock=node.clock)
    )
    learnt, losses = node.client.rows.learn(batch, rows)
    node.sequence += 1
    push = Push(node.name, node.sequence, rows.clock, counts=named(WORD_LIST), tokens=WORDS)
    node.clock = node.client.push(replace(push, minibatches=learnt)).clock
    return float(losses.sum())


def tables(server) -> tuple[np.ndarray, np.ndarray]:
    """Every row, put together from all columns."""
    state = server.state
    with state.lock:
        copy, slots = state.rows.copy(), np.arange(WORDS)
    copy.finish(state.lock)
    found = copy.pick("in", slots), copy.pick("out", slots)
    copy.release()
    return found


@pytest.mark.parametrize("model", ["sgns", "cbow"])
@pytest.mark.parametrize("shards", [1, 2, 3, 4])
def test_any_number_of_shards_learns_what_one_table_learns(joined, shards, model):
    config = SGNS.model_copy(update={"model": model})
    with columns(shards) as server, joined(server) as node:
        assert isinstance(node.client.rows, ColumnsOnShards)
        ids = node.words(*WORD_LIST)
        whole = Reference(ids, config)
        for seed in range(4):
            batch = block(ids, seed, config)
            assert learn(node, batch) == pytest.approx(whole.learn(batch), rel=1e-4)
        vectors, contexts = tables(server)
        assert np.abs(vectors - first_vectors(ids, DIM, SEED)).max() > 0.01, "it learnt something"
        np.testing.assert_allclose(vectors, whole.vectors, atol=1e-4)
        np.testing.assert_allclose(contexts, whole.contexts, atol=1e-4)
        assert [s["rows"] for s in server.status()["shards"]] == [WORDS] * shards


def compare(server, whole: Reference) -> None:
    vectors, contexts = tables(server)
    np.testing.assert_allclose(vectors, whole.vectors, atol=1e-4)
    np.testing.assert_allclose(contexts, whole.contexts, atol=1e-4)


def test_a_shard_killed_between_blocks_gets_each_of_them_once(joined, tmp_path):
    with columns(2, state_dir=tmp_path, checkpoint_every_s=1000) as server, joined(server) as node:
        ids = node.words(*WORD_LIST)
        whole = Reference(ids)
        for seed in range(6):
            batch = block(ids, seed)
            learn(node, batch)
            whole.learn(batch)
            if seed == 1:
                node.client.checkpoint()
            if seed in (0, 3):
                fleet(server).crash(seed % 2)
                fleet(server).restart(seed % 2)
        compare(server, whole)
        assert [s["lost_pushes"] for s in server.status()["shards"]] == [0, 0]
        assert server.status()["tokens"] == 6 * WORDS
    with columns(2, state_dir=tmp_path) as server:
        compare(server, whole)
    with pytest.raises(ConfigError, match="has split columns, the server was started with rows"):
        ParameterServer(settings(2, state_dir=tmp_path, split="rows"), dim=DIM)


def test_a_shard_killed_in_the_middle_of_a_block_has_it_learnt_anew(joined, tmp_path):
    with columns(2, state_dir=tmp_path) as server, joined(server) as node:
        ids = node.words(*WORD_LIST)
        whole = Reference(ids)
        scores, calls = node.client.rows._scores, []

        def killing(message):
            calls.append(message.header["op"])
            if len(calls) == 4:
                fleet(server).crash(1)
                fleet(server).restart(1)
            return scores(message)

        node.client.rows._scores = killing
        batch = block(ids, 1)
        assert learn(node, batch) == pytest.approx(whole.learn(batch), rel=1e-4)
        assert calls.count("open") > 1, "it began again"
        compare(server, whole)


def test_a_block_whose_last_message_is_lost_is_pushed_whole(joined):
    with columns(2) as server, joined(server) as node:
        ids = node.words(*WORD_LIST)
        whole = Reference(ids)
        for seed in range(2):
            batch = block(ids, seed)
            rows = node.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=node.clock))
            learnt, _ = node.client.rows.learn(batch, rows)
            list(node.client.rows.links)[seed].peer.close()
            node.sequence += 1
            push = Push(node.name, node.sequence, rows.clock, minibatches=learnt)
            node.clock = node.client.push(push).clock
            whole.learn(batch)
        compare(server, whole)


@pytest.mark.parametrize("combine", ["sum", "mean"])
def test_blocks_of_one_clock_step_from_the_same_rows(joined, combine):
    sync = SyncConfig(policy="bsp", combine=combine)
    with columns(3, sync) as server, joined(server, "a") as one, joined(server, "b") as two:
        ids = one.words(*WORD_LIST)
        start = Reference(ids)
        batches = [block(ids, 1), block(ids, 2)]
        for node in (one, two):
            node.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=0))
        for node, batch in zip((one, two), batches, strict=True):
            learn(node, batch)
        ends = [Reference(ids), Reference(ids)]
        for end, batch in zip(ends, batches, strict=True):
            end.learn(batch)
        for name in ("vectors", "contexts"):
            before = getattr(start, name)
            moves = [getattr(end, name) - before for end in ends]
            both = sum(moves) / (1 if combine == "sum" else 2)
            setattr(start, name, before + both)
        compare(server, start)


def test_shares_scale_how_far_each_row_moves():
    ids = np.arange(WORDS)
    batch = block(ids, 4)
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=batch.examples.outputs.shape).astype(np.float32)
    shares = rng.random(batch.inputs + WORDS).astype(np.float32)
    rows = [rng.normal(size=(n, 3)).astype(np.float32) for n in (batch.inputs, WORDS)]
    full = moved(replace(batch, slopes=slopes), *(each.copy() for each in rows))
    part = moved(replace(batch, slopes=slopes, shares=shares), *(each.copy() for each in rows))
    factors = np.split(shares, [batch.inputs])
    for whole, some, factor in zip(full, part, factors, strict=True):
        np.testing.assert_allclose(some.values, whole.values * factor[:, None], rtol=1e-5)


def test_pairs_are_scored_on_whole_rows(joined):
    found = []
    for split in ("rows", "columns"):
        with columns(3, split=split) as server, joined(server) as node:
            ids = node.words(*WORD_LIST)
            pairs = ScorePairs("뉴스", ids[:8], ids[8:16], ids[16:24, None], np.zeros(8, np.int64))
            more = ScorePairs("글판", ids[9:12], ids[:3], ids[4:7, None], np.zeros(3, np.int64))
            found.append(
                node.client.pull(
                    PullRequest(
                        {Table.IN: ids[:0], Table.OUT: ids[:0]}, clock=0, score=[pairs, more]
                    )
                ).nll
            )
    assert len(found[0]) == 2
    assert found[0] == pytest.approx(found[1], rel=1e-6)


@pytest.mark.parametrize(
    ("change", "sync", "reason"),
    [
        ({"shards": DIM + 1}, {}, "rows have 10 columns"),
        ({}, {"policy": "easgd"}, "policy easgd with split columns"),
        ({}, {"policy": "asp", "n_push": 2}, "n_push 2, n_fetch 1 with split columns"),
    ],
)
def test_what_does_not_go_with_columns_is_refused(change, sync, reason):
    with pytest.raises(ConfigError, match=reason):
        ParameterServer(settings(**{"shards": 2, **change}), SyncConfig(**sync), dim=DIM)


def test_models_that_need_more_than_columns_are_refused():
    with pytest.raises(ConfigError, match="the bias of a row is one more column"):
        ParameterServer(settings(2), dim=DIM, biases=1)
    with pytest.raises(ConfigError, match="no shard knows"):
        ParameterServer(settings(2, optimizer="adagrad"), dim=DIM)


OPEN = {"op": "open", "at": [0, 0], "rows": "float32"}


def opening(**changes) -> Message:
    """A message that opens a block, some of whose parts are exchanged."""
    batch = block(np.arange(WORDS), 1)
    return with_record(Message(OPEN), "batch", replace(batch, **changes))


SGNS_DRAWS = draws_of(SGNS)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (opening(words=np.array([WORDS], np.int32)), "words name rows outside"),
        (opening(words=np.array([-1], np.int32)), "at least 0"),
        (opening(pool=np.array([WORDS], np.int32)), "pool name rows outside"),
        (opening(ids=np.zeros(WORDS, np.int64)), "names one twice"),
        (opening(ids=np.arange(5)), "25 inputs of 5 rows"),
        (opening(sentences=np.array([0, 70], np.int32)), "must rise from 0 to 60"),
        (opening(sentences=np.array([], np.int32)), "must rise from 0 to 60"),
        (opening(seed=-1), "seed must be"),
        (opening(pairs=0), "pairs must be"),
        (opening(rate=1e9), "rate must be"),
        (opening(rate="x"), "rate must be"),
        (opening(draws={}), "`draws` must have"),
        (opening(draws={**SGNS_DRAWS, "window": 0}), "no settings of a model"),
        (
            opening(draws={**SGNS_DRAWS, "model": "glove"}),
            "glove: it is not learnt by one number",
        ),
        (opening(draws={**SGNS_DRAWS, "window": 1000, "negative": 1000}), "has to be smaller"),
        (Message(OPEN), "learnt where columns lie"),
        (Message({**OPEN, "batch": [1]}), "a row of batch must be"),
        (Message({"op": "open", "batch": {}}), "a row of batch must be"),
    ],
)
def test_a_wrong_block_is_refused_and_the_stream_goes_on(message, reason):
    with columns(1, max_message_bytes=1_000_000) as server:
        channel = Channel(fleet(server).servers[0].location, QUICK)
        channel.open()
        hello = {"op": "hello", "version": PROTOCOL_VERSION, "node": "fuzz", "first": 1}
        channel.request(Message(hello))
        with pytest.raises(RefusedError, match=reason):
            channel.request(message)
        for op in ("step", "learnt"):
            assert channel.request(Message({"op": op})).header["status"] == "waiting"
        channel.close()


def test_wrong_numbers_of_a_block_are_refused_and_no_row_changes(joined):
    with columns(1) as server, joined(server) as node:
        ids = node.words(*WORD_LIST)
        before = tables(server)
        batch = block(ids, 1)
        rows = node.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=0))
        learnt, _ = node.client.rows.learn(batch, rows)
        for slopes, reason in (
            (learnt.slopes[:-1], "slopes of shape"),
            (np.full_like(learnt.slopes, np.nan), "not finite"),
        ):
            with pytest.raises(RefusedError, match=reason):
                node.client.push(Push("n0", 1, 0, minibatches=replace(learnt, slopes=slopes)))
        few = replace(learnt, shares=np.ones(3, np.float32))
        with pytest.raises(RefusedError, match="3 shares"):
            node.client.push(Push("n0", 1, 0, minibatches=few))
        assert all(np.array_equal(*each) for each in zip(before, tables(server), strict=True))


def test_rows_here_refuse_a_block(connect):
    with sharded(settings(2, split="rows"), dim=DIM) as server:
        node = connect(server)
        ids = node.words(*WORD_LIST)
        channel = Channel(fleet(server).servers[0].location, QUICK)
        channel.open()
        channel.request(
            Message({"op": "hello", "version": PROTOCOL_VERSION, "node": "x", "first": 1})
        )
        with pytest.raises(RefusedError, match="operation 'open': not known"):
            channel.request(opening())
        batch = block(ids, 1)
        with pytest.raises(RefusedError, match="rows lie here, not columns"):
            channel.request(encode_block_push(Push("x", 1, 0, minibatches=batch)))
        channel.close()
        node.client.close()
