"""The test of changed uses: by its formula, calibrated where nothing changed, and with power."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import genpareto, pearson3

from documentunits import units
from embedding.snapshots.usage import Usage
from embedding.trends.permutation import (
    MIN_DOCUMENTS,
    PERMUTATIONS,
    REFINED,
    SEEN,
    WORDS_EACH,
    Measured,
    between_sources,
    between_times,
    common_directions,
    pareto_tail,
    permutations,
)
from embedding.trends.replicas import Units, UsedWords
from embedding.trends.significance import benjamini_hochberg

DIM, UNITS = 20, 16
SPREAD = np.linspace(0.4, 2.0, DIM)
"""Of documents along each axis: some say much more than others."""
NONE = np.zeros((DIM, 0), dtype=np.float32)


def drawn(rng: np.random.Generator, centres: np.ndarray, documents: int) -> tuple:
    """Documents float32 [n, UNITS] and sums of unit vectors around the words' centres."""
    n = len(centres)
    counts, sums = np.zeros((n, UNITS), np.float32), np.zeros((n, UNITS, DIM), np.float32)
    for word in range(n):
        said = centres[word] + rng.standard_normal((documents, DIM)) * SPREAD
        said /= np.linalg.norm(said, axis=1)[:, None]
        unit = rng.integers(UNITS, size=documents)
        np.add.at(counts[word], unit, 1.0)
        np.add.at(sums[word], unit, said)
    return counts, sums


def window(sides: dict[str, tuple], reread: tuple[Usage, ...] = ()) -> Usage:
    """The use of words 0, 1, … in the sources of a window."""
    n = len(next(iter(sides.values()))[0])
    counts = np.concatenate([each[0] for each in sides.values()])
    sums = np.concatenate([each[1] for each in sides.values()])
    return Usage(
        np.tile(np.arange(n), len(sides)),
        [name for name in sides for _ in range(n)],
        counts.sum(axis=1).astype(np.int64),
        counts,
        sums / np.maximum(counts, 1e-9)[..., None],
        reread,
    )


def used(usage: Usage) -> UsedWords:
    return UsedWords(usage, np.arange(int(usage.rows.max()) + 1))


def judge(own: Units) -> np.ndarray:
    """p, against no difference at all."""
    return Measured.of(own, NONE).p(0.0)


def by_hand(own: Units, labels: np.ndarray) -> float:
    """T of the first word, as the docstring of trends/permutation.py has it."""
    total, weight = np.zeros(DIM), 0.0
    for source in set(own.source.tolist()):
        where = own.source == source
        n, s = own.documents[0, where].astype(float), own.sums[0, where].astype(float)
        after = labels[where]
        mean = s.sum(axis=0) / n.sum()
        total += (s[after] - n[after, None] * mean).sum(axis=0)
        weight += n[after].sum() * n[~after].sum() / n.sum()
    return float(total @ total / weight)


def test_p_is_the_tail_of_the_permutations():
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((1, DIM))
    own = units(
        (drawn(rng, centres, 60), False, 0),
        (drawn(rng, centres + 0.3, 40), True, 0),
        (drawn(rng, centres, 30), False, 1),
        (drawn(rng, centres + 0.3, 50), True, 1),
    )
    labels = permutations(own, PERMUTATIONS)
    assert labels.shape == (1 + PERMUTATIONS, 4 * UNITS)
    for source in (0, 1):
        assert set(labels[:, own.source == source].sum(axis=1)) == {UNITS}
    observed, *null = (by_hand(own, one) for one in labels)
    mean, spread = np.mean(null), np.std(null)
    skew = np.mean((np.array(null) - mean) ** 3) / spread**3
    found = judge(own)
    assert found[0] == pytest.approx(pearson3.sf((observed - mean) / spread, skew), rel=0.02)
    assert found[0] < 0.05


