"""The loss of a fixed block and its gradient are those of torch's autograd."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from embedding.kernel.errors import ConfigError, InputError
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from torchreference import negative_sampling_loss
from yeoron_lab.examples import examples
from yeoron_lab.lbfgs.objective import Objective

SENTENCES = [[0, 1, 2, 3, 0], [4, 5, 6, 7, 8], [9, 10], [3, 3, 1]]


def reference(config: ModelConfig, block: Any, seed: int, tables: Any, weights: Any) -> Any:
    """Loss and gradients in float64 by autograd."""
    made = examples(config, block, seed)
    vectors, contexts = (torch.tensor(t, dtype=torch.float64, requires_grad=True) for t in tables)
    given = torch.tensor(made.inputs).long()
    there = (given >= 0).double()
    hidden = (vectors[given.clamp(min=0)] * there[..., None]).sum(1) / there.sum(1, keepdim=True)
    named = torch.tensor(made.outputs).long()
    loss = negative_sampling_loss(hidden, contexts[named.clamp(min=0)], named >= 0)
    loss = (loss * torch.tensor(weights)[torch.tensor(made.owners).long()]).sum()
    loss.backward()
    return loss.item(), vectors.grad.numpy(), contexts.grad.numpy()


@pytest.mark.parametrize("model", ["sgns", "cbow"])
@pytest.mark.parametrize(("dim", "negative"), [(1, 1), (7, 5), (100, 8)])
@pytest.mark.parametrize("weighted", [False, True])
def test_loss_and_gradient_are_those_of_autograd(
    model: str, dim: int, negative: int, weighted: bool, make_bench: Any
) -> None:
    config = ModelConfig(model=model, dim=dim, negative=negative, window=3, span=40)
    bench = make_bench(config, SENTENCES, noise=40)
    weights = np.array([0.5, 2.0, 1.0, 3.0] if weighted else [1.0] * 4, np.float32)
    block = replace(bench.block, weights=weights if weighted else None)
    tables = [2 * table for table in bench.copies()]
    before = [table.copy() for table in tables]
    found = Objective(config, block, 7).evaluate(*tables)
    loss, *gradients = reference(config, block, 7, tables, weights)
    assert found.loss == pytest.approx(loss, rel=1e-5)
    for ours, theirs in zip((found.vectors, found.contexts), gradients, strict=True):
        assert np.abs(ours - theirs).max() < 1e-5 * max(1.0, np.abs(theirs).max())
    assert all((a == b).all() for a, b in zip(before, tables, strict=True))


def test_the_objective_is_the_same_function_at_every_look(make_bench: Any) -> None:
    config = ModelConfig(dim=16, window=3)
    bench = make_bench(config, SENTENCES, noise=40)
    objective = Objective(config, bench.block, 7)
    rows = bench.copies()
    first, again = objective.evaluate(*rows), Objective(config, bench.block, 7).evaluate(*rows)
    assert first.loss == again.loss
    assert (first.vectors == again.vectors).all()
    # A small step against the gradient costs what the gradient says.
    length = float(np.square(first.vectors).sum() + np.square(first.contexts).sum())
    moved = rows[0] - 1e-3 * first.vectors, rows[1] - 1e-3 * first.contexts
    assert objective.evaluate(*moved).loss == pytest.approx(first.loss - 1e-3 * length, rel=1e-3)


def test_a_step_of_length_zero_of_the_trainer_costs_the_same(make_bench: Any) -> None:
    config = ModelConfig(dim=16, window=3)
    bench = make_bench(config, SENTENCES, noise=40)
    objective, rows = Objective(config, bench.block, 3), bench.copies()
    trained = make_trainer(config).train(bench.block, *bench.copies(), learning_rate=1e-12, seed=3)
    assert objective.pairs == trained.pairs
    assert objective.evaluate(*rows).loss == pytest.approx(trained.loss_sum, rel=1e-5)


def test_touches_count_the_terms_of_each_row(make_bench: Any) -> None:
    config = ModelConfig(dim=4, window=2, negative=3)
    bench = make_bench(config, SENTENCES, noise=40)
    made = examples(config, bench.block, 1)
    inward, outward = Objective(config, bench.block, 1).touches(*map(len, bench.copies()))
    assert inward.sum() == len(made.inputs)
    assert outward.sum() == (made.outputs >= 0).sum()


def test_what_has_no_loss_of_a_block_and_missing_rows_are_refused(make_bench: Any) -> None:
    config = ModelConfig(dim=4)
    bench = make_bench(config, SENTENCES, noise=40)
    with pytest.raises(ConfigError, match=r"glove.*cbow, sgns"):
        Objective(ModelConfig(model="glove", dim=4), bench.block, 1)
    vectors, contexts = bench.copies()
    with pytest.raises(InputError, match="named"):
        Objective(config, bench.block, 1).evaluate(vectors[:3], contexts)
