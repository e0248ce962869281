"""Counts by window."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.records import WordCounts
from embedding.server import counts as module
from embedding.server.counts import WindowCounts, as_word_counts

rows = st.lists(
    st.tuples(
        st.sampled_from(["말", "글", "집"]),
        st.sampled_from(["뉴스", "글판"]),
        st.sampled_from([0, 60, 120]),
        st.integers(1, 5),
    ),
    max_size=20,
)


def as_counts(rows) -> WordCounts:
    words, sources, windows, counts = zip(*rows, strict=True) if rows else ((), (), (), ())
    n = np.array(counts, dtype=np.int64)
    return WordCounts(words, sources, np.array(windows, dtype=np.int64), n, np.ones_like(n))


@settings(deadline=None)
@given(st.lists(rows, max_size=8), st.integers(0, 5))
def test_counts_add_up_by_window_source_and_word_however_they_are_merged(pushes, merge_rows):
    held = WindowCounts()
    expected: dict[tuple[int, str, str], int] = {}
    before, module._MERGE_ROWS = module._MERGE_ROWS, merge_rows
    try:
        for push in pushes:
            held.add(as_counts(push))
            for word, source, window, n in push:
                key = (window, source, word)
                expected[key] = expected.get(key, 0) + n
    finally:
        module._MERGE_ROWS = before
    found = {}
    for window in held.windows():
        table = as_word_counts(held.table(window), window)
        assert set(table.windows.tolist()) == {window}
        for word, source, n in zip(table.words, table.sources, table.counts.tolist(), strict=True):
            assert (window, source, word) not in found
            found[window, source, word] = n
    assert found == expected


def test_only_words_that_are_kept_are_in_the_record():
    held = WindowCounts()
    held.add(as_counts([("말", "뉴스", 0, 2), ("글", "뉴스", 0, 1)]))
    assert list(as_word_counts(held.table(0), 0, {"글"}).words) == ["글"]


def test_a_freed_window_is_forgotten():
    held = WindowCounts()
    held.add(as_counts([("말", "뉴스", 0, 2)]))
    held.note(0, "뉴스", 1, 2)
    held.note(60, "뉴스", 1, 2)
    held.free(0)
    assert held.windows() == [60]
    assert held.table(0).num_rows == 0