@pytest.mark.parametrize(("before", "after"), [(100, 100), (300, 60), (12, 40)])
def test_where_nothing_changed_p_is_uniform(before: int, after: int):
    rng = np.random.default_rng(before)
    centres = rng.standard_normal((1200, DIM))
    own = units((drawn(rng, centres, before), False, 0), (drawn(rng, centres, after), True, 0))
    p = judge(own)
    assert 0.035 < (p < 0.05).mean() < 0.07
    assert (p < 0.001).sum() <= 5
    assert benjamini_hochberg(p).min() > 0.01


def test_changed_words_are_called_and_no_others():
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((400, DIM))
    moved = centres.copy()
    moved[:40] = rng.standard_normal((40, DIM))
    own = units((drawn(rng, centres, 90), False, 0), (drawn(rng, moved, 40), True, 0))
    called = benjamini_hochberg(judge(own)) <= 0.05
    assert called[:40].sum() >= 38
    assert called[40:].sum() <= 4


def test_another_mix_of_sources_is_no_change():
    rng = np.random.default_rng(4)
    news, board = rng.standard_normal((2, 300, DIM))
    own = units(
        (drawn(rng, news, 90), False, 0),
        (drawn(rng, news, 12), True, 0),
        (drawn(rng, board, 12), False, 1),
        (drawn(rng, board, 90), True, 1),
    )
    assert benjamini_hochberg(judge(own)).min() > 0.05


def test_what_all_words_have_in_common_is_no_change_of_a_word():
    """The topic of a month is in the contexts of each word."""
    rng = np.random.default_rng(5)
    n = 8 * WORDS_EACH + 200
    centres = rng.standard_normal((n, DIM))
    moved = centres + 1.5 * np.eye(DIM)[0]
    moved[:30] = rng.standard_normal((30, DIM))
    sides = drawn(rng, centres, 90), drawn(rng, moved, 60)
    plain = judge(units((sides[0], False, 0), (sides[1], True, 0)))
    assert (benjamini_hochberg(plain) <= 0.05).mean() > 0.5
    now = window({"뉴스": sides[1]})
    found = between_times([used(window({"뉴스": sides[0]}))], used(now))
    called = benjamini_hochberg(found.p) <= 0.05
    assert called[30:].mean() < 0.02
    assert called[:30].mean() > 0.6


def test_a_word_has_to_change_more_than_words_do():
    """Each word differs a little: frequent ones surely. Only what differs more is a finding."""
    rng = np.random.default_rng(11)
    centres = rng.standard_normal((500, DIM))
    moved = centres + 0.45 * rng.standard_normal(centres.shape)
    moved[:20] = rng.standard_normal((20, DIM))
    own = units((drawn(rng, centres, 200), False, 0), (drawn(rng, moved, 200), True, 0))
    measured = Measured.of(own, NONE)
    anything = benjamini_hochberg(measured.p(0.0)) <= 0.05
    assert anything[20:].mean() > 0.6, "each for itself is no chance"
    usual = measured.usual()
    squares = np.sort(((moved - centres) ** 2).sum(axis=1) / (SPREAD**2).sum())
    assert squares[100] / 3 < usual < squares[-100]
    called = benjamini_hochberg(measured.p(usual)) <= 0.05
    assert called[:20].mean() > 0.8
    assert called[20:].mean() < 0.1


def test_what_words_usually_do_is_the_mean_by_documents_and_needs_many():
    def of(n: int) -> Measured:
        ones = np.ones(n)
        return Measured(np.linspace(2.0, 4.0, n), ones, ones, ones, np.linspace(1.0, 3.0, n))

    many, few = of(WORDS_EACH), of(WORDS_EACH - 1)
    assert many.usual() == pytest.approx((many.observed - 1).sum() / many.weight.sum())
    assert few.usual() == 0.0
    less = Measured(many.observed - 9.0, *([np.ones(WORDS_EACH)] * 4))
    assert less.usual() == 0.0, "less than chance is no distance"
    unknown = Measured(*(np.append(each, np.nan) for each in vars(many).values()))
    assert unknown.usual() == many.usual()
    assert unknown.p(many.usual())[-1] == 1.0


