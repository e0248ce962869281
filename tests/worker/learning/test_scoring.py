"""Pairs to score: inside one sentence, of known words, evenly from each document."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from embedding.worker.learning.learner import PairSampler

SAMPLER = PairSampler(window=2, pairs=6, negative=3)
NOISE = np.arange(100, 120, dtype=np.int64)


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=8), min_size=1, max_size=10),
    st.integers(0, 10_000),
)
def test_pairs_are_neighbours_within_a_sentence(sentences: list[list[int]], seed: int) -> None:
    # Ids tell where a token stands: sentence * 100 + place.
    ids = [
        s * 100 + place for s, sentence in enumerate(sentences) for place in range(len(sentence))
    ]
    ends = np.cumsum([0, *[len(sentence) for sentence in sentences]]).astype(np.int32)
    documents = np.arange(len(sentences) + 1, dtype=np.int32)
    pairs = SAMPLER.sample(
        "news",
        np.asarray(ids),
        ends,
        documents,
        1000 + documents[:-1].astype(np.int64),
        NOISE,
        np.random.default_rng(seed),
    )
    if pairs is None:
        return
    assert (pairs.centres // 100 == pairs.contexts // 100).all()
    distance = np.abs(pairs.centres - pairs.contexts)
    assert ((distance >= 1) & (distance <= SAMPLER.window)).all()
    assert np.bincount(pairs.centres // 100).max() <= SAMPLER.pairs
    assert pairs.negatives.shape == (len(pairs.centres), 3)
    assert np.isin(pairs.negatives, NOISE).all()
    assert (pairs.windows == 1000 + pairs.centres // 100).all()


def test_every_document_with_a_pair_is_scored() -> None:
    ids = np.arange(400, dtype=np.int64)
    sentences = np.asarray([0, 20, 390, 400], dtype=np.int32)
    documents = np.asarray([0, 1, 2, 3], dtype=np.int32)
    windows = np.zeros(3, dtype=np.int64)
    rng = np.random.default_rng(1)
    pairs = SAMPLER.sample("news", ids, sentences, documents, windows, NOISE, rng)
    assert pairs is not None
    owners = np.searchsorted(sentences, pairs.centres, side="right")
    assert set(owners.tolist()) == {1, 2, 3}


def test_unknown_words_give_no_pair() -> None:
    ids = np.full(10, -1, dtype=np.int64)
    offsets = np.asarray([0, 10], dtype=np.int32)
    documents = np.asarray([0, 1], dtype=np.int32)
    windows = np.zeros(1, dtype=np.int64)
    rng = np.random.default_rng(0)
    assert SAMPLER.sample("x", ids, offsets, documents, windows, NOISE, rng) is None


def test_a_block_of_many_short_documents_has_no_more_pairs_than_others() -> None:
    count = 500
    ids = np.arange(4 * count, dtype=np.int64)
    sentences = np.arange(count + 1, dtype=np.int32) * 4
    documents = np.arange(count + 1, dtype=np.int32)
    windows = np.arange(count, dtype=np.int64)
    for most in (100, 1_200):
        sampler = PairSampler(window=2, pairs=6, negative=3, most=most)
        rng = np.random.default_rng(1)
        pairs = sampler.sample("news", ids, sentences, documents, windows, NOISE, rng)
        assert pairs is not None
        assert most // 3 < len(pairs.centres) <= most
        # Spread over the documents, also where not each has a pair.
        assert len(np.unique(pairs.windows)) > min(most, count) // 2
