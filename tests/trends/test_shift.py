"""One contract suite over every estimator of shift, and what each is in particular."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from embedding.kernel.errors import InputError
from embedding.snapshots.nearness import unit_rows
from embedding.trends import shift as shifts
from embedding.trends.config import TrendsConfig
from embedding.trends.estimators import ESTIMATORS
from embedding.trends.nearest import nearest, shared
from embedding.trends.pair import SnapshotPair
from embedding.trends.shift import fit_rotation, shift

CONFIG = TrendsConfig(neighbours=25)
# usage looks at texts, not at vectors: test_usage.py
every = pytest.mark.parametrize("name", ESTIMATORS.having("needs_usage", False))


def all_rows(pair: SnapshotPair) -> np.ndarray:
    return np.arange(len(pair), dtype=np.int64)


@every
def test_a_planted_change_scores_highest(pair, name):
    values = shift(pair, all_rows(pair), CONFIG, name)
    assert pair.words[int(values.argmax())] == "코로나"


@every
def test_scores_are_float32_between_0_and_2_one_a_row(pair, name):
    rows = np.asarray([5, 2, 9], dtype=np.int64)
    values = shift(pair, rows, CONFIG, name)
    assert values.dtype == np.float32
    assert values.shape == (3,)
    assert ((values >= 0) & (values <= 2)).all()
    np.testing.assert_allclose(values, shift(pair, all_rows(pair), CONFIG, name)[rows], atol=1e-5)


@every
def test_a_rotation_of_one_space_changes_nothing(pair, name):
    rng = np.random.default_rng(4)
    turn = np.linalg.qr(rng.standard_normal((pair.after.shape[1],) * 2))[0].astype(np.float32)
    turned = replace(pair, after=pair.after @ turn)
    rows = all_rows(pair)
    first, second = shift(pair, rows, CONFIG, name), shift(turned, rows, CONFIG, name)
    # float32: a few words swap a neighbour that is equally near
    assert np.mean(np.abs(first - second) > 1e-4) < 0.02


@every
def test_the_same_snapshot_twice_has_not_moved(pair, name):
    same = replace(pair, after=pair.before)
    assert shift(same, all_rows(pair), CONFIG, "neighbours").max() < 1e-4


@every
def test_no_rows_give_no_scores(pair, name):
    assert shift(pair, np.zeros(0, np.int64), CONFIG, name).shape == (0,)


@every
def test_too_few_common_words_are_refused(pair, name):
    tiny = SnapshotPair(
        pair.words[:2], pair.before[:2], pair.after[:2], *(np.ones(2, np.int64),) * 2
    )
    with pytest.raises(InputError, match="share 2 words"):
        shift(tiny, np.asarray([0]), CONFIG, name)


def test_other_dimensions_are_refused_by_procrustes_only(pair):
    other = replace(pair, after=unit_rows(pair.after[:, :10]))
    rows = np.asarray([0], dtype=np.int64)
    with pytest.raises(InputError, match="24 and 10"):
        shift(other, rows, CONFIG, "procrustes")
    assert 0 <= shift(other, rows, CONFIG, "neighbours")[0] <= 1


def test_anchors_that_moved_do_not_bend_the_rotation(monkeypatch):
    rng = np.random.default_rng(3)
    before = unit_rows(rng.standard_normal((400, 16)).astype(np.float32))
    turn = np.linalg.qr(rng.standard_normal((16, 16)))[0].astype(np.float32)
    after = before @ turn
    after[:60] = unit_rows(rng.standard_normal((60, 16)).astype(np.float32))
    counts = np.full(400, 100, dtype=np.int64)
    moved = SnapshotPair(tuple(map(str, range(400))), before, after, counts, counts)
    rows = np.arange(400, dtype=np.int64)
    robust = shift(moved, rows, CONFIG, "procrustes")
    monkeypatch.setattr(shifts, "ANCHOR_SHARE", 1.0)
    monkeypatch.setattr(shifts, "ANCHOR_ROUNDS", 1)
    plain = shift(moved, rows, CONFIG, "procrustes")
    assert robust[60:].max() < 1e-3 < plain[60:].max()


def test_the_fitted_rotation_is_orthogonal():
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((50, 8)).astype(np.float32) for _ in range(2))
    rotation = fit_rotation(a, b)
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(8), atol=1e-5)


def test_nearest_agrees_with_brute_force_and_leaves_the_word_out():
    rng = np.random.default_rng(0)
    vectors = unit_rows(rng.standard_normal((90, 12)).astype(np.float32))
    sure = rng.random(90).astype(np.float32)
    candidates = np.asarray(sorted(rng.choice(90, 40, replace=False)), dtype=np.int64)
    queries = np.arange(90, dtype=np.int64)
    found, _ = nearest(vectors, sure, queries, candidates, 7, block=16)
    for query in queries:
        allowed = [c for c in candidates if c != query]
        best = sorted(allowed, key=lambda c, q=query: -float(sure[c] * (vectors[q] @ vectors[c])))[
            :7
        ]
        assert list(found[query]) == best


def test_to_be_read_more_often_is_no_shift(pair):
    more = pair.seen_before * np.arange(1, len(pair) + 1)
    same = replace(pair, after=pair.before, seen_after=more)
    assert shift(same, all_rows(pair), CONFIG, "neighbours").max() < 1e-4


def test_shared_rows_of_each_line():
    first, second = np.asarray([[0, 1, 2], [3, 4, 5]]), np.asarray([[2, 1, 9], [0, 1, 2]])
    assert list(shared(first, second, 10, block=1)) == [2, 0]


def test_the_settings_name_estimators_without_loading_torch():
    code = "import sys, embedding.trends.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=150, check=False).returncode == 0


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_stabilised_scale_has_its_inverse_and_keeps_the_order(name):
    values = np.linspace(0, 1, 50)
    scale = ESTIMATORS.traits(name).scale
    stable = scale.forward(values)
    assert (np.diff(stable) > 0).all()
    np.testing.assert_allclose(scale.inverse(stable), values, atol=1e-9)