def test_only_directions_beyond_chance_are_common():
    rng = np.random.default_rng(8)
    chance = np.stack([rows.T @ rows for rows in rng.standard_normal((20, 500, DIM))])
    assert common_directions(chance[[0, *range(20)]], 500).shape == (DIM, 0), "no more than chance"
    shared = chance.copy()
    shared[0] += 900.0 / DIM * np.ones((DIM, DIM))
    assert common_directions(shared, WORDS_EACH - 1).shape == (DIM, 0), "too few words"
    found = common_directions(shared, WORDS_EACH)
    assert found.shape == (DIM, 1)
    length = float(np.linalg.norm(found))
    assert abs(found.sum()) * DIM**-0.5 / length > 0.97, "cosine to the shared direction"
    chances = [float(np.linalg.eigvalsh(one)[-1]) for one in shared]
    assert length**2 == pytest.approx(1.0 - max(chances[1:]) / chances[0], rel=1e-4)


def test_little_text_copies_and_lone_sources_say_nothing():
    rng = np.random.default_rng(6)
    centre = rng.standard_normal((1, DIM))
    few = drawn(rng, centre, MIN_DOCUMENTS - 1), drawn(rng, -centre, 90)
    copies = np.zeros((1, UNITS), np.float32), np.zeros((1, UNITS, DIM), np.float32)
    copies[0][0, 3], copies[1][0, 3, 0] = 90.0, 90.0
    many = drawn(rng, centre, 90)
    for before, after in (few, few[::-1], (copies, copies)):
        found = judge(units((before, False, 0), (after, True, 0)))
        assert found[0] == 1.0
    alone = judge(units((many, False, 0), (drawn(rng, -centre, 90), True, 1)))
    assert alone[0] == 1.0


def test_units_are_merged_within_their_source_and_time():
    rng = np.random.default_rng(7)
    centres = rng.standard_normal((3, DIM))
    sides = [
        (drawn(rng, centres, 50), later, source)
        for source, later in itertools.product(range(4), (False, True))
    ]
    own = units(*sides)
    merged = own.merged(70)
    assert len(merged.later) == 64
    for source, later in itertools.product(range(4), (False, True)):
        at, of = ((each.source == source) & (each.later == later) for each in (merged, own))
        assert at.sum() == 8
        assert np.allclose(merged.sums[:, at].sum(axis=1), own.sums[:, of].sum(axis=1), atol=1e-4)
    assert len(own.merged(1).later) == 16, "two of each source and time are left"


def test_times_and_sources_are_compared_by_the_same_test():
    rng = np.random.default_rng(8)
    centres = rng.standard_normal((60, DIM))
    other = centres.copy()
    other[0] = -centres[0]
    past, older = (
        window({"뉴스": drawn(rng, centres, 40)}),
        window({"뉴스": drawn(rng, centres, 80)}),
    )
    now = window({"뉴스": drawn(rng, other, 50), "글판": drawn(rng, centres, 50)})
    times = between_times([used(past), used(older)], used(now))
    assert benjamini_hochberg(times.p)[0] <= 0.05
    assert (benjamini_hochberg(times.p)[1:] <= 0.05).sum() <= 1
    sources = between_sources(used(now), "뉴스", ["글판"])
    assert benjamini_hochberg(sources.p)[0] <= 0.05
    assert (benjamini_hochberg(sources.p)[1:] <= 0.05).sum() <= 1
    again = between_times([used(past), used(older)], used(now))
    assert np.array_equal(times.p, again.p)


def test_a_small_p_is_the_share_of_many_permutations():
    rng = np.random.default_rng(10)
    centres = rng.standard_normal((45, DIM))
    other = centres + np.linspace(0.1, 0.5, 45)[:, None]
    past, now = drawn(rng, centres, 60), drawn(rng, other, 60)
    p = between_times([used(window({"뉴스": past}))], used(window({"뉴스": now}))).p
    few, many = (1 + times for times in REFINED)
    small = p[(p > SEEN / many) & (p < SEEN / few)]
    assert len(small) >= 3
    np.testing.assert_allclose(small * many, np.round(small * many), atol=1e-6)
    assert (np.abs(small * few - np.round(small * few)) > 1e-6).any()
    assert p.min() < 1 / many, "beyond all permutations p is of the fitted tail"


