"""Whether the vectors of a model can be read: the figures and the sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest

from embedding.snapshots.nearness import centre_of, directions_of
from embedding.snapshots.readability import reference_losses, spread, unreadable

CHANCE = np.random.default_rng(0).normal(size=(500, 40)).astype(np.float32)


def test_vectors_by_chance_are_spread_and_those_of_one_direction_are_not() -> None:
    figures = spread(CHANCE)
    assert abs(figures["mean_cosine"]) < 0.01
    assert figures["first_axis"] < 0.08
    together = spread(CHANCE + 20.0)
    assert together["mean_cosine"] > 0.98
    assert together["first_axis"] > 0.98
    assert spread(CHANCE[:50]) == {}


def test_the_mean_cosine_is_that_of_all_pairs() -> None:
    few = CHANCE[:120] + 0.5
    units = few / np.linalg.norm(few, axis=1, keepdims=True)
    cosines = units @ units.T
    mean = (cosines.sum() - 120) / (120 * 119)
    assert spread(few)["mean_cosine"] == pytest.approx(float(mean), abs=1e-5)


def test_losses_to_be_held_against() -> None:
    untrained, unigram = reference_losses(5)
    assert untrained == pytest.approx(6 * math.log(2))
    # The best constant score: -log σ(s) - 5 log σ(-s) is least at s = -ln 5.
    scores = np.linspace(-5, 5, 100_001)
    losses = np.logaddexp(0, -scores) + 5 * np.logaddexp(0, scores)
    assert unigram == pytest.approx(float(losses.min()), abs=1e-6)


def test_a_collapsed_or_untrained_model_cannot_be_read_and_it_is_said_what_is_missing() -> None:
    assert unreadable({}) is None
    assert unreadable({"mean_cosine": 0.2, "first_axis": 0.3, "words_read": 10.0}) is None
    why = unreadable({"mean_cosine": 0.98, "first_axis": 0.99, "words_read": 12_345.0})
    assert why is not None
    assert "mean cosine 0.98" in why
    assert "about 38,000 more words are needed" in why
    why = unreadable({"mean_cosine": 0.1, "held_out": 2.70, "held_out_unigram": 2.703})
    assert why is not None
    assert "held-out text" in why
    why = unreadable({"mean_cosine": 0.9, "words_read": 1e7})
    assert why is not None
    assert "node.rehearsal_passes" in why


def test_what_all_have_in_common_is_taken_out_of_directions() -> None:
    common = CHANCE + 3.0
    directions = directions_of(common, centre_of(common))
    assert abs(spread(directions)["mean_cosine"]) < 0.01
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0, rtol=1e-5)
    assert not directions_of(np.zeros((1, 40), np.float32), centre_of(common)).any()
    # Of a few words nothing is taken out: their mean would be the words themselves.
    assert not centre_of(common[:20]).any()


def test_plain_text_is_judged_by_the_loss_of_what_was_learnt_last() -> None:
    unigram = reference_losses(5)[1]
    figures = {"mean_cosine": 0.02, "words_read": 151_155.0, "held_out_unigram": unigram}
    why = unreadable({**figures, "loss": 4.158})
    assert why is not None
    assert "it predicts the text that it learns no better than word frequencies do" in why
    assert "--epochs" in why
    assert unreadable({**figures, "loss": 2.3}) is None


def test_vectors_of_one_direction_can_be_read_where_the_model_has_learnt_well() -> None:
    """As after one pass over millions of words: what all have in common is taken off."""
    unigram = reference_losses(5)[1]
    figures = {"mean_cosine": 0.62, "words_read": 12e6, "held_out_unigram": unigram}
    assert unreadable({**figures, "loss": 2.0}) is None
    assert unreadable({**figures, "loss": 2.5}) is not None
    assert unreadable(figures) is not None
