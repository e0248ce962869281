"""Noise, subsampling and settings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError, InputError
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.models.sampling import NoiseTable, keep_probabilities, kept_tokens
from generated import examples


@given(
    hnp.arrays(np.int64, st.integers(1, 200), elements=st.integers(0, 10**12)).filter(
        lambda counts: counts.sum() > 0
    )
)
@settings(max_examples=examples(40))
def test_the_alias_table_holds_the_distribution(counts: np.ndarray) -> None:
    table = NoiseTable.build(counts, 0.75)
    wanted = np.where(counts > 0, counts.astype(float) ** 0.75, 0)
    wanted /= wanted.sum()
    mass = np.zeros(len(counts))
    np.add.at(mass, np.arange(len(counts)), table.accept / len(counts))
    np.add.at(mass, table.other, (1.0 - table.accept) / len(counts))
    assert np.abs(mass - wanted).max() < 1e-6


def test_noise_follows_the_counts_and_the_seed() -> None:
    table = NoiseTable.build(np.array([100, 0, 10, 1]), 0.75)
    drawn = table.draw(200_000, seed=3)
    share = np.bincount(drawn, minlength=4) / len(drawn)
    weights = np.array([100**0.75, 0, 10**0.75, 1])
    assert share[1] == 0
    assert np.abs(share - weights / weights.sum()).max() < 0.005
    assert np.array_equal(drawn, table.draw(200_000, seed=3))
    assert not np.array_equal(drawn, table.draw(200_000, seed=4))


@pytest.mark.parametrize("counts", [[], [0, 0], [np.inf, 1.0]])
def test_noise_needs_a_count(counts: list[float]) -> None:
    with pytest.raises(InputError, match="noise distribution"):
        NoiseTable.build(np.array(counts, dtype=np.float64))


def test_keep_probabilities_are_those_of_word2vec() -> None:
    counts = np.array([500_000, 1000, 10, 0])
    keep = keep_probabilities(counts, 1_000_000, 1e-4)
    threshold = 1e-4 * 1_000_000
    expected = (np.sqrt(500_000 / threshold) + 1) * threshold / 500_000
    assert keep[0] == pytest.approx(expected, rel=1e-6)
    assert list(keep[2:]) == [1.0, 1.0]
    assert list(keep_probabilities(counts, 1_000_000, 0.0)) == [1.0] * 4


def test_subsampling_keeps_the_share_it_promises() -> None:
    tokens = np.tile(np.array([0, 1, -1], np.int32), 30_000)
    ends = np.array([0, 45_000, 45_000, 90_000], np.int32)
    words, offsets = kept_tokens(tokens, ends, np.array([0.25, 1.0], np.float32), seed=9)
    assert (words == 1).sum() == 30_000
    assert (words == 0).mean() == pytest.approx(0.2, abs=0.01)
    assert offsets[1] == offsets[2] < offsets[3] == len(words)
    assert not (words < 0).any()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"dim": 0}, "dim"),
        ({"window": 0}, "window"),
        ({"negative": 0}, "negative"),
        ({"sample": -1}, "sample"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"model": "lda"}, "model"),
        ({"wndow": 5}, "wndow"),
        ({"schedule": "linear", "learning_rate": 1e-5}, "must fall"),
    ],
)
def test_settings_that_cannot_work_are_refused(change: dict[str, object], field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        validate(ModelConfig, change, "models")


def test_the_linear_schedule_falls_to_its_floor() -> None:
    config = ModelConfig(schedule=LearningRateSchedule.LINEAR, learning_rate=0.05).model_copy(
        update={"min_learning_rate": 0.01}
    )
    assert [config.rate(p) for p in (-1, 0, 0.5, 0.9, 2)] == [0.05, 0.05, 0.025, 0.01, 0.01]
    assert ModelConfig(learning_rate=0.05).rate(0.9) == 0.05
    assert ModelConfig(model="glove", dim=10).width == 11


def test_a_window_is_learnt_at_the_learning_rate_in_the_mean() -> None:
    config = ModelConfig(schedule=LearningRateSchedule.WINDOW, learning_rate=0.05).model_copy(
        update={"window_swing": 0.5}
    )
    rates = [config.rate(p) for p in (-1, 0, 0.5, 1, 2)]
    assert rates == pytest.approx([0.075, 0.075, 0.05, 0.025, 0.025])
