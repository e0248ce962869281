"""Vectors from counts of a text: the formula, and that no text counts more than another."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from embedding.worker.usage.countvectors import count_vectors
from embedding.worker.usage.paircounts import pair_counts

SMOOTHED = 0.75

WORDS, WINDOW = 30, 3


def text(seed: int = 0, sentences: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Sentences of words that follow from a hidden class of each sentence; -1 here and there."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, sentences)
    kinds = np.repeat(rng.integers(0, 3, sentences), lengths)
    tokens = rng.integers(0, 10, lengths.sum()) + 10 * kinds
    tokens[rng.random(len(tokens)) < 0.1] = -1
    return tokens.astype(np.int32), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def information(tokens: np.ndarray, sentences: np.ndarray) -> np.ndarray:
    """P of the docstring, pair by pair."""
    counts = np.zeros((WORDS, WORDS))
    for low, high in itertools.pairwise(sentences):
        for at in range(low, high):
            for near in range(max(low, at - WINDOW), at):
                if tokens[at] >= 0 and tokens[near] >= 0:
                    counts[tokens[at], tokens[near]] += 1
                    counts[tokens[near], tokens[at]] += 1
    total = counts.sum(axis=1)
    expected = np.outer(total, total) ** ((1 + SMOOTHED) / 2) / (total**SMOOTHED).sum()
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(counts / expected), 0.0)


def vectors(tokens: np.ndarray, sentences: np.ndarray, dim: int = WORDS) -> np.ndarray:
    pairs = pair_counts(tokens, sentences, len(tokens) // 2, WINDOW, WORDS)
    return count_vectors(pairs, np.arange(WORDS, dtype=np.uint64) * 7000, dim)


def test_in_all_directions_products_are_those_of_the_matrix_without_signs():
    """(U √S)(U √S)ᵀ is the square root of P Pᵀ."""
    found = vectors(*text())
    values, axes = np.linalg.eigh(information(*text()))
    np.testing.assert_allclose(found @ found.T, (axes * np.abs(values)) @ axes.T, atol=2e-4)


def test_words_of_one_class_are_alike():
    found = vectors(*text(), dim=5)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    cosines = found @ found.T
    own = np.arange(WORDS)[:, None] // 10 == np.arange(WORDS) // 10
    assert cosines[own].mean() > 0.5 > 0.1 > cosines[~own].mean()


def test_the_order_of_texts_says_nothing():
    tokens, sentences = text()
    half = sentences[len(sentences) // 2]
    turned = np.concatenate([tokens[half:], tokens[:half]])
    lengths = np.diff(sentences)
    lengths = np.concatenate([lengths[len(lengths) // 2 :], lengths[: len(lengths) // 2]])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    np.testing.assert_allclose(
        vectors(tokens, sentences, 8), vectors(turned, offsets, 8), atol=1e-4
    )


@pytest.mark.parametrize("border", [0, 400, 10_000])
def test_pairs_are_counted_both_ways_and_by_part(border: int):
    tokens, sentences = text()
    found = pair_counts(tokens, sentences, border, WINDOW, WORDS)
    dense = np.zeros((WORDS, WORDS, 2))
    for word in range(WORDS):
        own = slice(found.starts[word], found.starts[word + 1])
        assert (np.diff(found.contexts[own]) > 0).all(), "in order, each once"
        dense[word, found.contexts[own]] = found.counts[own]
    expected = np.zeros_like(dense)
    for low, high in itertools.pairwise(sentences.tolist()):
        for at in range(low, high):
            for near in range(max(low, at - WINDOW), min(high, at + WINDOW + 1)):
                if near != at and tokens[at] >= 0 and tokens[near] >= 0:
                    expected[tokens[at], tokens[near], int(at >= border)] += 1
    np.testing.assert_array_equal(dense, expected)
    np.testing.assert_array_equal(found.totals(), expected.sum(axis=1))


def test_nodes_that_read_alike_texts_have_nearly_one_space():
    one, other = (vectors(*text(seed, 20_000), dim=3) for seed in (1, 2))
    cosines = (one * other).sum(axis=1) / np.linalg.norm(one, axis=1)
    assert (cosines / np.linalg.norm(other, axis=1)).min() > 0.9


@pytest.mark.parametrize("tokens", [[], [-1, -1], [3]])
def test_a_text_without_pairs_has_no_vectors(tokens: list[int]):
    pairs = pair_counts(np.array(tokens, np.int32), np.array([0, len(tokens)]), 0, 5, 4)
    found = count_vectors(pairs, np.arange(4, dtype=np.uint64), 6)
    assert found.shape == (4, 6)
    assert not found.any()
