"""Figures of who finds planted changes, against examples worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from yeoron_bench.detection import Judgement, average_precision, detect
from yeoron_bench.planting import ChangeKind, PlantedChange, PlantedCorpus

CORPUS = PlantedCorpus(
    windows=(([],) * 9, ([],) * 4, ([],) * 3),
    planted=(
        PlantedChange("a", ChangeKind.EXCHANGED, 1, 0.5, 0, "b"),
        PlantedChange("b", ChangeKind.EXCHANGED, 1, 0.5, 0, "a"),
        PlantedChange("c", ChangeKind.GAINED, 2, 1.0, 1, "gone"),
        PlantedChange("d", ChangeKind.RISEN, 1, 1.0, 0),
    ),
    touched=frozenset({"gone"}),
)


def judged(window: int, scores: dict[str, float], flagged: str | None, mentions: int = 10):
    words = sorted(scores)
    return Judgement(
        window,
        words,
        np.array([scores[w] for w in words], dtype=np.float32),
        None if flagged is None else np.array([w in flagged for w in words]),
        np.full(len(words), mentions),
    )


def test_average_precision_by_hand():
    score, hit = np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, False, True, False])
    assert average_precision(score, hit) == pytest.approx((1 + 2 / 3) / 2)
    assert np.isnan(average_precision(score, np.zeros(4, bool)))


def test_figures_over_two_windows():
    first = judged(1, {"a": 9, "d": 8, "b": 7, "x": 1, "c": 5, "gone": 99}, "ad")
    second = judged(2, {"a": 9, "c": 5, "x": 6, "b": 1, "d": 0}, "cxb", mentions=30)
    found = detect([first, second], CORPUS)
    # Window 1: a, d, b in this order (c changes later); window 2: x, then c.
    assert found.average_precision == pytest.approx(((1 + 2 / 3) / 2 + 1 / 2) / 2)
    assert found.by_strength == pytest.approx({"0.5": (1 + 2 / 3) / 2, "1": 1 / 2})
    assert found.by_band == pytest.approx({"0": (1 + 2 / 3) / 2, "1": 1 / 2})
    assert found.by_decoy == {"risen": 1.0}
    # Called: a (right), d (wrong), c (right), x (wrong), b (right, a window late).
    assert found.flagged == 5
    assert found.precision == pytest.approx(3 / 5)
    assert found.false_discovery == pytest.approx(2 / 5)
    assert found.recall == pytest.approx(1.0)
    assert found.mentions == pytest.approx(30.0), "a after 10, b after 40, c after 30"
    assert found.documents == pytest.approx(4.0), "a after 4, b after 4 + 3, c after 3"


def test_an_estimator_that_only_ranks_has_no_decisions():
    found = detect([judged(1, {"a": 2, "b": 1, "x": 0}, None)], CORPUS)
    assert (found.precision, found.recall, found.false_discovery) == (None, None, None)
    assert found.average_precision == pytest.approx(1.0)


def test_a_change_that_could_not_be_compared_was_not_found():
    found = detect([judged(1, {"a": 2, "x": 0}, "a")], CORPUS)
    assert found.average_precision == pytest.approx(0.5)
    assert found.recall == pytest.approx(1 / 3)
