"""Counts by word, source and window."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.exchange.payload import BlockCounts
from embedding.kernel.records import Calendar, IntArray, TokenBlock, WindowUnit
from embedding.worker.corpus.authors import Authors
from embedding.worker.corpus.counting import count_words, source_progress

JANUARY = datetime(2020, 1, 31, 23, tzinfo=UTC).timestamp()
FEBRUARY = datetime(2020, 2, 1, 1, tzinfo=UTC).timestamp()

Texts = list[list[list[str]]]
words = st.sampled_from(["코로나", "마스크", "학교", "a"])
documents = st.lists(st.lists(st.lists(words, max_size=5), max_size=3), min_size=1, max_size=6)


def block(texts: Texts, when: list[float], source: str = "news") -> TokenBlock:
    return TokenBlock.build(
        source, texts, published=when, keys=[f"u{i}" for i in range(len(texts))]
    )


KNOWN = {"코로나": 7, "학교": 3}


def tables(blocks: list[TokenBlock]) -> list[IntArray]:
    """Row ids of each block's words; two words have one."""
    return [np.asarray([KNOWN.get(w, -1) for w in b.words], dtype=np.int64) for b in blocks]


def rows_of(counted: BlockCounts) -> dict[tuple[str, int, str], tuple[int, int]]:
    """(source, window, word) → (occurrences, documents); each occurs once."""
    unknown = iter(counted.words)
    words = {row: word for word, row in KNOWN.items()}
    found: dict[tuple[str, int, str], tuple[int, int]] = {}
    start = 0
    for group in counted.groups:
        for at in range(start, group.stop):
            row = int(counted.ids[at])
            key = (group.source, group.window, words[row] if row >= 0 else next(unknown))
            assert key not in found
            found[key] = (int(counted.counts[at]), int(counted.documents[at]))
        start = group.stop
    assert start == len(counted.ids)
    assert next(unknown, None) is None
    return found


@given(st.lists(documents, min_size=1, max_size=3), st.data())
def test_counts_agree_with_counting_by_hand(blocks: list[Texts], data: st.DataObject) -> None:
    tokens: Counter[tuple[str, int, str]] = Counter()
    holders: Counter[tuple[str, int, str]] = Counter()
    made = []
    for at, texts in enumerate(blocks):
        when = [data.draw(st.sampled_from([JANUARY, FEBRUARY])) for _ in texts]
        made.append(block(texts, when, f"source{at}"))
        for text, moment in zip(texts, when, strict=True):
            month = 1577836800 if moment == JANUARY else 1580515200
            flat = [word for sentence in text for word in sentence]
            tokens.update((f"source{at}", month, word) for word in flat)
            holders.update((f"source{at}", month, word) for word in set(flat))
    found = rows_of(count_words(made, tables(made), Calendar(WindowUnit.MONTH)))
    assert {key: n for key, (n, _) in found.items()} == dict(tokens)
    assert {key: n for key, (_, n) in found.items()} == dict(holders)


def test_words_with_a_row_travel_by_id_and_only_the_others_by_name() -> None:
    blocks = [block([[["학교", "a", "학교"]]], [JANUARY]), block([[["a"]]], [JANUARY], "board")]
    counted = count_words(blocks, tables(blocks), Calendar(WindowUnit.MONTH))
    assert counted.ids.tolist() == [-1, 3, -1], "in order of the ids within each group"
    assert list(counted.words) == ["a", "a"]
    assert counted.counts.tolist() == [1, 2, 1]
    assert [(group.source, group.stop) for group in counted.groups] == [("news", 2), ("board", 3)]


def said(voices: list[int], texts: list[list[str]], start: int = 0) -> TokenBlock:
    """A document for each voice, published in January."""
    found = TokenBlock.build(
        "board",
        [[text] for text in texts],
        published=[JANUARY] * len(texts),
        keys=[f"u{start + at}" for at in range(len(texts))],
    )
    return replace(found, voices=np.asarray(voices, dtype=np.int64))


def held_of(counted: BlockCounts) -> dict[str, tuple[int, ...]]:
    """Occurrences, documents, authors and voices by word."""
    columns = zip(*(column.tolist() for column in counted.columns), strict=True)
    return dict(zip(counted.words, columns, strict=True))


