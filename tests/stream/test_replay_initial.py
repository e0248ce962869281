"""First replay priorities, as the crawling side sets them."""

from __future__ import annotations

import numpy as np
import pytest

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import TokenBlock
from embedding.models.sampling import keep_probabilities
from embedding.stream.ring import of_sentences
from yeoron_lab.prioritised.initial import (
    InitialPriorities,
    gradient_figure,
    loss_figure,
    trained_chance,
)


def block(*documents: str) -> TokenBlock:
    """Documents of sentences parted by ` / `, of words parted by blanks."""
    made = [[part.split() for part in one.split(" / ")] if one else [] for one in documents]
    n = len(made)
    return TokenBlock.build("news", made, published=[0.0] * n, keys=[str(i) for i in range(n)])


def test_a_token_is_trained_as_the_model_will_subsample() -> None:
    counts = np.array([900, 90, 9, 1, 0])
    chance = trained_chance(counts, 1_000, sample=1e-3, min_count=2)
    wanted = keep_probabilities(counts[:3], 1_000, 1e-3)
    np.testing.assert_allclose(chance[:3], wanted, rtol=1e-6)
    assert chance[3:].tolist() == [0, 0]  # no row, no gradient
    assert trained_chance(counts, 1_000, sample=0, min_count=2).tolist() == [1, 1, 1, 0, 0]


def test_the_gradient_figure_is_the_share_of_trained_tokens() -> None:
    chance = np.array([1.0, 0.5, 0.0])
    codes = np.array([0, 0, 1, 2, 2, 2], np.int32)
    ends = np.array([0, 2, 4, 4, 6], np.int32)
    assert gradient_figure(codes, ends, chance).tolist() == [1.0, 0.25, 0.0, 0.0]


def test_the_loss_figure_is_the_surprise_of_trained_tokens() -> None:
    chance, counts = np.array([1.0, 0.5, 0.0]), np.array([1, 7, 0])
    codes = np.array([0, 1, 2, 1, 2, 2], np.int32)
    ends = np.array([0, 3, 4, 6], np.int32)
    found = loss_figure(codes, ends, chance, counts, 8)
    nats = np.log(12) - np.log([2, 8])
    wanted = [(nats[0] + 0.5 * nats[1]) / 1.5, nats[1], 0.0]
    np.testing.assert_allclose(found, wanted)


def test_sentences_inherit_the_priority_of_their_document() -> None:
    made = block("a b / c", "", "d / e / f")
    found = of_sentences(np.array([3, 9, 5], np.float32), made.documents)
    assert found.tolist() == [3, 3, 5, 5, 5]
    assert found.dtype == np.float32


def test_documents_of_words_that_train_come_first() -> None:
    crawler = InitialPriorities("gradient", sample=0.01, min_count=2)
    usual = "of the of the of the of the of the of the of the"
    crawler.priorities(block(*[f"{usual} news{i % 9}" for i in range(200)]))
    found = crawler.priorities(block(usual, "news1 news2 news3 news4", "once upon"))
    assert found.dtype == np.float32
    assert found[1] > 2 * found[0] > 0
    assert found[2] == 0  # words without a row


def test_surprising_documents_come_first_when_the_loss_ranks() -> None:
    crawler = InitialPriorities("loss", sample=0, min_count=1)
    crawler.priorities(block(*["of the news"] * 50, "rare"))
    found = crawler.priorities(block("of the", "rare rare", ""))
    assert found[1] > 1 > found[0] > 0
    assert found[2] == 1


@pytest.mark.parametrize("measure", ["loss", "gradient"])
def test_one_is_the_usual(measure: str) -> None:
    random = np.random.default_rng(1)
    crawler = InitialPriorities(measure, sample=1e-2, min_count=3)  # type: ignore[arg-type]
    means = []
    for _ in range(30):
        made = block(*[" ".join(f"w{x}" for x in random.zipf(1.5, 12)) for _ in range(40)])
        found = crawler.priorities(made)
        assert np.isfinite(found).all()
        assert (found >= 0).all()
        means.append(found.mean())
    assert np.mean(means[10:]) == pytest.approx(1, abs=0.15)


def test_nothing_to_rank_by_gives_one_to_all() -> None:
    crawler = InitialPriorities("gradient", sample=0, min_count=100)
    assert crawler.priorities(block("a b", "c", "")).tolist() == [1, 1, 1]
    assert crawler.priorities(block("")).tolist() == [1]


def test_memory_is_bounded() -> None:
    crawler = InitialPriorities("loss", sample=0, min_count=1, capacity=100)
    for at in range(50):
        crawler.priorities(block(" ".join(f"w{at}x{i}" for i in range(40))))
    assert len(crawler._counts) <= 100


def test_uniform_replay_needs_none() -> None:
    with pytest.raises(ConfigError, match="loss or by gradient"):
        InitialPriorities("uniform", sample=0, min_count=1)  # type: ignore[arg-type]
