"""How sure a vector is, and that the unsure do not take the place of the word that is meant."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from embedding.snapshots.nearness import UNSURE, RowScales, sureness


@given(st.lists(st.floats(0, 1e12), min_size=2))
def test_who_is_read_more_is_surer(counts):
    counts = np.sort(np.array(counts))
    sure = sureness(counts)
    assert sure.dtype == np.float32
    assert ((sure > 0) & (sure <= 1)).all()
    assert (np.diff(sure) >= 0).all()


def test_half_of_the_variance_is_chance_after_so_many_mentions():
    np.testing.assert_allclose(sureness([UNSURE]) ** 2, 0.5, rtol=1e-6)
    assert sureness([0]) == sureness([1])


def test_the_meant_word_is_found_among_many_that_are_near_by_chance():
    """A word read 1,000 times and 5,000 that were read 5 times."""
    rng = np.random.default_rng(2)
    dim, rare = 20, 5000
    meaning = rng.standard_normal(dim)
    counts = np.array([1000] + [5] * rare)
    vectors = rng.standard_normal((rare + 1, dim))
    vectors[0] = meaning + 0.3 * rng.standard_normal(dim)
    asked = meaning + 1.1 * rng.standard_normal(dim)
    vectors, asked = vectors.astype(np.float32), asked.astype(np.float32)
    none, sure = np.zeros(dim, np.float32), np.ones(rare + 1, np.float32)
    by_cosine, _ = RowScales.of(vectors, none, sure).nearest(vectors, asked, 10)
    by_nearness, _ = RowScales.of(vectors, none, sureness(counts)).nearest(vectors, asked, 10)
    assert by_nearness[0] == 0
    assert by_cosine[0] != 0
