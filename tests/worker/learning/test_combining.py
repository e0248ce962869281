"""The share of its delta that a node pushes beside others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.records import Table
from embedding.models.base import BlockLoss, LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.sampling import NoiseTable
from embedding.worker.learning.combining import Usual, share, steps_of, updates


def alike(*steps: float) -> np.ndarray:
    """Rows that are trained as much here as at any other node."""
    return np.repeat(np.asarray(steps)[:, None], 2, axis=1)


STEPS = st.lists(st.floats(0, 1e4), min_size=1, max_size=20).map(
    lambda steps: alike(*sorted(steps))
)


@given(STEPS, st.integers(2, 64))
def test_a_share_lies_between_averaging_and_adding_up(steps: np.ndarray, nodes: int) -> None:
    found = share(steps, nodes)
    assert found.dtype == np.float32
    assert (found >= np.float32(1 / nodes) * (1 - 1e-6)).all()
    assert (found <= 1 + 1e-6).all()
    assert (np.diff(found) <= 1e-6).all(), "the more often a row is updated, the less is pushed"


@given(STEPS)
def test_who_is_alone_pushes_all(steps: np.ndarray) -> None:
    assert share(steps, 1).tolist() == [1.0] * len(steps)
    assert share(steps, 0).tolist() == [1.0] * len(steps)


def test_rows_that_are_touched_rarely_are_added_up_and_those_at_rest_averaged() -> None:
    assert share(alike(0.0, 1e-6), 4) == pytest.approx([1.0, 1.0], abs=1e-5)
    assert share(alike(100.0), 4) == pytest.approx([0.25])


@given(st.floats(1e-3, 20), st.integers(2, 16))
def test_all_shares_together_go_as_far_as_one_node_after_the_other(h: float, nodes: int) -> None:
    """On a quadratic: each goes 1 - exp(-h) of the way from the same place."""
    together = nodes * share(alike(h), nodes)[0] * -np.expm1(-h)
    assert together == pytest.approx(-np.expm1(-nodes * h), rel=1e-5)


@pytest.mark.parametrize("model", ["sgns", "cbow"])
def test_expected_updates_add_up_to_those_that_were_made(model: str) -> None:
    """Every pair moves its target once and `negative` rows of the pool."""
    rng = np.random.default_rng(1)
    tokens = rng.integers(-1, 10, 400).astype(np.int32)
    block = LocalBlock(
        tokens=tokens,
        sentences=np.asarray([0, 400], dtype=np.int32),
        keep=np.linspace(0.2, 1.0, 10, dtype=np.float32),
        pool=rng.integers(0, 14, 50).astype(np.int32),
        ids=np.arange(14, dtype=np.int64),
    )
    config = ModelConfig(model=model, window=3, negative=5)
    inputs, outputs = updates(block, BlockLoss(1.0, 1000), config)
    assert (len(inputs), len(outputs)) == (10, 14)
    assert outputs.sum() == pytest.approx(1000 * (1 + 5))
    each = (1 + 5) * (3 + 1 if model == "cbow" else 1)
    assert inputs.sum() == pytest.approx(1000 * each)
    kept = np.bincount(tokens[tokens >= 0], minlength=10) * block.keep
    assert inputs / inputs.sum() == pytest.approx(kept / kept.sum())


@given(st.floats(1e-3, 20), st.floats(0, 20), st.integers(2, 16))
def test_a_row_is_held_back_by_what_others_do_to_it(h: float, others: float, nodes: int) -> None:
    """Alone it moves freely; the shares of all go as far as one node after the other."""
    steps = np.asarray([[h, others]])
    assert share(np.asarray([[h, 0.0]]), nodes) == pytest.approx([1.0], abs=1e-5)
    gone = -np.expm1(-np.asarray([h, others]))
    together = share(steps, nodes)[0] * (gone[0] + (nodes - 1) * gone[1])
    assert together == pytest.approx(-np.expm1(-h - (nodes - 1) * others), rel=1e-4)


@pytest.mark.parametrize("model", ["sgns", "cbow"])
def test_a_word_of_this_text_alone_moves_more_freely_than_one_of_every_text(model: str) -> None:
    """Two words as frequent here: others seldom use the first, and the second as often."""
    tokens = np.repeat(np.arange(2, dtype=np.int32), 50)
    block = LocalBlock(
        tokens=tokens,
        sentences=np.asarray([0, 100], dtype=np.int32),
        keep=np.ones(2, dtype=np.float32),
        pool=np.arange(3, dtype=np.int32),
        ids=np.arange(3, dtype=np.int64),
    )
    config, loss = ModelConfig(model=model), BlockLoss(1.0, 600)
    counts = np.asarray([10.0, 5_000.0, 5_000.0, 0.0])
    noise = NoiseTable.build(counts, config.noise_exponent)
    usual = Usual.of(counts, np.arange(3), config.noise_exponent, noise)
    steps = steps_of(block, loss, config, 0.001, usual)
    for table in (Table.IN, Table.OUT):
        found = share(steps[table], 4)
        assert found[0] > 1.5 * found[1]
    blind = share(steps_of(block, loss, config, 0.001, None)[Table.IN], 4)
    assert blind[0] == pytest.approx(blind[1])


def test_what_is_usual_is_what_a_block_of_everybodys_text_holds() -> None:
    """Of a block that is the whole text, others do as it does."""
    rng = np.random.default_rng(2)
    tokens = rng.integers(0, 20, 2_000).astype(np.int32)
    counts = np.bincount(tokens, minlength=20).astype(np.float64)
    noise = NoiseTable.build(counts, 0.75)
    block = LocalBlock(
        tokens=tokens,
        sentences=np.asarray([0, 2_000], dtype=np.int32),
        keep=np.linspace(0.3, 1.0, 20, dtype=np.float32),
        pool=noise.draw(200_000, 3),
        ids=np.arange(20, dtype=np.int64),
    )
    usual = Usual.of(counts, np.arange(20), 0.75, noise)
    for table, steps in steps_of(block, BlockLoss(1.0, 9_000), ModelConfig(), 0.01, usual).items():
        assert table is Table.SUB or steps[:, 1] == pytest.approx(steps[:, 0], rel=0.05)
