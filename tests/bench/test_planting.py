"""Planted changes: as many as asked, of the kind they say, and nothing else."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.kernel.errors import InputError
from generated import examples
from yeoron_bench.planting import DECOYS, NEW_SPELLING, ChangeKind, PlantingConfig, plant

WORDS = [f"w{i}" for i in range(400)]
CONFIG = PlantingConfig(
    windows=6, bands=2, exchanges=2, gains=1, decoys=1, least=5, common=5, strengths=(0.5, 1.0)
)


@pytest.fixture(scope="module")
def documents():
    rng = np.random.default_rng(0)
    share = 1 / np.arange(4, 404)
    share /= share.sum()
    return [[list(rng.choice(WORDS, 8, p=share))] for _ in range(3000)]


def counted(docs) -> Counter[str]:
    return Counter(word for document in docs for sentence in document for word in sentence)


def test_every_band_gets_its_changes_and_no_word_two(documents):
    corpus = plant(documents, CONFIG)
    for band in range(2):
        kinds = Counter(one.kind for one in corpus.planted if one.band == band)
        assert kinds == {ChangeKind.EXCHANGED: 4, ChangeKind.GAINED: 1} | dict.fromkeys(DECOYS, 1)
    names = [one.word for one in corpus.planted]
    assert len(set(names)) == len(names)
    assert {one.strength for one in corpus.planted if one.kind.genuine} == {0.5, 1.0}
    assert all(3 <= one.window < 6 for one in corpus.planted)


def test_an_exchange_keeps_both_frequencies_and_changes_the_texts(documents):
    config = CONFIG.model_copy(update={"strengths": (1.0,), "decoys": 0, "gains": 0})
    plain = plant(documents, config.model_copy(update={"exchanges": 0, "gains": 0}))
    corpus = plant(documents, config)
    assert sum(map(len, corpus.windows)) == len(documents)
    for one in corpus.planted:
        whole = counted([d for docs in corpus.windows for d in docs])
        before = counted([d for docs in plain.windows for d in docs])
        assert abs(np.log(before[one.word] / before[one.other])) < 0.3
        assert whole[one.word] > 0.5 * before[one.word]


def test_decoys_change_how_often_and_where_but_not_the_words_around(documents):
    config = CONFIG.model_copy(update={"exchanges": 0, "gains": 0, "thinned": 0.8})
    corpus = plant(documents, config)
    by_window = [counted(docs) for docs in corpus.windows]
    for one in corpus.planted:
        inside, size = by_window[one.window][one.word], [c[one.word] for c in by_window]
        earlier, later = np.mean(size[: one.window]), np.mean(size[one.window :])
        if one.kind is ChangeKind.RISEN:
            assert later > 2 * earlier
        elif one.kind is ChangeKind.FALLEN:
            assert earlier > 2 * later
        elif one.kind is ChangeKind.WAVE:
            assert inside > 2 * np.mean([n for at, n in enumerate(size) if at != one.window])
        elif one.kind is ChangeKind.SEASON:
            own = [n for at, n in enumerate(size) if at % 3 == one.window % 3]
            assert np.mean(own) > 1.5 * np.mean(size)
        else:
            spelt = sum(c[one.word + NEW_SPELLING] for c in by_window[one.window :])
            assert spelt > 0
            assert one.word + NEW_SPELLING in corpus.touched
            assert not any(c[one.word + NEW_SPELLING] for c in by_window[: one.window])


def test_long_texts_lose_the_sentences_that_hold_a_decoy_and_keep_the_others(documents):
    """Twenty sentences a text: nearly every text holds a decoy that is thinned."""
    long = [[s for d in documents[at : at + 20] for s in d] for at in range(0, 3000, 20)]
    config = CONFIG.model_copy(update={"exchanges": 0, "gains": 0, "decoys": 3})
    texts = plant(long, config)
    sentences = plant(long, config.model_copy(update={"thin": "sentences"}))
    assert [one.word for one in texts.planted] == [one.word for one in sentences.planted]
    left = [sum(counted([d for w in c.windows for d in w]).values()) for c in (texts, sentences)]
    assert left[0] < 0.7 * 24_000 < 0.8 * 24_000 < left[1]
    risen = [one for one in sentences.planted if one.kind is ChangeKind.RISEN]
    by_window = [counted(docs) for docs in sentences.windows]
    for one in risen:
        before = np.mean([counts[one.word] for counts in by_window[: one.window]])
        after = np.mean([counts[one.word] for counts in by_window[one.window :]])
        assert before < 0.7 * after


def test_the_same_seed_plants_the_same_and_another_one_something_else(documents):
    assert plant(documents, CONFIG) == plant(documents, CONFIG)
    other = plant(documents, CONFIG.model_copy(update={"seed": 1}))
    assert {p.word for p in other.planted} != {p.word for p in plant(documents, CONFIG).planted}


@settings(max_examples=examples(15))
@given(st.integers(0, 99))
def test_documents_keep_their_lengths_and_none_is_invented(documents, seed):
    config = CONFIG.model_copy(update={"seed": seed})
    corpus = plant(documents, config)
    assert len(corpus.windows) == config.windows
    held = [document for docs in corpus.windows for document in docs]
    assert len(held) <= len(documents)
    assert all(len(sentence) == 8 for document in held for sentence in document)


def test_too_small_a_corpus_is_refused_in_a_sentence(documents):
    with pytest.raises(InputError, match="needed to plant in"):
        plant(documents[:50], CONFIG)


@pytest.mark.parametrize("change", [{"first": 6}, {"strengths": ()}, {"strengths": (1.5,)}])
def test_settings_that_cannot_work_are_refused(change):
    with pytest.raises(ValueError, match=r"first|strengths"):
        PlantingConfig(**change)
