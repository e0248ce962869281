"""Proposed weights of sources: they serve the worst one better, and the mean stays within bounds.

The planted sources are learnt by a rule of their own: a loss falls with the logarithm of the
weighted text that was read of it.
"""

from __future__ import annotations

import math

import pytest

from embedding.snapshots.format import Manifest
from embedding.trends.bias import (
    Proposal,
    learning_gains,
    measured_rise,
    predicted_rise,
    propose,
)
from embedding.trends.config import TrendsConfig

FIRST = {"large": 3.0, "odd": 5.0}
GAINS = {"large": 0.15, "odd": 0.05}
TOKENS = {"large": 900_000, "odd": 100_000}
BOLD = TrendsConfig().model_copy(update={"bias_step": 20.0, "bias_most": 50.0})
UNBOUNDED = BOLD.model_copy(update={"bias_rise": 1.0})


@pytest.fixture(scope="module")
def manifest(planted, tmp_path_factory) -> Manifest:
    plan = planted.Plan(windows=1, fillers=20)
    found: Manifest = planted.make_store(str(tmp_path_factory.mktemp("one")), plan).open().manifest
    return found


def of(manifest: Manifest, losses: dict[str, float], weights: dict[str, float]) -> Manifest:
    """A window of these losses, that was learnt with these weights."""
    total = sum(TOKENS.values())
    mean = sum(TOKENS[name] * loss for name, loss in losses.items()) / total
    quality = {"nll": mean} | {f"nll.{name}": loss for name, loss in losses.items()}
    quality |= {f"weight.{name}": weight for name, weight in weights.items()}
    return manifest.model_copy(update={"tokens": dict(TOKENS), "quality": quality})


def stream(
    manifest: Manifest, windows: int, config: TrendsConfig | None
) -> tuple[list[Manifest], list[Proposal]]:
    """Windows learnt with the weights proposed after each; config None: without any."""
    found: list[Manifest] = []
    proposals: list[Proposal] = []
    weights: dict[str, float] = {}
    learnt = dict.fromkeys(FIRST, 0.0)
    for _ in range(windows):
        new = {name: weights.get(name, 1.0) for name in FIRST}
        losses = {n: FIRST[n] - GAINS[n] * math.log(learnt[n] + new[n] / 2) for n in FIRST}
        learnt = {name: learnt[name] + new[name] for name in FIRST}
        found.append(of(manifest, losses, weights))
        if config is not None:
            proposals.append(propose(found, weights, config))
            weights = proposals[-1].weights
    return found, proposals


def excess(one: Manifest) -> float:
    return one.quality["nll.odd"] - one.quality["nll"]


def test_a_small_odd_source_is_served_better_within_the_limit_of_the_mean(manifest) -> None:
    plain, _ = stream(manifest, 20, None)
    free, _ = stream(manifest, 20, UNBOUNDED)
    kept, proposals = stream(manifest, 20, BOLD)
    rises = [
        one.quality["nll"] / bare.quality["nll"] - 1 for one, bare in zip(kept, plain, strict=True)
    ]
    assert free[-1].quality["nll"] > 1.02 * plain[-1].quality["nll"]
    assert max(rises) <= 0.01
    assert excess(kept[-1]) < excess(plain[-1]) - 0.05
    assert 1.0 < proposals[-1].weights["odd"] < 50.0
    assert all(one.predicted is None or one.predicted <= 0.0101 for one in proposals)


def test_gains_are_read_from_the_windows(manifest) -> None:
    plain, _ = stream(manifest, 12, None)
    assert learning_gains(plain) == pytest.approx(GAINS, rel=1e-6)
    assert learning_gains(plain[:1]) == {}
    rise = predicted_rise({"large": 0.5, "odd": 5.5}, {"large": 0.9, "odd": 0.1}, GAINS)
    assert rise == pytest.approx(0.9 * 0.15 * math.log(2) - 0.1 * 0.05 * math.log(5.5))


def test_nothing_is_proposed_before_a_source_was_scored_twice(manifest) -> None:
    found = propose([of(manifest, FIRST, {})], {}, BOLD)
    assert found.weights == {"large": 1.0, "odd": 1.0}
    assert found.predicted is None


def test_weights_go_back_towards_1_when_the_mean_rose_above_the_limit(manifest) -> None:
    config = TrendsConfig()
    used = {"large": 0.75, "odd": 3.25}
    before = [of(manifest, FIRST, {}) for _ in range(4)]
    worse = of(manifest, {"large": 3.2, "odd": 4.9}, used)
    found = propose([*before, worse], used, config)
    assert found.returning
    assert found.measured == pytest.approx((0.9 * 3.2 + 0.1 * 4.9) / (0.9 * 3.0 + 0.1 * 5.0) - 1)
    assert 1.0 < found.weights["odd"] < used["odd"]
    assert used["large"] < found.weights["large"] < 1.0
    assert found.reach == pytest.approx(config.bias_rise / found.measured)
    # Window after window above it they end at 1.
    weights, windows = found.weights, [*before, worse]
    for _ in range(12):
        windows.append(of(manifest, {"large": 3.2, "odd": 4.9}, weights))
        weights = propose(windows, weights, config).weights
    assert weights == pytest.approx({"large": 1.0, "odd": 1.0}, abs=2e-3)


def test_the_measured_rise_is_against_windows_without_weights_and_at_equal_shares(manifest) -> None:
    used = {"large": 0.9, "odd": 1.9}
    plain = of(manifest, FIRST, {})
    tokens = {"large": 500_000, "odd": 500_000}
    mixed = plain.model_copy(update={"tokens": tokens, "quality": {**plain.quality, "nll": 4.0}})
    learnt = of(manifest, FIRST, used)
    assert measured_rise([mixed, learnt], used) == pytest.approx(0.0)
    assert measured_rise([learnt, learnt], used) is None
    assert measured_rise([plain, plain], {"large": 1.0, "odd": 1.0}) is None