def test_an_author_is_one_voice_for_a_word_in_a_window_and_documents_are_documents() -> None:
    authors = Authors()

    def held(one: TokenBlock) -> dict[str, tuple[int, ...]]:
        nameless = [np.full(len(one.words), -1)]
        return held_of(count_words([one], nameless, Calendar(WindowUnit.MONTH), authors))

    first = said([1, 1, 2, 1], [["a", "a"], ["a"], ["a", "학교"], ["코로나"]])
    assert held(first) == {"a": (4, 3, 2, 2), "학교": (1, 1, 1, 1), "코로나": (1, 1, 1, 1)}
    second = said([1, 3, 1], [["a"], ["a"], ["학교"]], start=4)
    assert held(second) == {"a": (2, 2, 1, 1), "학교": (1, 1, 1, 1)}
    assert held(second) == {"a": (2, 2, 1, 1), "학교": (1, 1, 1, 1)}, "read again: as before"
    later = replace(said([1], [["a"]], start=9), published=np.array([FEBRUARY]))
    assert held(later) == {"a": (1, 1, 1, 1)}, "in another window"


@given(
    st.lists(
        st.tuples(st.integers(-4, 3), st.lists(st.sampled_from("abc"), min_size=1, max_size=4)),
        min_size=1,
        max_size=12,
    ),
    st.integers(1, 4),
)
def test_documents_and_authors_agree_with_counting_by_hand(
    texts: list[tuple[int, list[str]]], size: int
) -> None:
    """Of any documents in blocks of any size; below 0 the author is not known."""
    authors, sums = Authors(), Counter[tuple[str, int]]()
    # Unknown authors are told apart, as `text/config.py` does.
    named = [(who if who >= 0 else -1 - at, words) for at, (who, words) in enumerate(texts)]
    for first in range(0, len(named), size):
        part = named[first : first + size]
        one = said([who for who, _ in part], [words for _, words in part], first)
        nameless = [np.full(len(one.words), -1)]
        counted = held_of(count_words([one], nameless, Calendar(WindowUnit.MONTH), authors))
        for word, figures in counted.items():
            sums.update({(word, at): n for at, n in enumerate(figures)})
    for word in {word for _, words in texts for word in words}:
        holders = [who for who, words in named if word in words]
        assert [sums[word, at] for at in range(1, 4)] == [
            len(holders),
            len({who for who in holders if who >= 0}),
            len({*holders}),
        ]


def test_a_small_memory_of_authors_never_loses_a_new_one() -> None:
    authors = Authors(slots=8)
    texts = [["a", "학교", "코로나", "마스크"]] * 50
    for start in (0, 50):
        one = said(list(range(start, start + 50)), texts, start)
        nameless = [np.full(len(one.words), -1)]
        counted = count_words([one], nameless, Calendar(WindowUnit.MONTH), authors)
        assert held_of(counted)["a"] == (50, 50, 50, 50)


def test_blocks_without_voices_know_no_author() -> None:
    one = block([[["a"]], [["a"]]], [JANUARY, JANUARY])
    counted = count_words([one], [np.full(1, -1)], Calendar(WindowUnit.MONTH), Authors())
    assert held_of(counted)["a"] == (2, 2, 0, 2)


def test_nothing_read_is_nothing_counted() -> None:
    counted = count_words([], [], Calendar(WindowUnit.MONTH))
    assert (counted.groups, len(counted.ids), list(counted.words)) == ((), 0, [])


def test_progress_has_one_record_a_window_and_the_latest_time() -> None:
    records = source_progress(
        [block([[["a"]], [["b", "c"]]], [JANUARY, FEBRUARY])],
        Calendar(WindowUnit.MONTH),
        FEBRUARY + 10,
    )
    assert [(r.documents, r.tokens, r.published) for r in records] == [
        (1, 1, JANUARY),
        (1, 2, FEBRUARY),
    ]
    assert records[1].lags == pytest.approx((10.0,))


def test_a_document_without_a_word_still_counts_as_read() -> None:
    records = source_progress([block([[]], [JANUARY])], Calendar(WindowUnit.DAY), JANUARY)
    assert records[0].documents == 1
    assert records[0].tokens == 0
    empty = [block([[]], [JANUARY])]
    assert rows_of(count_words(empty, tables(empty), Calendar(WindowUnit.DAY))) == {}
    assert np.asarray(records[0].lags).tolist() == [0.0]
