"""What a node adds up about the use of words: the formula, and who it is booked for."""

from __future__ import annotations

import numpy as np
import pytest

from embedding.models.base import LocalBlock
from embedding.models.config import Model, ModelConfig
from embedding.records import TokenBlock, WindowUnit
from embedding.worker.counting import count_words
from embedding.worker.planning import Part, plan
from embedding.worker.usage import UsageReader

WINDOW, DIM, DAY = 2, 6, 86_400.0
WORDS = {name: at for at, name in enumerate("가나다라마")}


class Places:
    ids = np.arange(len(WORDS), dtype=np.int64)

    def places(self, ids: np.ndarray) -> np.ndarray:
        return ids


def block(source: str, documents: list[str], days: list[int]) -> TokenBlock:
    """Documents of sentences divided by `/`, of one-letter words."""
    texts = [[list(sentence) for sentence in text.split("/")] for text in documents]
    times = [day * DAY for day in days]
    return TokenBlock.build(source, texts, published=times, keys=[str(i) for i in range(len(days))])


def read(blocks: list[TokenBlock], seed: int = 0, keep: float = 1.0):
    tables = [np.array([WORDS.get(w, -1) for w in b.words], dtype=np.int64) for b in blocks]
    parts = [Part(t, b.codes, b.sentences) for t, b in zip(tables, blocks, strict=True)]
    counts = count_words(blocks, tables, WindowUnit.DAY)
    none = np.empty(0, dtype=np.int64)
    planned = plan(parts, none, Places(), lambda ids: np.full(len(ids), keep, np.float32))
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(len(WORDS), DIM)).astype(np.float32) for _ in range(2)]
    own = [table[planned.words] for table in rows]
    usage = UsageReader(WINDOW, WindowUnit.DAY).read(blocks, counts, planned.block, *own)
    return usage, counts, rows


def by_hand(sentences: list[str], word: str, rows, keep: float) -> tuple[np.ndarray, float]:
    """g and N of a word over sentences, from the formula with τ = 1/2."""
    vectors, contexts = (table.astype(np.float64) for table in rows)
    slope, pairs = np.zeros(3 * DIM), 0.0
    for sentence in sentences:
        for i, centre in enumerate(sentence):
            if centre != word:
                continue
            for j in range(max(0, i - WINDOW), min(len(sentence), i + WINDOW + 1)):
                if j == i or sentence[j] not in WORDS:
                    continue
                weight = keep * (WINDOW + 1 - abs(i - j)) / WINDOW
                u, v = contexts[WORDS[sentence[j]]], vectors[WORDS[sentence[j]]]
                expected = 1 + np.exp(u @ vectors[WORDS[word]] / 2)
                slope += weight / expected * np.concatenate([u, v, np.zeros(DIM)])
                pairs += weight
    return slope, pairs


@pytest.mark.parametrize("keep", [1.0, 0.25])
def test_sums_are_those_of_the_formula_for_each_source_and_window(keep):
    blocks = [
        block("뉴스", ["가나다/나가", "다가라가", "가마"], [1, 1, 2]),
        block("글판", ["라가나"], [1]),
    ]
    usage, counts, rows = read(blocks, keep=keep)
    texts = [["가나다", "나가", "다가라가"], ["가마"], ["라가나"]]
    names = [(g.source, g.window) for g in counts.groups]
    assert names == [("뉴스", 86_400), ("뉴스", 172_800), ("글판", 86_400)]
    start, seen = 0, 0
    for group, sentences in zip(counts.groups, texts, strict=True):
        for row in range(start, group.stop):
            word = "가나다라마"[counts.ids[row]]
            slope, pairs = by_hand(sentences, word, rows, keep)
            (at,) = np.flatnonzero(usage.at == row)
            np.testing.assert_allclose(usage.slopes[at], slope, rtol=2e-3, atol=2e-3)
            assert usage.pairs[at] == pytest.approx(pairs, rel=1e-5)
            seen += 1
        start = group.stop
    assert seen == len(usage.at) == len(counts.ids)


def test_words_without_a_row_and_words_that_stand_alone_have_no_sums():
    usage, counts, _ = read([block("뉴스", ["가힣나", "다", "힣힣"], [1, 1, 1])])
    named = ["가나다라마"[i] if i >= 0 else None for i in counts.ids[usage.at].tolist()]
    assert sorted(named) == ["가", "나"]
    assert read([block("뉴스", ["힣"], [1])])[0] is None


def test_replayed_text_behind_the_fresh_text_is_not_read():
    fresh = [block("뉴스", ["가나"], [1])]
    usage, counts, rows = read(fresh)
    tokens = np.array([0, 1, 1, 0, 1, 0], dtype=np.int32)
    planned = LocalBlock(
        tokens=tokens,
        sentences=np.array([0, 2, 6], dtype=np.int32),
        keep=np.ones(2, dtype=np.float32),
        pool=np.empty(0, dtype=np.int32),
        ids=np.array([0, 1]),
    )
    again = UsageReader(WINDOW, WindowUnit.DAY).read(
        fresh, counts, planned, rows[0][:2], rows[1][:2]
    )
    assert np.array_equal(again.slopes, usage.slopes)
    assert np.array_equal(again.pairs, usage.pairs)


def test_only_skip_gram_and_only_when_the_server_asks():
    sgns, cbow = ModelConfig(), ModelConfig(model=Model.CBOW)
    assert UsageReader.of(sgns, WindowUnit.DAY, True) is not None
    assert UsageReader.of(sgns, WindowUnit.DAY, False) is None
    assert UsageReader.of(cbow, WindowUnit.DAY, True) is None
