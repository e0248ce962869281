"""APD and PRT against what they are defined as: a mean over pairs, a cosine of means."""

from __future__ import annotations

import numpy as np
import pytest

from embedding.snapshots.nearness import unit_rows
from embedding.trends.prototypes import (
    PrototypeSums,
    average_pairwise_distance,
    prototype_distance,
    unbiased_prototype_distance,
)


def mentions(n: int, seed: int, towards: np.ndarray, spread: float = 1.0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=(n, len(towards))) * spread
    return unit_rows((towards + noise).astype(np.float32))


def sums(words: list[np.ndarray], units: int = 8) -> PrototypeSums:
    dim = words[0].shape[1]
    counts, total = np.zeros((len(words), units)), np.zeros((len(words), units, dim))
    for at, own in enumerate(words):
        for i, vector in enumerate(own):
            counts[at, i % units] += 1
            total[at, i % units] += vector
    return PrototypeSums(counts.astype(np.float32), total.astype(np.float32))


def test_apd_is_the_mean_distance_of_all_pairs_and_prt_that_of_the_means() -> None:
    one, other = (mentions(n, n, np.eye(6)[n % 6]) for n in (20, 33))
    before, after = sums([one]), sums([other])
    every = 1 - one @ other.T
    assert average_pairwise_distance(before, after) == pytest.approx([every.mean()], abs=1e-5)
    means = one.mean(axis=0), other.mean(axis=0)
    cosine = means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1])
    assert prototype_distance(before, after) == pytest.approx([1 - cosine], abs=1e-5)


def test_units_change_neither_apd_nor_prt() -> None:
    one, other = (mentions(n, n, np.eye(6)[n % 6]) for n in (20, 33))
    for measure in (average_pairwise_distance, prototype_distance):
        few = measure(sums([one], 2), sums([other], 2))
        assert measure(sums([one], 16), sums([other], 16)) == pytest.approx(few, abs=1e-5)


def test_few_mentions_seem_to_move_unless_their_chance_is_taken_off() -> None:
    towards = np.ones(20) / 3
    before = sums([mentions(16, at, towards) for at in range(300)])
    after = sums([mentions(16, 1_000 + at, towards) for at in range(300)])
    assert prototype_distance(before, after).mean() > 0.2
    found = unbiased_prototype_distance(before, after)
    assert abs(np.median(found)) < 0.05
    assert 0.35 < (found < 0).mean() < 0.65


def test_what_changed_is_seen_by_all_three() -> None:
    here, there = np.eye(20)[0] * 3, np.eye(20)[1] * 3
    before = sums([mentions(60, 1, here), mentions(60, 2, here)])
    after = sums([mentions(60, 3, here), mentions(60, 4, there)])
    for measure in (average_pairwise_distance, prototype_distance, unbiased_prototype_distance):
        same, moved = measure(before, after)
        assert moved > same + 0.3


def test_a_word_that_one_time_does_not_mention_has_no_distance() -> None:
    own = mentions(10, 1, np.eye(4)[0])
    before, after = sums([own, own]), sums([own, own[:0]])
    for measure in (average_pairwise_distance, prototype_distance, unbiased_prototype_distance):
        assert np.isfinite(measure(before, after)).tolist() == [True, False]


def test_a_word_of_one_mention_has_the_length_of_the_others() -> None:
    own = mentions(40, 1, np.eye(4)[0])
    found = sums([own[:1], own, own])
    assert found.squared_lengths[0] == pytest.approx(found.squared_lengths[1])
    assert np.isnan(sums([own[:0]]).squared_lengths).all()
