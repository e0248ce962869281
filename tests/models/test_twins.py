"""Which known word a young one is another name of: Bayes' rule, and what it does to vectors."""

from __future__ import annotations

import numpy as np
import pytest

from embedding.models.inference import Frame, directions
from embedding.models.twins import Twins

PRIOR, NOISE, NEAR = 0.01, 1.2, 0.5

DIM, KNOWN, ROWS = 12, 60, 900
STEP = NOISE * 2.0**7
"""A weight of contexts whose noise is a power of two, so that nothing is rounded."""


class World:
    """Words that are used among contexts of their own, as a topic model has them."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)
        self.rows = self.rng.normal(size=(ROWS, DIM)).astype(np.float32)
        self.leaning = 3.0 * self.rng.normal(size=(KNOWN, DIM))
        self.vectors = self.rng.normal(size=(KNOWN, DIM)).astype(np.float32)
        self.weights = np.full(KNOWN, 4 * STEP, dtype=np.float32)
        self.sums = np.stack([self.read(word, 4 * STEP) for word in range(KNOWN)])

    def chances(self, word: int) -> np.ndarray:
        fit = np.exp(directions(self.rows) @ self.leaning[word])
        return fit / fit.sum()

    def read(self, word: int, weight: float) -> np.ndarray:
        """The sum over contexts of this weight in all, a word's own, drawn again."""
        n = int(weight)
        drawn = self.rng.choice(ROWS, n, p=self.chances(word))
        return (weight / n * directions(self.rows)[drawn].sum(axis=0)).astype(np.float32)

    def frame(self, known: np.ndarray) -> Frame:
        """What these words teach; contexts are drawn as all words draw them."""
        mixed = np.mean([self.chances(word) for word in range(KNOWN)], axis=0)
        contexts = self.rows[self.rng.choice(ROWS, 4000, p=mixed)]
        found = Frame.of(self.vectors[known], self.sums[known], self.weights[known], contexts)
        assert found is not None
        return found


def density(away: np.ndarray, spread: np.ndarray) -> float:
    value = -0.5 * (away @ np.linalg.solve(spread, away) + np.linalg.slogdet(spread)[1])
    return float(np.exp(value))


def test_shares_are_those_of_the_formula():
    world = World()
    known = np.arange(KNOWN)
    frame = world.frame(known)
    means = (world.sums / world.weights[:, None] - frame.origin).astype(np.float64)
    own, noise = NOISE / STEP, NOISE / world.weights[0]
    within = np.linalg.inv(frame.twins.axes @ frame.twins.axes.T)
    between = np.linalg.inv(frame.twins.axes).T @ np.diag(frame.twins.between)
    between = between @ np.linalg.inv(frame.twins.axes)
    asked = world.read(7, STEP) / STEP - frame.origin
    same, wide = (
        np.array([density(asked - mean, near * between + (own + noise) * within) for mean in means])
        for near in (0.0, NEAR**2)
    )
    expected = PRIOR * same / (PRIOR * same.sum() + (1 - PRIOR) * wide.sum())
    found = frame.twins.shares(
        asked[None].astype(np.float64), np.array([STEP], np.float32)
    ).toarray()[0]
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=1e-5)


def test_axes_make_contexts_round_and_differences_between_words_straight():
    world = World()
    second = np.cov(directions(world.rows).T)
    means = (world.sums / world.weights[:, None]).astype(np.float64)
    means -= means.mean(axis=0)
    twins = Twins.of(means, world.weights, second)
    np.testing.assert_allclose(twins.axes.T @ second @ twins.axes, np.eye(DIM), atol=1e-6)
    spread = twins.places.T @ twins.places / KNOWN - np.eye(DIM) * twins.noise.mean()
    np.testing.assert_allclose(spread, np.diag(np.diag(spread)), atol=1e-3)


def test_another_name_of_a_known_word_gets_its_vector():
    world = World()
    frame = world.frame(np.arange(KNOWN))
    words = range(0, KNOWN, 3)
    sums = np.stack([world.read(word, 2 * STEP) for word in words])
    found = frame.infer(sums, np.full(len(words), 2 * STEP, np.float32))
    away = np.linalg.norm(found[:, None] - world.vectors[None], axis=2)
    assert np.mean(away.argmin(axis=1) == np.array(words)) >= 0.9
    mapped = Frame(**{**vars(frame), "twins": None}).infer(
        sums, np.full(len(words), 2 * STEP, np.float32)
    )
    away = np.linalg.norm(mapped[:, None] - world.vectors[None], axis=2)
    assert np.mean(away.argmin(axis=1) == np.array(words)) < 0.5, "the map alone does not"


def test_a_word_that_is_like_none_keeps_the_vector_of_the_map():
    world = World()
    left = np.arange(0, KNOWN, 6)
    frame = world.frame(np.setdiff1d(np.arange(KNOWN), left))
    means = np.stack([world.read(word, 8 * STEP) / (8 * STEP) for word in left]) - frame.origin
    shares = frame.twins.shares(means.astype(np.float64), np.full(len(left), 8 * STEP, np.float32))
    assert np.median(shares.sum(axis=1)) < 0.1


def test_few_contexts_say_little_and_more_of_them_more():
    world = World()
    frame = world.frame(np.arange(KNOWN))
    sums = [np.stack([world.read(word, weight) for word in range(20)]) for weight in (8, 512)]
    shares = [
        frame.twins.shares(
            (each / weight - frame.origin).astype(np.float64), np.full(20, weight, np.float32)
        ).sum()
        for each, weight in zip(sums, (8.0, 512.0), strict=True)
    ]
    assert shares[0] < 3 < 10 < shares[1]


def test_many_words_are_looked_at_in_parts():
    world = World()
    frame = world.frame(np.arange(KNOWN))
    means = (world.sums / world.weights[:, None] - frame.origin).astype(np.float64)
    weights = np.resize(np.array([3.0, 70.0, 900.0], np.float32), KNOWN)
    whole = frame.twins.shares(means, weights).toarray()
    many = frame.twins.shares(np.tile(means, (9, 1)), np.tile(weights, 9)).toarray()
    np.testing.assert_allclose(many, np.tile(whole, (9, 1)), rtol=1e-3, atol=1e-6)
    assert whole.sum(axis=1).max() <= 1.0 + 1e-5


@pytest.mark.parametrize("fault", ["one context", "nothing but noise", "none"])
def test_contexts_that_tell_no_words_apart_give_no_twins(fault):
    rng = np.random.default_rng(1)
    means = rng.normal(size=(KNOWN, DIM))
    second = np.eye(DIM)
    if fault == "one context":
        second[:] = 0.0
    elif fault == "none":
        second[:] = np.nan
    else:
        means *= 0.01
    assert Twins.of(means, np.full(KNOWN, 10.0, np.float32), second) is None
