"""How far two times lie apart by their replicas, as the formula says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.snapshots.usage import Usage
from embedding.trends.replicas import Replicas, UsedWords, unbiased
from embedding.trends.usage import usage_squares


def replicas(seed: int, words: int, held: int, earlier: int, dim: int = 5) -> Replicas:
    """Some replicas hold nothing of a word; what all means have in common is large."""
    rng = np.random.default_rng(seed)
    pairs = rng.uniform(1, 40, (words, held)) * (rng.random((words, held)) < 0.7)
    means = np.where(pairs[..., None] > 0, rng.normal(size=(words, held, dim)) + 50.0, 0.0)
    return Replicas(pairs, means, earlier)


def by_formula(
    sources: list[Replicas], groups: tuple[np.ndarray, np.ndarray], word: int
) -> tuple[float, float]:
    """e² of one word and the variance taken off it, as the docstring of trends/usage.py has it."""
    moved, noise, weight = 0.0, 0.0, 0.0
    for source in sources:
        sides = []
        for group in groups:
            n, m = source.pairs[word, group], source.means[word, group]
            r = int((n > 0).sum())
            if r < 2:
                break
            mean = (n[:, None] * m).sum(axis=0) / n.sum()
            apart = ((m - mean) ** 2).sum(axis=1)
            sides.append((mean, r / (r - 1) * (n**2 * apart).sum() / n.sum() ** 2, n.sum()))
        if len(sides) == 2:
            (one, v_one, n_one), (other, v_other, n_other) = sides
            own = 2.0 / (1.0 / n_one + 1.0 / n_other)
            moved = moved + own * (other - one)
            noise += own**2 * (v_one + v_other)
            weight += own
    if not weight:
        return np.nan, np.nan
    return float((np.square(moved)).sum() / weight**2 - noise / weight**2), noise / weight**2


@given(seed=st.integers(0, 10_000), held=st.integers(2, 9), sources=st.integers(1, 3))
def test_two_times_are_as_far_apart_as_the_formula_says(seed, held, sources):
    earlier = int(np.random.default_rng(seed).integers(1, held))
    told = [replicas(seed + at, 7, held, earlier) for at in range(sources)]
    found = unbiased(iter(told))
    groups = np.arange(earlier), np.arange(earlier, held)
    expected = np.array([by_formula(told, groups, word) for word in range(7)]).T
    assert found[0] == pytest.approx(expected[0], rel=1e-8, abs=1e-8, nan_ok=True)
    assert found[1] == pytest.approx(expected[1], rel=1e-8, abs=1e-8, nan_ok=True)


def test_many_words_are_read_piece_by_piece_and_their_pages_let_go():
    rng, n, released = np.random.default_rng(1), 2500, []
    windows = []
    for at in range(2):
        usage = Usage(
            rows=np.arange(n),
            sources=["뉴스"] * n,
            mentions=np.full(n, 20),
            pairs=rng.uniform(5, 9, (n, 4)).astype(np.float32),
            means=rng.normal(size=(n, 4, 3)).astype(np.float16),
            release=lambda at=at: released.append(at),
        )
        windows.append(UsedWords(usage, rng.permutation(n)))
    squared, noise = usage_squares(windows[:1], windows[1:])
    assert np.isfinite(squared).all()
    assert released.count(0) == released.count(1) == 3, "as it goes, and at the end"
    some = np.array([3, 2400, 77])
    alone = usage_squares(*([window.take(some)] for window in windows))
    assert np.allclose(alone[0], squared[some])
    assert np.allclose(alone[1], noise[some])


def test_a_source_that_only_one_time_has_is_no_reason_to_compare():
    told = replicas(3, 4, 6, 3)
    empty = replace(told, pairs=np.zeros_like(told.pairs), means=np.zeros_like(told.means))
    both = unbiased([told, empty])
    assert np.array_equal(both, unbiased([told]), equal_nan=True)
    assert np.isnan(unbiased([empty])[0]).all()
