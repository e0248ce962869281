"""How much a use differs: a cosine of means, without chance, by source, with its interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from documentunits import units
from embedding.snapshots.nearness import unit_rows
from embedding.trends.permutation import Measured
from embedding.trends.prototypes import Prototypes, interval
from embedding.trends.replicas import Units

DIM, UNITS = 20, 16
NONE = np.zeros((DIM, 0), dtype=np.float32)


def side(centres: np.ndarray, documents: int, seed: int, spread: float = 1.0) -> tuple:
    """Documents float32 [n, UNITS] and sums of unit vectors around the words' centres."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((len(centres), UNITS), np.float32)
    sums = np.zeros((len(centres), UNITS, DIM), np.float32)
    for word, centre in enumerate(centres):
        said = unit_rows((centre + rng.normal(size=(documents, DIM)) * spread).astype(np.float32))
        unit = rng.integers(UNITS, size=documents)
        np.add.at(counts[word], unit, 1.0)
        np.add.at(sums[word], unit, said)
    return counts, sums


def distances(own: Units) -> np.ndarray:
    found = Prototypes.of(own, NONE)
    return found.distance(found.usual())


def turned(centres: np.ndarray, cosine: float) -> np.ndarray:
    """Vectors of the same length with this cosine to the given ones."""
    aside = np.random.default_rng(9).normal(size=centres.shape)
    aside -= np.einsum("nd,nd->n", aside, centres)[:, None] * centres / (centres**2).sum(1)[:, None]
    aside *= np.linalg.norm(centres, axis=1, keepdims=True) / np.linalg.norm(aside, axis=1)[:, None]
    return cosine * centres + (1 - cosine**2) ** 0.5 * aside


@pytest.mark.parametrize("documents", [10, 80])
def test_a_distance_is_that_of_the_true_means_however_few_documents_there_are(documents: int):
    centres = np.random.default_rng(1).normal(size=(400, DIM))
    for cosine in (1.0, 0.6):
        before, after = side(centres, documents, 2), side(turned(centres, cosine), documents, 3)
        found = distances(units((before, False, 0), (after, True, 0)))
        assert np.median(found) == pytest.approx(1.0 - cosine, abs=0.04)
    assert 0.3 < (distances(units((before, False, 0), (before, True, 0))) < 0).mean() <= 1.0


def test_a_word_whose_documents_are_alike_has_not_changed_more_than_another():
    """The squared distance of the means of alike documents is larger, though both turned alike."""
    centres = np.random.default_rng(1).normal(size=(200, DIM))
    found = [
        distances(units((side(centres, 100, 2, s), False, 0), (side(after, 100, 3, s), True, 0)))
        for s in (0.5, 3.0)
        for after in [turned(centres, 0.7)]
    ]
    assert np.median(found[0]) == pytest.approx(np.median(found[1]), abs=0.06)


def test_another_mix_of_sources_is_no_distance():
    news, board = (np.random.default_rng(at).normal(size=(300, DIM)) for at in (1, 2))
    own = units(
        (side(news, 40, 3), False, 0),
        (side(board, 10, 4), False, 1),
        (side(news, 10, 5), True, 0),
        (side(board, 40, 6), True, 1),
    )
    assert abs(np.median(distances(own))) < 0.03
    one = replace(own, source=np.zeros(len(own.source), dtype=np.int64))
    assert np.median(distances(one)) > 0.1


def test_a_word_that_one_time_does_not_use_has_no_distance_and_one_unit_says_no_length():
    own = units(
        (side(np.ones((3, DIM)), 20, 1), False, 0), (side(-np.ones((3, DIM)), 20, 2), True, 0)
    )
    own.documents[0, own.later] = 0.0
    own.documents[1, 1:UNITS] = 0.0
    found = Prototypes.of(own, NONE)
    assert np.isnan(found.product).tolist() == [True, True, False]
    assert (found.distance(found.usual()) != 0).tolist() == [False, False, True]


def test_directions_that_are_taken_out_are_no_distance():
    here, axis = np.random.default_rng(1).normal(size=(200, DIM)), np.eye(DIM)[:, :1]
    own = units((side(here, 60, 2), False, 0), (side(here + 3 * axis.T, 60, 3), True, 0))
    plain = Prototypes.of(own, NONE)
    without = Prototypes.of(own, axis.astype(np.float32))
    assert np.median(plain.distance(plain.usual())) > 0.15
    assert np.median(without.distance(without.usual())) < 0.05


@pytest.mark.parametrize("cosine", [1.0, 0.5])
def test_an_interval_holds_the_true_distance_in_nineteen_of_twenty(cosine: float):
    centres = 4.0 * unit_rows(np.random.default_rng(1).normal(size=(300, DIM)).astype(np.float32))
    own = units((side(centres, 60, 2), False, 0), (side(turned(centres, cosine), 40, 3), True, 0))
    usual = Prototypes.of(own, NONE).usual()
    one = [
        replace(own, documents=own.documents[[at]], sums=own.sums[[at]])
        for at in range(len(centres))
    ]
    known = Measured.of(own, NONE)
    chance = known.spread / known.weight
    each = zip(one, chance.tolist(), strict=True)
    ends = np.array([interval(own, NONE, usual, sd) for own, sd in each])
    inside = (ends[:, 0] <= 1.0 - cosine) & (1.0 - cosine <= ends[:, 1])
    assert 0.88 < inside.mean() <= 1.0
