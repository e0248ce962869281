"""Shards of columns against one table: the torch reference's minibatches, and one node's pushes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from named import named
from threads import sharded

from embedding.exchange.protocol import Push
from embedding.exchange.shards.columns import ColumnsClient
from embedding.exchange.shards.minibatches import Minibatches, draws_of
from embedding.models.base import LocalBlock
from embedding.models.config import Model, ModelConfig
from embedding.models.reference import TorchTrainer
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rows.tables import first_vectors

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
    rows = node.client.pull(batch.ids, batch.ids, clock=node.clock)
    learnt, losses = node.client.learn(batch, rows)
    node.sequence += 1
    push = Push(node.name, node.sequence, rows.clock, counts=named(WORD_LIST), tokens=WORDS)
    node.clock = node.client.push(replace(push, minibatches=learnt)).clock
    return float(losses.sum())


def tables(server) -> tuple[np.ndarray, np.ndarray]:
    """Every row, put together from all columns."""
    state = server.state
    with state.lock:
        copy, slots = state.copy_rows(), np.arange(WORDS)
    copy.finish(state.lock)
    found = copy.pick("in", slots), copy.pick("out", slots)
    copy.release()
    return found


@pytest.mark.parametrize("model", [Model.SGNS, Model.CBOW])
@pytest.mark.parametrize("shards", [1, 2, 3, 4])
def test_any_number_of_shards_learns_what_one_table_learns(joined, shards, model):
    config = SGNS.model_copy(update={"model": model})
    with columns(shards) as server, joined(server) as node:
        assert isinstance(node.client, ColumnsClient)
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
