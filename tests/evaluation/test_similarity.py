"""Word similarity and analogies."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from gensim.models import KeyedVectors
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from embedding.evaluation.gold import AnalogyGold, PairGold, read_gold
from embedding.evaluation.judging import analogy, similarity
from generated import examples


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=2, max_size=40))
def test_the_correlation_is_scipys_also_with_ties(pairs):
    """Words lie on a circle: the larger its number, the further one is from word 0."""
    angles = np.arange(6) / 2
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    gold = PairGold("g", tuple(("0", str(word), float(score)) for word, score in pairs))
    found = similarity(vectors, lambda words: np.array([int(word) for word in words]), gold).rho
    nearness, scores = (np.array(side, float) for side in zip(*pairs, strict=True))
    if len(pairs) < 3 or len({*nearness}) == 1 or len({*scores}) == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(spearmanr(-nearness, scores).statistic, abs=1e-12)


def test_coverage_and_lower_case(store, make):
    snapshot = store.open(store.publish(make()).id)
    pairs = (
        ("왕", "여왕", 8.0),
        ("코로나", "마스크", 9.0),
        ("왕", "코로나", 1.0),
        ("왕", "x", 3.0),
    )
    result = similarity(snapshot.vectors, snapshot.rows, PairGold("g", pairs))
    assert (result.covered, result.pairs, result.coverage) == (3, 4, 0.75)
    assert result.rho == pytest.approx(1.0)

    def rows(words):
        return np.array([{"athens": 0, "greece": 1, "bern": 2}.get(word, -1) for word in words])

    gold = PairGold(
        "g", (("Athens", "Greece", 3.0), ("bern", "Greece", 2.0), ("bern", "Athens", 1))
    )
    assert similarity(np.eye(3, 4), rows, gold).covered == 3


@pytest.mark.parametrize("place", [np.asarray, torch.tensor])
def test_both_agree_with_gensim(tmp_path, place):
    random = np.random.default_rng(3)
    words = [f"w{at}" for at in range(80)]
    vectors = random.normal(size=(80, 6)).astype(np.float32)
    index = {word: at for at, word in enumerate(words)}

    def rows(asked):
        return np.array([index.get(word, -1) for word in asked], np.int64)

    lines = [(*random.choice(words, 2), random.integers(10)) for _ in range(60)]
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("\n".join(f"{a}\t{b}\t{c}" for a, b, c in lines))
    answers = tmp_path / "analogies.txt"
    chosen = [random.choice(words, 3, replace=False) for _ in range(300)]
    best = [_best(vectors, [index[w] for w in three]) for three in chosen]
    questions = [
        (*three, words[b if at % 3 else (b + 1) % 80])
        for at, (three, b) in enumerate(zip(chosen, best, strict=True))
    ]
    answers.write_text(": one\n" + "\n".join(" ".join(q) for q in questions))

    theirs = KeyedVectors(6)
    theirs.add_vectors(words, vectors)
    gold = read_gold(pairs)
    assert isinstance(gold, PairGold)
    rho = theirs.evaluate_word_pairs(str(pairs))[1].statistic
    assert similarity(place(vectors), rows, gold).rho == pytest.approx(rho, abs=1e-4)
    gold = read_gold(answers)
    assert isinstance(gold, AnalogyGold)
    total, _ = analogy(place(vectors), rows, gold)
    score = theirs.evaluate_word_analogies(str(answers))[0]
    assert total.accuracy == pytest.approx(score, abs=1e-9)
    assert 0.5 < score < 0.8


def _best(vectors, three):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    a, b, c = unit[three]
    scores = (b - a + c) @ unit.T
    scores[three] = -9
    return int(scores.argmax())


def test_sections_and_unknown_words(store, make, gold):
    snapshot = store.open(store.publish(make()).id)
    read = read_gold(gold[1])
    assert isinstance(read, AnalogyGold)
    total, sections = analogy(snapshot.vectors, snapshot.rows, read)
    couples, odd = sections["남녀"], sections["엉뚱"]
    assert (couples.correct, couples.asked, couples.questions) == (2, 2, 3)
    assert (odd.asked, odd.questions) == (1, 1)
    assert total.questions == 4
