"""Permuting documents: what is called moved, and what chance alone never is."""

from __future__ import annotations

import numpy as np
import pytest

from embedding.trends.permutation import PRIOR, RANKED, deals, dealt, judged, steadied
from embedding.trends.replicas import Replicas, distance, truly
from embedding.trends.significance import benjamini_hochberg

WORDS, REPLICAS, DIM = 1500, 4, 12


def sides(moved: float, seed: int, *, drift: float = 0.0, bursty: int = 0) -> Replicas:
    """Replicas of two times; the first 30 words move, all drift, some jump in one replica."""
    rng = np.random.default_rng(seed)
    pairs = rng.uniform(20, 60, (WORDS, 2 * REPLICAS))
    noise = rng.normal(size=(WORDS, 2 * REPLICAS, DIM)) / np.sqrt(pairs)[..., None]
    means = rng.normal(size=(WORDS, 1, DIM)) + noise
    means[:30, REPLICAS:] += moved / np.sqrt(DIM)
    means[:, REPLICAS:] += drift / np.sqrt(DIM)
    for word in range(WORDS - bursty, WORDS):
        means[word, rng.integers(2 * REPLICAS)] += 3.0
    return Replicas(pairs, means, REPLICAS)


def called(replicas: Replicas) -> np.ndarray:
    """Which words are called moved at a false discovery of 5 %."""
    null = [distance([replicas], dealt(deal)) for deal in deals(REPLICAS, REPLICAS)]
    observed = distance([replicas], truly)
    _, p = judged(observed, np.array(null), np.zeros(WORDS), 400)
    return benjamini_hochberg(p) <= 0.05


def test_deals_differ_and_hold_half_of_each_time():
    found = deals(4, 4)
    assert len({tuple(sorted(map(tuple, deal))) for deal in found}) == len(found) == 16
    for first, second in found:
        assert sorted([*first, *second]) == list(range(8))
        assert (first < 4).sum() == (second < 4).sum() == 2


@pytest.mark.parametrize(
    ("longer", "earlier", "later"),
    [(1.0, 4, 2), (2.0, 2, 2), (5.0, 1, 2), (0.25, 4, 1), (0.0, 4, 1)],
)
def test_uneven_deals_hold_as_much_as_the_shorter_time(longer, earlier, later):
    """Half of it from either time, as near as whole replicas come, and one at least."""
    found = deals(8, 4, longer)
    assert found
    for first, second in found:
        assert sorted([*first, *second]) == list(range(12))
        assert ((first < 8).sum(), (first >= 8).sum()) == (earlier, later)


def repeating(moved: float, seed: int) -> Replicas:
    """Eight replicas of much text and four of little; a few texts repeat a word in its own way."""
    rng = np.random.default_rng(seed)
    few, many = rng.uniform(20, 60, (WORDS, 4)), rng.uniform(100, 150, (WORDS, 8))
    pairs = np.concatenate([many, few], axis=1)
    noise = rng.normal(size=(WORDS, 12, DIM)) / np.sqrt(pairs)[..., None]
    texts = rng.poisson(pairs * 0.0025)[..., None]
    own = rng.normal(size=(WORDS, 12, DIM)) * np.sqrt(texts / DIM) * 120 / pairs[..., None]
    means = rng.normal(size=(WORDS, 1, DIM)) + noise + own
    means[:30, 8:] += moved / np.sqrt(DIM)
    return Replicas(pairs, means, 8)


def called_by(replicas: Replicas, longer: float | None) -> np.ndarray:
    null = np.array([distance([replicas], dealt(deal)) for deal in deals(8, 4, longer)])
    _, p = judged(distance([replicas], truly), null, np.zeros(WORDS), 400)
    return benjamini_hochberg(p) <= 0.05


def test_a_short_window_after_long_ones_is_not_called_for_its_shortness():
    still = [repeating(0.0, seed) for seed in range(20)]
    halves = sum(bool(called_by(each, None).any()) for each in still)
    small = sum(bool(called_by(each, 6.25).any()) for each in still)
    assert halves > 10, "half of everything does not show how far a few texts go"
    assert small <= 4  # 1 is expected at 5 %
    found = called_by(repeating(1.5, 1), 6.25)
    assert found[:30].mean() > 0.8
    assert found[30:].sum() <= 4


@pytest.mark.parametrize("drift", [0.0, 0.2])
def test_words_that_moved_are_called_also_where_the_whole_space_drifted(drift):
    found = called(sides(1.5, 1, drift=drift))
    assert found[:30].mean() > 0.8
    assert found[30:].sum() <= 4


@pytest.mark.parametrize("bursty", [0, 40])
def test_chance_alone_is_hardly_ever_called(bursty):
    """Also where some words jump because one replica repeats the same text."""
    calls = [int(called(sides(0.0, seed, bursty=bursty)).sum()) for seed in range(20)]
    assert sum(count > 0 for count in calls) <= 4  # 1 is expected at 5 %


def test_windows_before_make_the_earlier_time_surer():
    one = sides(0.4, 3)
    more = Replicas(
        np.concatenate([one.pairs[:, :4], one.pairs], axis=1),
        np.concatenate([sides(0.4, 3).means[:, :4], one.means], axis=1),
        8,
    )
    assert more.truly[0].tolist() == list(range(8))
    assert np.isfinite(distance([more], truly)).all()


def test_half_of_the_variance_that_is_taken_off_is_that_of_the_band():
    """The same uses, of which few replicas say that they are sure, stay where they were."""
    squared, noise = np.full(WORDS, 0.5), np.full(WORDS, 0.5)
    noise[7], noise[8] = 0.1, 0.9
    squared[7:9] += 0.5 - noise[7:9]
    squared[9] = np.nan
    found = steadied(squared, noise, np.zeros(WORDS), 400)
    assert np.isnan(found[9])
    assert np.allclose(found[:7], np.sqrt(0.5))
    assert np.allclose(found[7:9], np.sqrt([0.7, 0.3])), "half as far from the others as before"


def test_a_ranking_leans_on_the_band_more_than_what_is_called_does():
    replicas = sides(1.5, 1, bursty=40)
    deal = deals(REPLICAS, REPLICAS)
    null = np.array([distance([replicas], dealt(each)) for each in deal])
    observed = distance([replicas], truly)
    plain, ranked = (
        judged(observed, null, np.zeros(WORDS), 400, prior)[0] for prior in (PRIOR, RANKED)
    )
    bursty = observed[-40:] > 0
    assert (ranked[-40:][bursty] > plain[-40:][bursty]).all(), "their own spread is wide"
