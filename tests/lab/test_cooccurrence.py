"""The streaming co-occurrence table and the count baseline."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from countsreference import sppmi
from embedding.kernel.errors import ConfigError, InputError
from embedding.models.base import LocalBlock
from embedding.models.config import ModelConfig
from generated import examples
from yeoron_lab.counts.cooccurrence import CooccurrenceTable
from yeoron_lab.counts.sppmi import CountModel, factorise, sppmi_matrix


def counted(table: CooccurrenceTable, size: int) -> np.ndarray:
    dense = np.zeros((size, size))
    rows, columns, counts = table.cells()
    dense[rows, columns] = counts
    return dense


@given(st.lists(st.lists(st.integers(0, 7), max_size=9), max_size=8), st.integers(1, 4))
@settings(max_examples=examples(60))
def test_counts_are_those_of_a_plain_loop(sentences: list[list[int]], window: int) -> None:
    table = CooccurrenceTable(2048)
    wanted = np.zeros((8, 8))
    for half in (sentences[::2], sentences[1::2]):
        words = np.array([word for one in half for word in one], np.int32)
        ends = np.cumsum([0, *(len(one) for one in half)]).astype(np.int32)
        touched = table.add(words, ends, np.arange(8), window)
        seen = set()
        for one in half:
            for i in range(len(one)):
                for j in range(max(0, i - window), i):
                    wanted[one[i], one[j]] += 1 / (i - j)
                    wanted[one[j], one[i]] += 1 / (i - j)
                    seen |= {(one[i], one[j]), (one[j], one[i])}
        assert {tuple(cell) for cell in touched.tolist()} == seen
        assert len(touched) == len(seen)
    assert np.allclose(counted(table, 8), wanted, rtol=1e-5)
    assert len(table) == int((wanted > 0).sum())


@pytest.mark.laboratory
def test_a_full_table_keeps_what_is_frequent_in_bounded_memory() -> None:
    table = CooccurrenceTable(1 << 17)
    random = np.random.default_rng(1)
    for _ in range(6):
        words = random.integers(100, 60_000, 40_000).astype(np.int32)
        words[::8], words[1::8] = 7, 8
        ends = np.arange(0, 40_001, 8, dtype=np.int32)
        table.add(words, ends, np.arange(60_000), 4)
        assert table.nbytes <= 16 << 17
        assert len(table) <= 0.75 * (1 << 17)
    rows, columns, counts = table.cells()
    pair = counts[(rows == 7) & (columns == 8)]
    assert pair == pytest.approx([30_000], rel=1e-3)
    assert np.all(np.diff(rows * 60_000 + columns) > 0)


def test_decay_and_bad_sizes() -> None:
    table = CooccurrenceTable(1024)
    words, ends = np.array([0, 1], np.int32), np.array([0, 2], np.int32)
    table.add(words, ends, np.array([5, 2**31 - 1]), 1)
    table.decay(0.5)
    assert table.cells()[1].tolist() == [2**31 - 1, 5]
    assert table.cells()[2].tolist() == [0.5, 0.5]
    with pytest.raises(InputError, match="row ids"):
        table.add(words, ends, np.array([0, 2**31]), 1)
    with pytest.raises(ConfigError, match="decay by 2"):
        table.decay(2)
    with pytest.raises(ConfigError, match="at least 1024"):
        CooccurrenceTable(10)


@pytest.mark.parametrize("shift", [1.0, 5.0])
def test_sppmi_agrees_with_torch(shift: float) -> None:
    random = np.random.default_rng(2)
    dense = random.poisson(1.0, (30, 30)).astype(np.float32)
    rows, columns = np.nonzero(dense)
    matrix = sppmi_matrix(rows, columns, dense[rows, columns], 30, shift=shift, exponent=0.75)
    wanted = sppmi(torch.tensor(dense, dtype=torch.float64), shift=shift).numpy()
    assert np.abs(matrix.toarray() - wanted).max() < 1e-5


@pytest.mark.parametrize(("size", "dim"), [(40, 6), (40, 60), (2, 3), (1, 1)])
def test_factors_are_the_best_of_their_rank(size: int, dim: int) -> None:
    dense = np.maximum(np.random.default_rng(3).standard_normal((size, size)), 0)
    rows, columns = np.nonzero(dense + 1)
    counts = np.float32(dense[rows, columns]) + np.float32(0.1)
    matrix = sppmi_matrix(rows, columns, counts, size)
    vectors, contexts = factorise(matrix, dim, seed=1)
    assert vectors.shape == (size, dim)
    left, scale, right = torch.linalg.svd(torch.tensor(matrix.toarray()))
    rank = min(dim, size)
    best = (left[:, :rank] * scale[:rank] @ right[:rank]).numpy()
    assert np.abs(vectors @ contexts.T - best).max() < 1e-5
    again = factorise(matrix, dim, seed=1)
    assert again[0].tobytes() == vectors.tobytes()


def test_sppmi_of_nothing_is_refused() -> None:
    none = np.zeros(0, np.int64)
    with pytest.raises(InputError, match="no co-occurrence"):
        sppmi_matrix(none, none, np.zeros(0, np.float32), 3)
    model = CountModel(ModelConfig(model="sppmi", dim=2).model_copy(update={"shift": 1e6}))
    words = np.arange(12, dtype=np.int32) % 6
    ends = np.array([0, 12], np.int32)
    nothing = np.empty(0, np.int32)
    assert model.count(LocalBlock(words, ends, np.empty(0, np.float32), nothing), seed=1) == 12
    with pytest.raises(InputError, match="more often than by chance"):
        model.fit(6)
