"""The contract of `Trainer`: every kernel, every torch reference, and the kernel for GPUs, which
Triton interprets where there is no GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from embedding.kernel.errors import ConfigError, InputError
from embedding.models.base import BlockLoss, LocalBlock, Trainer, make_trainer
from embedding.models.config import ModelConfig, Optimiser
from embedding.models.traits import MODELS
from gpukernel import DEVICE, gpu_kernel
from torchreference import REFERENCES, TorchTrainer

SENTENCES = [[0, 1, 2, 3, 4], [5, 6, 7], [8, 9, 0, 1, 5, 5, 6]]


def kernels(config: ModelConfig) -> Trainer:
    return make_trainer(config)


def references(config: ModelConfig) -> Trainer:
    return TorchTrainer(config, batch=64)


class OnGpu:
    """The kernel for GPUs on copies of numpy tables: on a GPU, or interpreted."""

    def __init__(self, config: ModelConfig) -> None:
        self._trainer = gpu_kernel().GpuTrainer(config)

    def train(self, block: LocalBlock, vectors: Any, contexts: Any, **rest: Any) -> BlockLoss:
        block.check(vectors, contexts)
        there = [torch.from_numpy(table).to(DEVICE) for table in (vectors, contexts)]
        loss = self._trainer.train(block, *there, **rest)
        for table, rows in zip((vectors, contexts), there, strict=True):
            table[:] = rows.cpu().numpy()
        return loss


@pytest.fixture(params=MODELS.names())
def config(request: pytest.FixtureRequest) -> ModelConfig:
    return ModelConfig(model=request.param, dim=9, negative=3, window=2).model_copy(
        update={"cells": 2048}
    )


@pytest.fixture(params=[kernels, references, OnGpu], ids=["kernel", "torch", "gpu"])
def make(request: pytest.FixtureRequest, config: ModelConfig) -> Callable[[ModelConfig], Trainer]:
    if request.param is references and config.model not in REFERENCES:
        pytest.skip("it has no torch reference")
    if request.param is OnGpu and not config.traits.gpu:
        pytest.skip("there is no kernel of it for GPUs")
    return request.param


def test_a_trainer_is_one(config: ModelConfig, make: Any) -> None:
    assert isinstance(make(config), Trainer)


def test_it_updates_in_place_and_counts(config: ModelConfig, make: Any, make_bench: Any) -> None:
    bench = make_bench(config, SENTENCES)
    vectors, contexts = bench.copies()
    loss = make(config).train(bench.block, vectors, contexts, learning_rate=0.05, seed=1)
    assert loss.words == 15
    assert loss.pairs > 0
    assert 0 < loss.mean < 50
    assert not np.array_equal(vectors, bench.vectors)
    assert not np.array_equal(contexts, bench.contexts)
    untouched = np.arange(10, 40)  # words that the block does not hold
    assert np.array_equal(vectors[untouched], bench.vectors[untouched])


def test_the_same_seed_gives_the_same_bytes(
    config: ModelConfig, make: Any, make_bench: Any
) -> None:
    if make is OnGpu and DEVICE == "cuda":
        pytest.skip("a GPU adds in any order")
    bench = make_bench(config, SENTENCES * (1 if make is OnGpu else 8), keep=0.7, ids=True)
    results = []
    for seed in (3, 3, 4):
        vectors, contexts = bench.copies()
        trainer = make(config)
        for _ in range(2):
            loss = trainer.train(bench.block, vectors, contexts, learning_rate=0.05, seed=seed)
        results.append((vectors.tobytes(), contexts.tobytes(), loss))
    assert results[0] == results[1]
    assert results[0][0] != results[2][0]


@pytest.mark.parametrize(
    "sentences",
    [[], [[]], [[3]], [[-1, -1]], [[-1, 4, -1]]],
    ids=["no sentence", "empty sentence", "one word", "only unknown", "one known"],
)
def test_nothing_to_learn_changes_nothing(
    config: ModelConfig, make: Any, make_bench: Any, sentences: list[list[int]]
) -> None:
    bench = make_bench(config, sentences)
    vectors, contexts = bench.copies()
    loss = make(config).train(bench.block, vectors, contexts, learning_rate=0.05, seed=1)
    assert (loss.loss_sum, loss.pairs, loss.mean) == (0.0, 0, 0.0)
    assert np.array_equal(vectors, bench.vectors)
    assert np.array_equal(contexts, bench.contexts)


def test_sentence_borders_hold(config: ModelConfig, make: Any, make_bench: Any) -> None:
    bench = make_bench(config, [[word] for word in range(12)])
    vectors, contexts = bench.copies()
    loss = make(config).train(bench.block, vectors, contexts, learning_rate=0.05, seed=1)
    assert loss.pairs == 0
    assert np.array_equal(vectors, bench.vectors)


def test_windows_reach_over_unknown_words(config: ModelConfig, make: Any, make_bench: Any) -> None:
    dense = make_bench(config, [[0, 1, 2, 3]])
    sparse = make_bench(config, [[-1, 0, -1, -1, -1, 1, 2, -1, 3, -1]])
    results = []
    for bench in (dense, sparse):
        vectors, contexts = bench.copies()
        make(config).train(bench.block, vectors, contexts, learning_rate=0.05, seed=2)
        results.append(vectors)
    assert np.array_equal(results[0], results[1])


def test_a_word_that_is_never_kept_is_not_learnt(
    config: ModelConfig, make: Any, make_bench: Any
) -> None:
    bench = make_bench(config, [[0, 1, 2, 1, 3, 1, 4]] * 3)
    bench.block.keep[1] = 0.0
    vectors, contexts = bench.copies()
    loss = make(config).train(bench.block, vectors, contexts, learning_rate=0.05, seed=1)
    assert loss.words == 12
    assert np.array_equal(vectors[1], bench.vectors[1])


@pytest.mark.parametrize("optimiser", list(Optimiser))
@pytest.mark.parametrize("scale", [0.0, 1e-30, 30.0, 1e18])
def test_extreme_rows_never_make_nan(
    config: ModelConfig, make_bench: Any, scale: float, optimiser: Optimiser
) -> None:
    config = config.model_copy(update={"optimiser": optimiser})
    bench = make_bench(config, SENTENCES, scale=scale)
    make_trainer(config).train(
        bench.block, bench.vectors, bench.contexts, learning_rate=0.5, seed=1
    )
    assert np.isfinite(bench.vectors).all()
    assert np.isfinite(bench.contexts).all()


def test_rows_that_are_not_there_are_refused(
    config: ModelConfig, make: Any, make_bench: Any
) -> None:
    bench = make_bench(config, SENTENCES)
    with pytest.raises(InputError, match="tokens: rows 0 to 9 are named"):
        make(config).train(
            bench.block, bench.vectors[:9], bench.contexts, learning_rate=0.1, seed=1
        )
    with pytest.raises(InputError, match="pool: rows 0 to 59 are named"):
        make(config).train(
            bench.block, bench.vectors, bench.contexts[:59], learning_rate=0.1, seed=1
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sentences": np.array([0, 9], np.int32)}, "sentence offsets"),
        ({"sentences": np.array([], np.int32)}, "sentence offsets"),
        ({"keep": np.ones(3, np.float32)}, "keep has 3 rows"),
    ],
)
def test_a_block_that_disagrees_with_itself_is_refused(
    change: dict[str, Any], message: str, make_bench: Any
) -> None:
    bench = make_bench(ModelConfig(dim=4), SENTENCES)
    fields = {name: getattr(bench.block, name) for name in ("tokens", "sentences", "keep", "pool")}
    block = LocalBlock(**(fields | change))
    with pytest.raises(InputError, match=message):
        block.check(bench.vectors, bench.contexts)


def test_tables_a_kernel_cannot_update_are_refused(make_bench: Any) -> None:
    bench = make_bench(ModelConfig(dim=4), SENTENCES)
    with pytest.raises(InputError, match="C-contiguous float32"):
        bench.block.check(bench.vectors.astype(np.float64), bench.contexts)
    with pytest.raises(InputError, match="C-contiguous float32"):
        bench.block.check(np.asfortranarray(bench.vectors), bench.contexts)
    with pytest.raises(InputError, match="same dimension"):
        bench.block.check(np.ascontiguousarray(bench.vectors[:, :3]), bench.contexts)


def test_sppmi_is_not_trained_by_blocks() -> None:
    with pytest.raises(ConfigError, match="no trainer learns it"):
        make_trainer(ModelConfig(model="sppmi"))
    with pytest.raises(ConfigError, match="no trainer learns it"):
        TorchTrainer(ModelConfig(model="sppmi"))


def test_two_threads_share_one_pair_of_tables(make_bench: Any) -> None:
    config = ModelConfig(dim=16, window=3, negative=3, sample=0)
    random = np.random.default_rng(1)
    bench = make_bench(config, random.integers(0, 40, (400, 12)).tolist())
    losses: list[float] = []

    def work(seed: int) -> None:
        trainer = make_trainer(config)
        tables = (bench.vectors, bench.contexts)
        losses.extend(
            trainer.train(bench.block, *tables, learning_rate=0.05, seed=seed + step).mean
            for step in range(5)
        )

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (0, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(losses) == 10
    assert np.isfinite(bench.vectors).all()
    assert min(losses) < max(losses)