@pytest.mark.parametrize("shape", [0.0, 0.2])
def test_a_tail_is_fitted_to_the_largest_alone(shape: float):
    # Small values are of one kind, large ones of another, as moments of all do not tell.
    random = np.random.default_rng(3)
    null = random.normal(0.0, 0.2, (40, 49_999))
    tail = random.random(null.shape) < 0.02
    null[tail] = genpareto.rvs(shape, loc=1.0, size=int(tail.sum()), random_state=random)
    observed = 3e-5
    beyond = np.full(40, genpareto.isf(observed / 0.02, shape, loc=1.0))
    found = pareto_tail(null, beyond)
    assert 0.6 * observed < np.median(found) < 1.5 * observed
    p = Measured.by(np.column_stack([beyond, null]), np.ones(40)).p(0.0)
    assert np.median(p) < 0.8 * observed, "the tail of type III is too short"
    assert not pareto_tail(null[:, :500], beyond).any(), "too few to see a tail"


def test_without_a_source_in_common_nothing_is_said():
    rng = np.random.default_rng(9)
    centres = rng.standard_normal((3, DIM))
    one, other = (
        window({"뉴스": drawn(rng, centres, 40)}),
        window({"글판": drawn(rng, centres, 40)}),
    )
    found = between_times([used(one)], used(other))
    assert found.p.tolist() == [1.0] * 3


def test_directions_are_taken_from_the_words_of_most_documents(monkeypatch):
    """Of a large vocabulary: what the others have in common is not taken out."""
    rng = np.random.default_rng(7)
    centres = rng.standard_normal((120, DIM))
    other = centres + np.eye(DIM)[0]
    other[60:] = centres[60:] + 3 * np.eye(DIM)[1]
    often, seldom = (
        [drawn(rng, side[part], n) for side in (centres, other)]
        for part, n in ((slice(0, 60), 90), (slice(60, 120), 40))
    )

    def common(*sides: list[tuple]) -> np.ndarray:
        past, now = (
            window({"뉴스": tuple(np.concatenate(parts) for parts in zip(*each, strict=True))})
            for each in zip(*sides, strict=True)
        )
        grounds = between_times([used(past)], used(now)).grounds
        assert grounds is not None
        return grounds.common

    alone, every = common(often), common(often, seldom)
    monkeypatch.setattr("embedding.trends.permutation.SAMPLED", 60)
    assert alone.shape == (DIM, 1)
    assert not np.allclose(np.abs(every[:, 0]), np.abs(alone[:, 0]), atol=0.1)
    np.testing.assert_allclose(common(often, seldom), alone, atol=1e-5)


def test_a_word_that_changed_a_window_ago_is_not_called_again():
    rng = np.random.default_rng(11)
    centres = rng.standard_normal((60, DIM))
    other = centres.copy()
    other[0] = -centres[0]
    older, last, now = (
        used(window({"뉴스": drawn(rng, side, n)}))
        for side, n in ((centres, 120), (other, 60), (other, 60))
    )
    assert benjamini_hochberg(between_times([older], now).p)[0] <= 0.05
    assert benjamini_hochberg(between_times([last, older], now).p)[0] > 0.5
    before = used(window({"뉴스": drawn(rng, centres, 60)}))
    assert benjamini_hochberg(between_times([before, older], now).p)[0] <= 0.05


def test_windows_further_back_are_merged_among_themselves():
    rng = np.random.default_rng(12)
    centres = rng.standard_normal((3, DIM))
    own = units(*[(drawn(rng, centres, 50), later, 0) for later in (False, False, True)])
    own = replace(own, older=np.repeat([False, True, False], UNITS))
    merged = own.merged(30)
    assert [int(each.sum()) for each in (merged.older, merged.later)] == [8, 8]
    assert not (merged.older & merged.later).any()
