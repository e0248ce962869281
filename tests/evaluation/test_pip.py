"""PIP loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ortho_group

from embedding.evaluation.losses import pip_loss
from embedding.kernel.errors import InputError


def _counts(m: int = 30, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    topics = random.dirichlet(np.ones(4) * 0.2, size=m)
    return random.poisson(300 * topics @ topics.T)


def ppmi(counts: np.ndarray) -> np.ndarray:
    p = (counts + counts.T) / (2 * counts.sum())
    with np.errstate(divide="ignore"):
        return np.maximum(0.0, np.log(p / np.outer(p.sum(axis=0), p.sum(axis=1))))


def _best(counts: np.ndarray, d: int) -> np.ndarray:
    values, basis = np.linalg.eigh(ppmi(counts))
    order = np.argsort(-np.abs(values))[:d]
    return basis[:, order] * np.sqrt(np.abs(values[order]))


def test_it_is_the_definition():
    counts, ours = _counts(), np.random.default_rng(1).normal(size=(30, 5))
    theirs, own = _best(counts, 5), ours.astype(np.float64)
    gram, other = own @ own.T, theirs @ theirs.T
    scaled = np.linalg.norm(gram / np.linalg.norm(gram) - other / np.linalg.norm(other))
    assert pip_loss(ours, counts) == pytest.approx(scaled, rel=1e-6)


def test_the_count_embedding_itself_has_no_loss_however_turned_and_scaled():
    counts = _counts()
    turned = _best(counts, 5) @ ortho_group.rvs(5, random_state=3)
    assert pip_loss(turned * 7, counts) == pytest.approx(0, abs=1e-6)


def test_noise_makes_it_worse():
    counts, random = _counts(), np.random.default_rng(5)
    clean, noise = _best(counts, 5), random.normal(size=(30, 5))
    losses = [pip_loss(clean + a * noise, counts) for a in (0, 0.2, 1.0, 5.0)]
    assert losses == sorted(losses)
    assert losses[-1] <= math.sqrt(2)


def test_more_dimensions_than_words():
    assert 0 <= pip_loss(np.random.default_rng(2).normal(size=(30, 50)), _counts()) <= math.sqrt(2)


@pytest.mark.parametrize(
    ("vectors", "counts"),
    [
        (np.ones((3, 2)), np.zeros((3, 3))),
        (np.zeros((3, 2)), np.eye(3)),
        (np.zeros((0, 2)), np.zeros((0, 0))),
        (np.ones((3, 2)), np.ones((3, 3))),
    ],
)
def test_nothing_to_compare(vectors, counts):
    assert math.isnan(pip_loss(vectors, counts))


@pytest.mark.parametrize(
    ("vectors", "counts", "sentence"),
    [
        (np.ones((3, 2)), np.ones((2, 2)), r"got \[3, 2\] and \[2, 2\]"),
        (np.ones(3), np.ones((3, 3)), "are accepted"),
        (np.ones((2, 2)), -np.ones((2, 2)), "at least 0"),
        (np.ones((2, 2)), np.full((2, 2), np.nan), "finite"),
    ],
)
def test_bad_input(vectors, counts, sentence):
    with pytest.raises(InputError, match=sentence):
        pip_loss(vectors, counts)
