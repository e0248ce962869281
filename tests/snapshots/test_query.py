"""Nearest words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.kernel.errors import InputError
from embedding.snapshots import nearness
from embedding.snapshots.nearness import RowScales, directions_of, sureness
from generated import examples


@settings(max_examples=examples(40))
@given(
    st.integers(1, 60), st.integers(1, 5), st.integers(1, 70), st.integers(0, 2**31), st.booleans()
)
def test_the_nearest_are_those_by_brute_force(n, dim, k, seed, centred):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(n, dim)).astype(np.float32)
    vectors[random.random(n) < 0.1] = 0
    query = random.normal(size=dim).astype(np.float32)
    centre = random.uniform(-0.5, 0.5, dim).astype(np.float32) * centred
    sure = sureness(np.arange(n))
    block, nearness._BLOCK = nearness._BLOCK, 7
    try:
        scales = RowScales.of(vectors, centre, sure)
    finally:
        nearness._BLOCK = block
    rows, figures = scales.nearest(vectors, query, k)
    full = directions_of(vectors, centre) @ directions_of(query[None], centre)[0] * sure
    assert len(rows) == min(k, n) == len(set(rows.tolist()))
    np.testing.assert_allclose(figures, full[rows], atol=1e-4)
    np.testing.assert_allclose(figures, -np.sort(-full)[:k], atol=1e-4)
    left, _ = scales.nearest(vectors, query, n, without=0)
    assert sorted(left.tolist()) == list(range(1, n))


def test_a_word_leaves_itself_out(folder, make):
    data = make()
    snapshot = folder.open(folder.publish(data).id)
    found = snapshot.neighbours("코로나", 20)
    unit = data.vectors / np.linalg.norm(data.vectors, axis=1, keepdims=True)
    near = unit @ unit[0] * sureness(snapshot.counts)
    order = [at for at in np.argsort(-near) if at != 0]
    assert [word for word, _ in found] == [data.words[at] for at in order]
    np.testing.assert_allclose([c for _, c in found], near[order], atol=1e-6)


def test_equal_rows_come_in_row_order(folder, make):
    vectors = np.ones((8, 6), np.float32)
    snapshot = folder.open(folder.publish(make(vectors=vectors)).id)
    assert [word for word, _ in snapshot.neighbours("일본", 3)] == ["코로나", "마스크", "조국"]


def test_lookups(folder, make):
    snapshot = folder.open(folder.publish(make()).id)
    assert snapshot.index("조국") == 3
    assert snapshot.index("없는말") is None
    assert "🙂" in snapshot
    assert 5 not in snapshot
    assert snapshot.rows(["방역", "없는말", "코로나"]).tolist() == [7, -1, 0]
    assert snapshot.rows([]).tolist() == []
    assert snapshot.rows(snapshot.word_column).tolist() == list(range(8))
    assert snapshot.index("\ud800") is None
    assert snapshot.source_counts("\ud800") == {}


@pytest.mark.parametrize(
    ("question", "n", "sentence"),
    [
        ("없는말", 3, "no word '없는말' among 8"),
        ("코로나", 0, "n is at least 1"),
    ],
)
def test_questions_that_cannot_be_answered(folder, make, question, n, sentence):
    snapshot = folder.open(folder.publish(make()).id)
    with pytest.raises(InputError, match=sentence):
        snapshot.neighbours(question, n)


def test_tables_are_mapped_not_loaded(folder, make):
    snapshot = folder.open(folder.publish(make()).id)
    for table in (snapshot.vectors, snapshot.contexts, snapshot.ids):
        assert not table.flags.owndata
        assert not table.flags.writeable
