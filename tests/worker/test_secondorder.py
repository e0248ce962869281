"""What stands around words, as vectors that no training touches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.models.base import LocalBlock
from embedding.records import TokenBlock
from embedding.worker.secondorder import FEW, SecondOrder, _hash, draw_signs

DIM, WINDOW = 70, 2
"""More columns than a hash has bits."""


def block(*sentences: str) -> TokenBlock:
    texts = [[list(sentence)] for sentence in sentences]
    return TokenBlock.build("뉴스", texts, published=[0.0] * len(texts), keys=["k"] * len(texts))


def fed(held: SecondOrder, ids: dict[str, int], *blocks: TokenBlock, keep: float = 1.0) -> None:
    """Read blocks of one-letter words; those without an id are in no vocabulary."""
    named = [[one.words[code] for code in one.codes.tolist()] for one in blocks]
    flat = [word for own in named for word in own]
    rows = sorted({ids[word] for word in flat if word in ids})
    tokens = np.array([rows.index(ids[w]) if w in ids else -1 for w in flat], dtype=np.int32)
    lengths = np.concatenate([np.diff(one.sentences) for one in blocks])
    fresh = LocalBlock(
        tokens=tokens,
        sentences=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        keep=np.full(len(rows), keep, np.float32),
        pool=np.empty(0, np.int32),
    )
    held.add(blocks, fresh, np.array(rows, dtype=np.int64))


def signs(word: str) -> np.ndarray:
    found = np.zeros((1, DIM), dtype=np.int8)
    draw_signs(np.array([_hash(word)], dtype=np.uint64), found)
    return found[0].astype(float)


def by_hand(sentences: list[str], words: str, keep: float = 1.0) -> dict[str, np.ndarray]:
    sums = {word: np.zeros(DIM) for word in words}
    weights = dict.fromkeys(words, 0.0)
    for sentence in sentences:
        for i, own in enumerate(sentence):
            for j in range(max(0, i - WINDOW), min(len(sentence), i + WINDOW + 1)):
                if i == j or own not in words or sentence[j] not in words:
                    continue
                weight = keep * (WINDOW + 1 - abs(i - j)) / WINDOW
                sums[own] += weight * signs(sentence[j])
                weights[own] += weight
    common = sum(sums.values()) / sum(weights.values())
    found = {}
    for word in words:
        apart = sums[word] / max(weights[word], 1e-9) - common
        trusted = np.sqrt(weights[word] / (weights[word] + FEW))
        found[word] = apart / np.linalg.norm(apart) * trusted
    return found


@pytest.mark.parametrize("keep", [1.0, 0.25])
def test_vectors_are_those_of_the_formula_in_whatever_ticks_the_text_comes(keep):
    ids = {"가": 5, "나": 3000, "다": 7, "라": 2}
    texts = ["가나다라", "나가힣다", "다다라", "가라"]
    held = SecondOrder(DIM, WINDOW)
    fed(held, ids, block(*texts[:2]), keep=keep)
    fed(held, ids, block(texts[2]), block(texts[3]), keep=keep)
    wanted = by_hand(texts, "가나다라", keep)
    order = sorted(ids, key=ids.__getitem__)
    found = held.begin(np.array([ids[word] for word in order]))
    for word, vector in zip(order, found, strict=True):
        np.testing.assert_allclose(vector, wanted[word], atol=1e-5)


def test_other_numbers_of_the_words_change_nothing():
    texts = block("가나다라", "나가다", "다다라나")
    one, other = SecondOrder(DIM, WINDOW), SecondOrder(DIM, WINDOW)
    fed(one, {"가": 0, "나": 1, "다": 2, "라": 3}, texts)
    fed(other, {"가": 40, "나": 30, "다": 20, "라": 10}, texts)
    np.testing.assert_allclose(
        one.begin(np.arange(4)), other.begin(np.array([10, 20, 30, 40]))[::-1], atol=1e-6
    )


def test_words_that_are_gone_are_forgotten_and_unread_ones_are_nought():
    held = SecondOrder(DIM, WINDOW)
    assert not held.begin(np.array([1, 2, 9])).any()
    ids = {"가": 1, "나": 2, "다": 9}
    fed(held, ids, block("가나다", "다나"))
    before = held.begin(np.array([1, 9, 5000]))
    assert before[:2].any(axis=1).all()
    assert not before[2].any()
    assert not held.begin(np.array([2])).any(), "what was forgotten stays so"
    fed(held, ids, block("가나다", "나다"))
    assert held.begin(np.array([2, 9])).any(axis=1).all()


@given(st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=30, unique=True))
def test_words_have_signs_of_their_own(words):
    drawn = np.stack([signs(word) for word in words])
    assert set(np.unique(drawn)) <= {-1.0, 1.0}
    cosines = drawn @ drawn.T / DIM
    assert np.abs(cosines - np.eye(len(words))).max() < 0.75


def test_signs_are_even_and_columns_independent():
    drawn = np.stack([signs(f"낱말{i}") for i in range(2000)])
    assert np.abs(drawn.mean(axis=0)).max() < 5 / np.sqrt(2000)
    other = drawn.T @ drawn / 2000 - np.eye(DIM)
    assert np.abs(other).max() < 5 / np.sqrt(2000)
