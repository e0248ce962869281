"""`python -m benchmarks smalltext`: what its figures say of vectors made for them."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from embedding.evaluation.gold import PairGold
from embedding.kernel.records import WindowUnit
from embedding.snapshots.nearness import centre_of, directions_of, frequent, sureness

ROOT = Path(__file__).resolve().parents[2]
WORDS = [f"w{row}" for row in range(400)]
DIM = 16


@pytest.fixture
def judging(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import smalltextjudging

    yield smalltextjudging
    sys.modules.pop("benchmarks.smalltextjudging", None)


@pytest.fixture
def corpora(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import smalltextcorpus

    yield smalltextcorpus
    sys.modules.pop("benchmarks.smalltextcorpus", None)


def table(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(len(WORDS), DIM)).astype(np.float32)


@pytest.fixture
def model(judging):
    counts = np.arange(len(WORDS), 0, -1, dtype=np.int64) + 4
    return judging.Model(WORDS, counts, table(1), table(2))


@pytest.fixture
def shared(judging, model):
    gold = PairGold("pairs", (("w1", "w2", 1.0), ("w3", "w4", 2.0), ("w5", "w6", 3.0)))
    asked = judging.choose(WORDS, model.counts, frozenset(WORDS), 100)
    return judging.Shared(WORDS, model.counts, asked, table(1), [" ".join(WORDS)], [gold])


def test_a_model_agrees_with_itself_and_by_chance_with_another(judging, model, shared):
    same = judging.judge(model, shared)
    other = judging.judge(replace(model, vectors=table(3)), shared)
    assert same["agreement"] == 1.0
    # Ten of 399 by chance: 0.025.
    assert 0.0 <= other["agreement"] < 0.06
    assert 0.0 <= other["agreement_shown"] < 0.06
    assert same["gold/pairs"] == pytest.approx(judging.judge(model, shared)["gold/pairs"])
    assert same["covered/pairs"] == 3


def test_neighbours_as_shown_are_ranked_by_nearness(judging, model, shared):
    counts = np.where(np.arange(len(WORDS)) < 20, 10_000, 3)
    ranked = judging.ranked(model.vectors, shared.asked, counts)
    directions = directions_of(model.vectors, centre_of(model.vectors[frequent(counts)]))
    near = (directions[shared.asked] @ directions.T) * sureness(counts)
    near[np.arange(len(near)), shared.asked] = -np.inf
    wanted = np.argsort(-near, axis=1, kind="stable")[:, : judging.NEAREST]
    assert (ranked == wanted).mean() > 0.99


def test_the_order_of_words_in_a_model_does_not_matter(judging, model, shared):
    order = np.random.default_rng(4).permutation(len(WORDS))
    mixed = judging.Model(
        [WORDS[row] for row in order],
        model.counts[order],
        model.vectors[order],
        model.contexts[order],
    )
    assert judging.judge(mixed, shared) == judging.judge(model, shared)


def test_a_collapsed_set_has_one_direction(judging):
    spread = table(5)
    collapsed = np.ones(DIM, np.float32) + 0.01 * spread
    assert judging.mean_cosine(collapsed) > 0.99
    assert judging.first_axis(collapsed) > 0.99
    assert abs(judging.mean_cosine(spread)) < 0.02
    assert 1 / DIM <= judging.first_axis(spread) < 2 / DIM


def test_the_loss_is_of_the_contexts_too(judging, model, shared):
    untaught = replace(model, contexts=np.zeros_like(model.contexts))
    assert judging.judge(untaught, shared)["next_loss"] == pytest.approx(6 * np.log(2), rel=1e-4)
    assert judging.judge(model, shared)["next_loss"] > 6 * np.log(2)
    assert "next_loss" not in judging.judge(model, replace(shared, behind=[]))


def test_words_are_asked_for_equally_from_rare_to_frequent(judging):
    words = [f"w{at}" for at in range(1_000)]
    counts = np.array([1_000] * 20 + [100] * 100 + [30] * 100 + [15] * 280 + [6] * 500)
    asked = judging.choose(words, counts, frozenset(words[1:]), 219)
    of = [judging.stratum(int(count)) for count in counts[asked]]
    assert [of.count(number) for number in range(5)] == [50, 50, 50, 50, 19]
    assert 0 not in asked
    # A vocabulary without some words asks for the same ones otherwise.
    fewer = judging.choose(words[:-10], counts[:-10], frozenset(words[1:]), 219)
    assert len(set(asked) & set(fewer)) >= 209


def test_a_ratio_is_to_the_best_number_of_passes(judging, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.smalltext import ratio_of

    found = {
        "ours": {"agreement": 0.2, "agreement_shown": 0.3, "next_loss": 4.0, "mean_cosine": 0.6},
        "gensim-5": {"agreement": 0.1, "next_loss": 2.0, "mean_cosine": 0.1},
        "gensim-50": {"agreement": 0.4, "next_loss": 5.0, "mean_cosine": 0.3},
    }
    found = {side: judging.summary([figures] * 3) for side, figures in found.items()}
    assert ratio_of(found, "agreement") == (0.5, "gensim-50")
    assert ratio_of(found, "agreement_shown") == (pytest.approx(0.75), "gensim-50")
    assert ratio_of(found, "next_loss") == (2.0, "gensim-5")
    # Not gensim-5, whose vectors have hardly learnt.
    assert ratio_of(found, "mean_cosine") == (2.0, "gensim-50")
    assert ratio_of(found, "gold/pairs")[1] is None


def test_windows_are_judged_where_there_is_enough_text(corpora, monkeypatch):
    monkeypatch.setattr(corpora, "LEAST_TOKENS", 100)
    sizes = {"2020-01": 40, "2020-02": 80, "2020-03": 2, "2020-04": 60, "2020-05": 100}
    documents = [
        corpora.Document(f"{month}-01T00:00:00+00:00", (" ".join(["말"] * 10),))
        for month, size in sizes.items()
        for _ in range(max(1, size // 10))
    ]
    corpus = corpora.TokenCorpus("some", documents, frozenset({"말"}))
    ends = corpus.ends(WindowUnit.MONTH)
    assert [end.start for end in ends] == [datetime(2020, at, 1, tzinfo=UTC) for at in (2, 3, 4, 5)]
    assert [end.tokens for end in ends] == [120, 130, 190, 290]
    assert [end.tokens for end in corpora.spread(ends, 2)] == [120, 290]
    # Behind February: March has too little text, so that April and May are read too.
    assert len(corpus.behind(ends[0].documents, WindowUnit.MONTH)) == 17
    assert corpus.behind(len(documents), WindowUnit.MONTH) == []
    cut = corpus.first(125)
    assert [end.tokens for end in cut.ends(WindowUnit.MONTH)] == [120, 130]
