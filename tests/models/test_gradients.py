"""Each kernel makes the updates that torch's autograd gives, pair after pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from embedding.models.base import LocalBlock, make_trainer
from embedding.models.config import ModelConfig, Optimiser
from torchreference import TorchTrainer
from yeoron_lab.examples import examples

SAMPLED = ["sgns", "cbow", "fasttext"]


def both(bench: Any, seed: int, rounds: int = 1, device: str = "cpu") -> float:
    """Train with kernel and reference; returns the largest difference of an entry."""
    ours, theirs = bench.copies(), bench.copies()
    kernel = make_trainer(bench.config)
    reference = TorchTrainer(bench.config, device=device, batch=1)
    for step in range(rounds):
        loss = kernel.train(bench.block, *ours, learning_rate=0.05, seed=seed + step)
        other = reference.train(bench.block, *theirs, learning_rate=0.05, seed=seed + step)
    assert (loss.pairs, loss.words) == (other.pairs, other.words)
    assert loss.pairs > 0
    assert loss.loss_sum == pytest.approx(other.loss_sum, rel=1e-5)
    return max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True))


def seed_without_repeats(config: ModelConfig, block: LocalBlock) -> int:
    """A seed whose pairs name no noise row twice: autograd sums what a kernel does in turn."""
    for seed in range(1000):
        outputs = np.sort(examples(config, block, seed).outputs, axis=1)
        repeats = (outputs[:, 1:] == outputs[:, :-1]) & (outputs[:, 1:] >= 0)
        if not repeats.any():
            return seed
    raise AssertionError("no seed without repeated noise rows")


@pytest.mark.parametrize("model", SAMPLED)
@pytest.mark.parametrize("optimiser", list(Optimiser))
@pytest.mark.parametrize(("dim", "negative"), [(1, 1), (7, 5), (33, 2), (100, 8), (24, 13)])
def test_kernel_and_autograd_agree(
    model: str, optimiser: Optimiser, dim: int, negative: int, make_bench: Any
) -> None:
    config = ModelConfig(
        model=model, optimiser=optimiser, dim=dim, negative=negative, window=3, span=4000
    )
    # AdaGrad of fastText steps once a centre: pairs are centres where sentences have two words.
    short = model == "fasttext" and optimiser is Optimiser.ADAGRAD
    sentences = [[0, 1], [2, 3], [4, 5]] if short else [[0, 1, 2, 3], [4, 5, 6, 7, 8], [9, 10]]
    bench = make_bench(config, sentences, noise=4000)
    assert both(bench, seed_without_repeats(config, bench.block)) < 1e-5


@pytest.mark.parametrize("optimiser", list(Optimiser))
def test_words_beside_themselves_and_noise_that_is_the_target_agree(
    optimiser: Optimiser, make_bench: Any
) -> None:
    config = ModelConfig(optimiser=optimiser, dim=12, negative=1, window=4, span=5)
    sentences = [[0, 1, 1, 0, 2, 2, 2], [3, 3, 3, 3], [1, 4, 1, 4, 1, 4]]
    bench = make_bench(config, sentences, noise=5, words=5)
    made = examples(config, bench.block, seed=3)
    assert (made.outputs[:, 1] < 0).any()
    sizes = set(np.diff(made.starts).tolist())
    assert sizes == ({1, 2} if optimiser is Optimiser.SGD else {1})
    assert both(bench, seed=3, rounds=2) < 1e-5


@pytest.mark.parametrize("model", [*SAMPLED, "glove"])
def test_the_reference_does_the_same_on_every_device(
    device: str, model: str, make_bench: Any
) -> None:
    config = ModelConfig(model=model, dim=24, window=3, span=4000).model_copy(
        update={"cells": 4096}
    )
    bench = make_bench(config, [[0, 1, 2, 3], [4, 5, 6, 7, 8], [9, 10]], noise=4000)
    seed = 5 if model == "glove" else seed_without_repeats(config, bench.block)
    assert both(bench, seed, device=device) < 1e-5


@pytest.mark.parametrize("dim", [2, 16, 51])
def test_glove_and_autograd_agree_block_after_block(dim: int, make_bench: Any) -> None:
    config = ModelConfig(model="glove", dim=dim, window=4).model_copy(update={"cells": 4096})
    sentences = [[0, 1, 2, 3, 1, 0], [4, 5, 6, 7, 8, 4], [9, 10, 0, 1]]
    assert both(make_bench(config, sentences, ids=True), seed=5, rounds=3) < 1e-5


@pytest.mark.parametrize("model", SAMPLED)
def test_accumulators_follow_the_stable_ids(model: str, make_bench: Any) -> None:
    config = ModelConfig(
        model=model, optimiser=Optimiser.ADAGRAD, dim=8, negative=1, window=1
    ).model_copy(update={"cells": 4096})
    bench = make_bench(config, [[0, 1], [2, 3]], ids=True)
    moved = []
    trainer = make_trainer(config)
    for _ in range(2):
        vectors, contexts = bench.copies()
        trainer.train(bench.block, vectors, contexts, learning_rate=0.1, seed=1)
        moved.append(np.abs(vectors - bench.vectors).max())
    assert moved[1] < 0.9 * moved[0]


def test_noise_that_equals_the_target_is_left_out(make_bench: Any) -> None:
    config = ModelConfig(dim=5, negative=7, window=1)
    bench = make_bench(config, [[0, 1]])
    block = LocalBlock(
        bench.block.tokens, bench.block.sentences, bench.block.keep, np.zeros(50, np.int32)
    )
    vectors, contexts = bench.copies()
    loss = make_trainer(config).train(block, vectors, contexts, learning_rate=0.1, seed=1)
    # Centre 0 has no noise but itself; centre 1 has row 0 as noise seven times over.
    x, o = bench.vectors[1].astype(np.float64), bench.contexts[0].astype(np.float64)
    right = 1 / (1 + np.exp(-x @ o))
    after = o + 0.1 * (1 - right) * x
    wanted = -np.log(right)
    y = bench.vectors[0].astype(np.float64)
    target = bench.contexts[1].astype(np.float64)
    wanted -= np.log(1 / (1 + np.exp(-y @ target)))
    assert np.allclose(vectors[1], x + 0.1 * (1 - right) * o, atol=1e-6)
    assert loss.pairs == 2
    assert loss.loss_sum > wanted + 7 * 0.3
    assert not np.allclose(contexts[0], after, atol=1e-3)  # the noise of centre 1 moved it on
    assert np.array_equal(contexts[2:], bench.contexts[2:])


def test_a_large_batch_in_torch_still_learns(make_bench: Any) -> None:
    config = ModelConfig(dim=16, window=2, negative=3)
    random = np.random.default_rng(0)
    bench = make_bench(
        config, (random.integers(0, 20, (60, 1)) + random.integers(0, 2, (60, 8))).tolist()
    )
    trainer = TorchTrainer(config, batch=256)
    losses = [
        trainer.train(bench.block, bench.vectors, bench.contexts, learning_rate=0.02, seed=s).mean
        for s in range(12)
    ]
    assert losses[-1] < losses[0] - 0.1
