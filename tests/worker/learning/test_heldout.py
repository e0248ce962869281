"""What is held out of training, and the loss that it is measured by."""

from __future__ import annotations

import math

import numpy as np
import pytest

from embedding.kernel.records import Table
from embedding.worker.learning.heldout import HeldOut, HeldPairs, hold_out, pairs_of
from embedding.worker.learning.planning import CodedText

MAX_PAIRS = 8192
MIN_PAIRS = 200


def part(sentences: int, words: int = 50, length: int = 10, seed: int = 0) -> CodedText:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, words, sentences * length).astype(np.int32)
    offsets = np.arange(0, sentences * length + 1, length, dtype=np.int32)
    return CodedText(np.arange(100, 100 + words, dtype=np.int64), codes, offsets)


def kept(ids: np.ndarray) -> np.ndarray:
    return np.ones(len(ids), dtype=np.float32)


def noise(n: int) -> np.ndarray:
    return np.resize(np.arange(100, 150, dtype=np.int64), n)


def test_what_is_held_out_is_unknown_to_training_and_the_rest_as_it_was() -> None:
    given = part(2_000)
    rest, ids, sentences = hold_out(given, 0.1, np.random.default_rng(1))
    out = rest.ids < 0
    assert 0.07 < out.mean() < 0.13
    assert (rest.ids[~out] == given.ids[~out]).all()
    assert (ids == given.ids[out]).all()
    assert (rest.sentences == given.sentences).all()
    # Whole sentences.
    assert set(np.diff(sentences).tolist()) == {10}
    assert (out.reshape(-1, 10).all(axis=1) == out.reshape(-1, 10).any(axis=1)).all()


def test_a_share_of_nothing_leaves_all() -> None:
    given = part(50)
    rest, ids, sentences = hold_out(given, 0.0, np.random.default_rng(1))
    assert rest is given
    assert len(ids) == 0
    assert sentences.tolist() == [0]


def test_pairs_stay_in_their_sentence_and_in_reach() -> None:
    ids = np.array([1, 2, 3, -1, 5, 10, 11], dtype=np.int64)
    centres, contexts = pairs_of(
        ids, np.array([0, 5, 7], np.int32), 2, kept, np.random.default_rng(0)
    )
    pairs = set(zip(centres.tolist(), contexts.tolist(), strict=True))
    assert {(1, 2), (2, 1), (2, 3), (3, 2), (10, 11), (11, 10)} <= pairs
    assert pairs <= {(1, 2), (2, 1), (2, 3), (3, 2), (10, 11), (11, 10)} | {
        *((1, 3), (3, 1), (3, 5), (5, 3))
    }


def test_the_loss_is_that_of_the_formula() -> None:
    ids = np.array([7, 3, 9], dtype=np.int64)
    rows = {
        Table.IN: np.array([[1.0, 0.0], [0.0, 2.0]], np.float32),
        Table.OUT: np.array([[0.5, 0.5], [1.0, -1.0], [0.0, 1.0]], np.float32),
    }
    pairs = HeldPairs(np.array([7, 3]), np.array([3, 9]), np.array([[9, 9], [7, 3]]))

    def sigma(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    first = -math.log(sigma(1.0)) - 2 * math.log(sigma(0.0))
    second = -math.log(sigma(2.0)) - math.log(sigma(-1.0)) - math.log(sigma(2.0))
    assert pairs.loss(ids, rows) == pytest.approx((first + second) / 2)


def test_the_latest_pairs_are_remembered_and_too_few_say_nothing() -> None:
    held = HeldOut(0.2, 5, 3, seed=1)
    assert held.pairs(lambda ids: ids, np.arange(1)) is None
    held.take([part(5)], kept, noise)
    few = held.pairs(lambda ids: ids, np.arange(2))
    assert few is None or len(few.centres) >= MIN_PAIRS
    for seed in range(20):
        held.take([part(2_000, seed=seed)], kept, noise)
    pairs = held.pairs(lambda ids: ids, np.arange(3))
    assert pairs is not None
    assert len(pairs.centres) == MAX_PAIRS
    assert pairs.negatives.shape == (MAX_PAIRS, 3)
    assert held.pairs(lambda ids: ids, np.arange(3)) is pairs, "the same words: looked up once"
    # Words that were evicted meanwhile take their pairs along.
    gone = held.pairs(lambda ids: np.where(ids == 100, -1, ids), np.arange(4))
    assert gone is not None
    assert 100 not in gone.ids
    assert held.pairs(lambda ids: np.full(len(ids), -1), np.arange(5)) is None


def test_without_noise_words_nothing_is_remembered() -> None:
    held = HeldOut(0.5, 5, 3, seed=1)
    held.take([part(500)], kept, lambda n: np.empty(0, np.int64))
    assert held.pairs(lambda ids: ids, np.arange(1)) is None
