"""Counts by word, source and window."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.records import TokenBlock, WindowUnit
from embedding.worker.counting import count_words, progress

JANUARY = datetime(2020, 1, 31, 23, tzinfo=UTC).timestamp()
FEBRUARY = datetime(2020, 2, 1, 1, tzinfo=UTC).timestamp()

Texts = list[list[list[str]]]
words = st.sampled_from(["코로나", "마스크", "학교", "a"])
documents = st.lists(st.lists(st.lists(words, max_size=5), max_size=3), min_size=1, max_size=6)


def block(texts: Texts, when: list[float], source: str = "news") -> TokenBlock:
    return TokenBlock.build(
        source, texts, published=when, keys=[f"u{i}" for i in range(len(texts))]
    )


@given(documents, st.data())
def test_counts_agree_with_counting_by_hand(
    texts: list[list[list[str]]], data: st.DataObject
) -> None:
    when = [data.draw(st.sampled_from([JANUARY, FEBRUARY])) for _ in texts]
    counted = count_words([block(texts, when)], WindowUnit.MONTH)
    tokens: Counter[tuple[str, int]] = Counter()
    holders: Counter[tuple[str, int]] = Counter()
    for text, moment in zip(texts, when, strict=True):
        month = 1577836800 if moment == JANUARY else 1580515200
        flat = [word for sentence in text for word in sentence]
        tokens.update((word, month) for word in flat)
        holders.update((word, month) for word in set(flat))
    rows = list(zip(counted.words, counted.windows.tolist(), strict=True))
    assert dict(zip(rows, counted.counts.tolist(), strict=True)) == dict(tokens)
    assert dict(zip(rows, counted.documents.tolist(), strict=True)) == dict(holders)
    assert set(counted.sources) <= {"news"}


def test_sources_stay_apart() -> None:
    blocks = [block([[["학교"]]], [JANUARY], "news"), block([[["학교"]]], [JANUARY], "board")]
    counted = count_words(blocks, WindowUnit.MONTH)
    assert sorted(counted.sources) == ["board", "news"]
    assert counted.counts.tolist() == [1, 1]


def test_progress_has_one_record_a_window_and_the_latest_time() -> None:
    records = progress(
        [block([[["a"]], [["b", "c"]]], [JANUARY, FEBRUARY])], WindowUnit.MONTH, FEBRUARY + 10
    )
    assert [(r.documents, r.tokens, r.published) for r in records] == [
        (1, 1, JANUARY),
        (1, 2, FEBRUARY),
    ]
    assert records[1].lags == pytest.approx((10.0,))


def test_a_document_without_a_word_still_counts_as_read() -> None:
    records = progress([block([[]], [JANUARY])], WindowUnit.DAY, JANUARY)
    assert records[0].documents == 1
    assert records[0].tokens == 0
    assert len(count_words([block([[]], [JANUARY])], WindowUnit.DAY).words) == 0
    assert np.asarray(records[0].lags).tolist() == [0.0]
