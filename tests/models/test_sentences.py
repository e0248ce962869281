"""Importance weights and the figures of each sentence that prioritised replay needs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from embedding.kernel.errors import ConfigError, InputError
from embedding.models.base import Track, make_trainer
from embedding.models.config import ModelConfig, Optimiser
from torchreference import TorchTrainer
from yeoron_lab.counts.sppmi import CountModel
from yeoron_lab.examples import examples

SAMPLED = ["sgns", "cbow", "fasttext"]
SENTENCES = [[0, 1, 2, 3], [4, 5, 6, 7, 8], [], [9], [9, 10]]
WEIGHTS = np.array([0.25, 1.0, 7.0, 2.0, 3.5], np.float32)

Make = Callable[[ModelConfig], Any]
both = pytest.mark.parametrize(
    "make", [make_trainer, lambda config: TorchTrainer(config, batch=1)], ids=["kernel", "torch"]
)
sampled = pytest.mark.parametrize("model", SAMPLED)
every_rule = pytest.mark.parametrize("optimiser", list(Optimiser))


def train(make: Make, bench: Any, seed: int = 5, rate: float = 0.05, **asked: Any) -> Any:
    """Train once; returns the loss and both tables."""
    tables = bench.copies()
    block = replace(bench.block, **asked)
    loss = make(bench.config).train(block, *tables, learning_rate=rate, seed=seed)
    return loss, *tables


def seed_without_repeats(bench: Any) -> int:
    """A seed whose pairs name no noise row twice: autograd sums what a kernel does in turn."""
    for seed in range(1000):
        outputs = np.sort(examples(bench.config, bench.block, seed).outputs, axis=1)
        if not ((outputs[:, 1:] == outputs[:, :-1]) & (outputs[:, 1:] >= 0)).any():
            return seed
    raise AssertionError("no seed without repeated noise rows")


@sampled
@every_rule
@pytest.mark.parametrize(("dim", "negative"), [(7, 5), (33, 2), (24, 13)])
def test_weighted_steps_are_those_of_autograd(
    model: str, optimiser: Optimiser, dim: int, negative: int, make_bench: Any
) -> None:
    config = ModelConfig(
        model=model, optimiser=optimiser, dim=dim, negative=negative, window=3, span=4000
    )
    # AdaGrad of fastText steps once a centre: pairs are centres where sentences have two words.
    short = model == "fasttext" and optimiser is Optimiser.ADAGRAD
    bench = make_bench(config, [s[:2] for s in SENTENCES] if short else SENTENCES, noise=4000)
    seed = seed_without_repeats(bench)
    asked = {"weights": WEIGHTS, "track": Track.LOSS}
    ours, vectors, contexts = train(make_trainer, bench, seed, **asked)
    theirs, *tables = train(lambda c: TorchTrainer(c, batch=1), bench, seed, **asked)
    assert np.abs(vectors - tables[0]).max() < 1e-5
    assert np.abs(contexts - tables[1]).max() < 1e-5
    assert ours.loss_sum == pytest.approx(theirs.loss_sum, rel=1e-5)
    np.testing.assert_allclose(ours.sentence_loss, theirs.sentence_loss, rtol=1e-4)
    assert ours.sentence_pairs.tolist() == theirs.sentence_pairs.tolist()
    _, plain, _ = train(make_trainer, bench, seed)
    assert np.abs(plain - vectors).max() > 1e-3  # the weights did something


@both
@sampled
@every_rule
def test_one_weight_for_all_is_a_factor_of_the_learning_rate(
    make: Make, model: str, optimiser: Optimiser, make_bench: Any
) -> None:
    bench = make_bench(ModelConfig(model=model, optimiser=optimiser, dim=12, window=3), SENTENCES)
    threes = np.full(5, 3.0, np.float32)
    for found, wanted in zip(
        train(make, bench, rate=0.02, weights=threes)[1:],
        train(make, bench, rate=np.float32(0.02) * np.float32(3.0))[1:],
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@both
@sampled
@every_rule
@pytest.mark.parametrize("asked", list(Track))
def test_asking_changes_no_row(
    make: Make, model: str, optimiser: Optimiser, asked: Track, make_bench: Any
) -> None:
    config = ModelConfig(model=model, optimiser=optimiser, dim=37, negative=3, window=4, span=7)
    bench = make_bench(config, [*SENTENCES, [0, 0, 1, 1, 0]] * 5, keep=0.8)
    loss, *tables = train(make, bench)
    assert (loss.sentence_loss, loss.sentence_pairs, loss.sentence_gradient) == (None, None, None)
    ones = np.ones(30, np.float32)
    other, *weighted = train(make, bench, weights=ones, track=asked)
    for table, same in zip(tables, weighted, strict=True):
        np.testing.assert_allclose(table, same, atol=1e-6)
    assert (loss.pairs, loss.words) == (other.pairs, other.words)
    assert other.loss_sum == pytest.approx(loss.loss_sum, rel=1e-6)


@both
@sampled
@every_rule
def test_the_losses_of_the_sentences_make_up_that_of_the_block(
    make: Make, model: str, optimiser: Optimiser, make_bench: Any
) -> None:
    bench = make_bench(ModelConfig(model=model, optimiser=optimiser, dim=12), SENTENCES)
    loss, *_ = train(make, bench, track=Track.LOSS)
    assert loss.sentence_gradient is None
    assert loss.sentence_loss.dtype == np.float32
    assert (loss.sentence_pairs == 0).tolist() == [False, False, True, True, False]
    assert loss.sentence_loss[[2, 3]].tolist() == [0.0, 0.0]
    assert loss.sentence_pairs.sum() == loss.pairs
    total = float((loss.sentence_loss * loss.sentence_pairs).sum())
    assert total == pytest.approx(loss.loss_sum, rel=1e-5)
    assert len({*loss.sentence_loss.tolist()}) == 4


@sampled
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_gradient_is_the_true_norm_at_a_small_rate(
    model: str, weights: Any, make_bench: Any
) -> None:
    """Words, targets and noise that recur within a sentence must be added up before the norm."""
    config = ModelConfig(model=model, dim=21, negative=6, window=3, span=12, move=2)
    sentences = [[0, 1, 2, 0, 1, 5], [4, 5, 6, 7, 8, 4, 4], [], [9], [9, 10]]
    bench = make_bench(config, sentences, noise=45)
    found, *_ = train(make_trainer, bench, rate=1e-3, track=Track.GRADIENT, weights=weights)
    true, *_ = train(lambda c: TorchTrainer(c), bench, track=Track.GRADIENT)
    assert true.sentence_gradient[[0, 1, 4]].min() > 1
    np.testing.assert_allclose(found.sentence_gradient, true.sentence_gradient, rtol=0.02)
    assert found.sentence_loss.sum() > 1


@sampled
def test_the_gradient_ranks_sentences_truly_at_a_usual_rate(model: str, make_bench: Any) -> None:
    random = np.random.default_rng(3)
    lengths = random.integers(1, 15, 60)
    bench = make_bench(
        ModelConfig(model=model, dim=30), [random.integers(0, 40, n).tolist() for n in lengths]
    )
    found, *_ = train(make_trainer, bench, rate=0.025, track=Track.GRADIENT)
    true, *_ = train(lambda c: TorchTrainer(c), bench, track=Track.GRADIENT)
    ranks = stats.spearmanr(found.sentence_gradient, true.sentence_gradient)
    assert ranks.statistic > 0.95


@both
@every_rule
def test_a_block_with_nothing_to_learn_has_figures_too(
    make: Make, optimiser: Optimiser, make_bench: Any
) -> None:
    bench = make_bench(ModelConfig(dim=4, optimiser=optimiser), [[-1, -1], [3]])
    loss, *_ = train(make, bench, track=Track.GRADIENT, weights=np.ones(2, np.float32))
    for figure in (loss.sentence_loss, loss.sentence_pairs, loss.sentence_gradient):
        assert figure.tolist() == [0, 0]
    bench = make_bench(ModelConfig(dim=4, optimiser=optimiser), [[1, 2]])
    block = replace(bench.block, pool=np.zeros(0, np.int32), track=Track.LOSS)
    loss = make(bench.config).train(block, *bench.copies(), learning_rate=0.1, seed=1)
    assert loss.pairs == 0
    assert loss.sentence_loss.tolist() == [0]


@pytest.mark.parametrize(
    "weights",
    [np.ones(4, np.float32), np.ones(5), np.array([1, 1, 0, 1, 1], np.float32)]
    + [np.array([1, 1, bad, 1, 1], np.float32) for bad in (-1.0, np.inf, np.nan)],
)
@both
def test_weights_that_cannot_work_are_refused(make: Make, weights: Any, make_bench: Any) -> None:
    bench = make_bench(ModelConfig(dim=4), SENTENCES)
    with pytest.raises(InputError, match="weights"):
        train(make, bench, weights=weights)


@pytest.mark.parametrize("asked", [{"weights": WEIGHTS}, {"track": Track.LOSS}])
def test_counted_models_know_no_sentences(asked: dict[str, Any], make_bench: Any) -> None:
    bench = make_bench(ModelConfig(model="glove", dim=4), SENTENCES)
    for make in (make_trainer, TorchTrainer):
        with pytest.raises(ConfigError, match="replay = uniform"):
            train(make, bench, **asked)
    with pytest.raises(ConfigError, match="replay = uniform"):
        CountModel(ModelConfig(model="sppmi")).count(replace(bench.block, **asked), seed=1)


PROGRAM = """
import hashlib
import numpy as np
from embedding.models.base import LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.base import make_trainer
random = np.random.default_rng(0)
tokens = random.integers(0, 200, 4000).astype(np.int32)
block = LocalBlock(tokens, np.arange(0, 4001, 20, dtype=np.int32), np.ones(200, np.float32),
                   random.integers(0, 250, 500).astype(np.int32))
vectors, contexts = (random.standard_normal((n, 150)).astype(np.float32) for n in (200, 250))
trainer = make_trainer(ModelConfig(model="cbow", optimiser="adagrad", dim=150))
for seed in range(3):
    trainer.train(block, vectors, contexts, learning_rate=0.05, seed=seed)
print(hashlib.sha256(vectors.tobytes() + contexts.tobytes()).hexdigest())
"""


def test_a_kernel_from_the_cache_gives_the_bytes_of_a_fresh_one(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    found = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert found[0] == found[1]
    assert len(found[0].strip()) == 64
