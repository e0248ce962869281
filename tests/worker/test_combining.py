"""The share of its delta that a node pushes beside others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.models.base import BlockLoss, LocalBlock
from embedding.models.config import ModelConfig
from embedding.worker.combining import share, updates

STEPS = st.lists(st.floats(0, 1e4), min_size=1, max_size=20).map(
    lambda steps: np.asarray(sorted(steps))
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
    assert share(np.asarray([0.0, 1e-6]), 4) == pytest.approx([1.0, 1.0], abs=1e-5)
    assert share(np.asarray([100.0]), 4) == pytest.approx([0.25])


@given(st.floats(1e-3, 20), st.integers(2, 16))
def test_all_shares_together_go_as_far_as_one_node_after_the_other(h: float, nodes: int) -> None:
    """On a quadratic: each goes 1 - exp(-h) of the way from the same place."""
    together = nodes * share(np.asarray([h]), nodes)[0] * -np.expm1(-h)
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
