"""Axes on which words hardly differ count little in what is compared of their use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embedding.snapshots.usage import Usage
from embedding.trends.config import TrendsConfig
from embedding.trends.pair import Pair
from embedding.trends.permutation import permuted
from embedding.trends.replicas import UsedWords, truly
from embedding.trends.shift import shift
from embedding.trends.usage import usage_shift, usage_squares
from embedding.trends.wiener import SHARE, wiener

DIM, REPLICAS, WORDS = 8, 4, 600
WIDE, NARROW = 10, 20
"""Words that move along the axis on which words differ most, and along the one on which least."""
SIZES = np.geomspace(1.0, 0.01, DIM)
"""Variance of words' means along each axis, before a rotation."""


def turn() -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(7).normal(size=(DIM, DIM)))[0]


def used(true: np.ndarray, seed: int, spread: float = 0.0) -> UsedWords:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(len(true), REPLICAS, DIM)) * spread
    means = ((true[:, None] + noise) @ turn()).astype(np.float32)
    n = len(true)
    return UsedWords(
        Usage(
            np.arange(n),
            ["뉴스"] * n,
            np.full(n, 50),
            np.full((n, REPLICAS), 40, np.float32),
            means,
        ),
        np.arange(n),
    )


def places(n: int = WORDS) -> np.ndarray:
    drawn = np.random.default_rng(1).normal(size=(n, DIM))
    drawn -= drawn.mean(axis=0)
    whitened = drawn @ np.linalg.inv(np.linalg.cholesky(drawn.T @ drawn / n)).T
    return whitened * np.sqrt(SIZES)


@pytest.fixture
def told() -> Pair:
    """Two words move equally far, one along the widest axis and one along the narrowest."""
    true = places()
    moved = true.copy()
    moved[WIDE, 0] += 0.5
    moved[NARROW, -1] += 0.5
    rows = np.random.default_rng(2).normal(size=(WORDS, DIM)).astype(np.float32)
    seen = np.full(WORDS, 200)
    return Pair(
        tuple(f"말{i}" for i in range(WORDS)),
        rows,
        rows,
        seen,
        seen,
        used_before=used(true, 3, 0.2),
        used_after=used(moved, 4, 0.2),
    )


def test_each_axis_keeps_its_share_of_what_words_differ_by():
    (axes,) = wiener([used(places(), 0), used(places(), 0)])
    kept = np.sort(np.linalg.norm(axes, axis=0))[::-1]
    assert kept == pytest.approx(SIZES / (SIZES + SHARE * SIZES.mean()), rel=1e-3)


def test_a_shift_along_an_axis_on_which_words_hardly_differ_counts_less(told):
    rows = np.arange(WORDS)
    plain = usage_shift(told.used_before, told.used_after)
    assert plain[WIDE] == pytest.approx(plain[NARROW], rel=0.5)
    found = shift(told, rows, TrendsConfig(), "usage")
    assert found[WIDE] > 3 * found[NARROW]
    judged = permuted(told, rows, np.zeros(WORDS), 400).z
    assert judged.argmax() == WIDE
    assert judged[WIDE] > 3 * judged[NARROW]


def test_both_times_and_the_past_lie_on_the_same_axes(told):
    wide = replace(told, used_past=(used(places(), 5, 0.2),))
    before, after, past = wide.used(np.array([WIDE, NARROW]))
    assert before.axes[0] is not None
    assert before.axes is after.axes is past.axes
    assert before.rows.tolist() == [WIDE, NARROW]


def doubled(words: UsedWords, other: UsedWords, scale: float) -> UsedWords:
    """The contexts of `words`, and beside them those of `other` as a second table."""
    usage = replace(words.usage, beside=other.usage.means * scale)
    return replace(words, usage=usage)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_a_second_table_counts_as_much_as_the_first_whatever_its_scale(told, scale):
    """A shift that only the first table has adds what it has there, one in both adds twice."""
    still, moved = told.used_before, told.used_after
    both = (doubled(still, still, scale), doubled(moved, moved, scale))
    assert len(wiener(both)) == 1
    axes = wiener(both, tables=5)
    assert len(axes) == 2
    spread = [np.linalg.norm(each) for each in axes]
    assert spread[1] == pytest.approx(spread[0] / scale, rel=1e-3)
    plain = usage_shift(*(replace(each, axes=axes[:1]) for each in (still, moved)))
    found = usage_shift(*(replace(each, axes=axes) for each in both))
    assert found == pytest.approx(plain * np.sqrt(2), rel=1e-3)
    alone = doubled(still, still, scale), doubled(moved, used(places(), 9, 0.2), scale)
    half = usage_shift(*(replace(each, axes=axes) for each in alone))
    assert half[WIDE] == pytest.approx(plain[WIDE], rel=0.15)


def test_what_a_training_did_not_touch_counts_by_half_and_nothing_where_nothing_is_known(told):
    usage = told.used_before.usage
    thrice = replace(usage, beside=np.concatenate([usage.means, usage.means], axis=2))
    axes = wiener([replace(told.used_before, usage=thrice)], tables=3)
    lengths = [np.linalg.norm(each) for each in axes]
    assert lengths[2] / lengths[0] == pytest.approx(np.sqrt(0.5))
    empty = replace(usage, beside=np.concatenate([usage.means, 0 * usage.means], axis=2))
    axes = wiener([replace(told.used_before, usage=empty)], tables=3)
    assert not axes[2].any()
    assert np.isfinite(axes[1]).all()


def test_only_texts_that_were_read_again_are_compared_by_several_tables(told):
    """And those by as many as both times have."""
    sides = told.used_before, told.used_after
    before, after = (doubled(side, side, 1.0) for side in sides)
    wide = replace(told, used_before=before, used_after=after)
    tables = {
        reread: [len(each.axes) for each in replace(wide, reread=reread).used(np.array([WIDE]))]
        for reread in (False, True)
    }
    assert tables == {False: [1, 1], True: [2, 2]}
    both = replace(wide, used_before=told.used_before, reread=True).used(np.array([WIDE]))
    assert [len(each.axes) for each in both] == [1, 1]
    alone = told.used(np.array([WIDE]))
    assert np.array_equal(both[1].axes[0], alone[1].axes[0])


def test_too_few_words_or_words_without_texts_are_not_filtered(told):
    few = np.arange(2 * DIM - 1)
    assert wiener([told.used_before.take(few), told.used_after.take(few)]) is None
    assert wiener([used(np.zeros((WORDS, DIM)), 0)]) is None
    silent = told.used_before
    silent.usage.pairs[:] = 0.0
    assert wiener([silent]) is None


def test_divisions_of_one_call_are_those_of_calls_for_each(told):
    def halves(replicas):
        return replicas.truly[1][:2], replicas.truly[1][2:]

    before, after = told.used_before, told.used_after
    squared, noise = usage_squares(before, after, (), [truly, halves, truly])
    assert squared.shape == noise.shape == (3, WORDS)
    for at, division in enumerate((truly, halves)):
        one, own = usage_squares(before, after, (), [division])
        assert np.allclose(one[0], squared[at], rtol=1e-9, atol=1e-12, equal_nan=True)
        assert np.allclose(own[0], noise[at], rtol=1e-9, equal_nan=True)
    # A product of several divisions may add the columns of each in another order.
    assert np.allclose(squared[0], squared[2], rtol=1e-9, atol=1e-12)
    assert not np.allclose(squared[0], squared[1], rtol=1e-3)
