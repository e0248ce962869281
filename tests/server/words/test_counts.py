"""Counts by id, and by window, source and word."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from named import joined, named

from embedding.exchange.payload import BlockCounts, CountGroup
from embedding.server.words import counts as module
from embedding.server.words.counts import Decay, IdCounts, WindowCounts, as_word_counts

VOCABULARY = ["말", "글", "집", "길"]
WINDOWS = [0, 60, 120]


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.fixture(autouse=True, params=[0, 3, 200_000])
def merge_rows(request, monkeypatch) -> int:
    """How many rows are kept before they are summed up: results must not depend on it."""
    monkeypatch.setattr(module, "_MERGE_ROWS", request.param)
    return request.param


pairs = st.lists(st.tuples(st.integers(0, 9), *[st.integers(0, 5)] * 4), max_size=12)


@given(st.lists(pairs, max_size=8), st.integers(0, 8))
def test_counts_by_id_are_the_sums_however_often_they_are_asked_for(parts, ask):
    held = IdCounts()
    expected: dict[int, list[int]] = {}
    for at, part in enumerate(parts):
        part = list({each[0]: each for each in part}.values())
        columns = np.array(part, dtype=np.int64).reshape(-1, 5).T
        held.add(tuple(columns))
        columns[:] = -7  # the caller's message may be reused
        for id_, *counted in part:
            before = expected.get(id_, [0] * 4)
            expected[id_] = [a + b for a, b in zip(before, counted, strict=True)]
        if at == ask:
            held.sums()
    ids, *columns = held.sums()
    found = dict(zip(ids.tolist(), np.stack(columns, axis=1).tolist(), strict=True))
    assert found == expected
    assert len(parts) < 2 or (np.diff(ids) > 0).all()


class Names:
    """A vocabulary that gives a word a new id each time it comes back."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.words: dict[int, str] = {}
        self.next = 0

    def admit(self, word: str) -> None:
        if word not in self.ids:
            self.ids[word], self.words[self.next] = self.next, word
            self.next += 1

    def evict(self, word: str) -> None:
        self.words.pop(self.ids.pop(word, -1), None)

    def names(self, ids: np.ndarray) -> list[str]:
        return [self.words[id_] for id_ in ids.tolist()]


def pushed(names: Names, words: dict[str, int], source: str, window: int) -> BlockCounts:
    """What a node sends: a word with a row by its id, the others by name."""
    ids = ints(*(names.ids.get(word, -1) for word in words))
    counts = ints(*words.values())
    unknown = [word for word in words if word not in names.ids]
    return BlockCounts(
        (CountGroup(source, window, len(words)),), ids, unknown, counts, np.minimum(counts, 2)
    )


word = st.sampled_from(VOCABULARY)
push = st.tuples(
    st.just("push"),
    st.dictionaries(word, st.integers(1, 5)),
    st.sampled_from(["뉴스", "글판"]),
    st.sampled_from(WINDOWS),
)
happenings = st.lists(
    push
    | st.tuples(st.sampled_from(["admit", "evict"]), word)
    | st.tuples(st.just("look"), st.sampled_from(WINDOWS)),
    max_size=30,
)


@given(happenings)
def test_sums_are_those_of_counting_by_hand_whatever_words_come_and_go(happenings):
    names = Names()
    held = WindowCounts(names.names)
    tokens: Counter[tuple[int, str, str]] = Counter()
    holders: Counter[tuple[int, str, str]] = Counter()
    for kind, *what in happenings:
        if kind == "push":
            words, source, window = what
            held.add(pushed(names, words, source, window))
            for each, n in words.items():
                tokens[window, source, each] += n
                holders[window, source, each] += min(n, 2)
        elif kind == "admit":
            names.admit(*what)
        elif kind == "evict":
            held.resolve()
            names.evict(*what)
        else:
            held.table(*what)
    assert set(held.windows()) >= {window for window, _, _ in tokens}
    found, documents = {}, {}
    for window in held.windows():
        table = as_word_counts({window: held.table(window)})
        assert set(table.windows.tolist()) <= {window}
        keys = [(window, s, w) for s, w in zip(table.sources, table.words, strict=True)]
        assert len(set(keys)) == len(keys)
        found |= dict(zip(keys, table.counts.tolist(), strict=True))
        documents |= dict(zip(keys, table.documents.tolist(), strict=True))
    assert found == dict(tokens)
    assert documents == dict(holders)


@given(st.lists(push, max_size=6), st.sets(st.sampled_from(WINDOWS)))
def test_closed_windows_are_left_out_and_the_others_are_not(pushes, closed):
    names = Names()
    names.admit("말")
    held, open_ = WindowCounts(names.names), WindowCounts(names.names)
    for _, words, source, window in pushes:
        counts = pushed(names, words, source, window)
        held.add(counts, closed)
        if window not in closed:
            open_.add(counts)
    assert not closed & set(held.windows())
    for window in WINDOWS:
        order = [("source", "ascending"), ("word", "ascending")]
        assert held.table(window).sort_by(order).equals(open_.table(window).sort_by(order))


def test_a_push_of_several_groups_is_told_apart_by_its_groups():
    names = Names()
    names.admit("말")
    held = WindowCounts(names.names)
    known = pushed(names, {"글": 1, "말": 2, "집": 3}, "뉴스", 0)
    held.add(joined(known, named([], window=60), named(["글"], 4, source="글판")), {120})
    table = as_word_counts({0: held.table(0)})
    found = set(zip(table.sources, table.words, table.counts.tolist(), strict=True))
    assert found == {("뉴스", "글", 1), ("뉴스", "말", 2), ("뉴스", "집", 3), ("글판", "글", 4)}
    assert held.windows() == [0], "an empty group opens no window"


def test_a_freed_window_is_forgotten():
    names = Names()
    names.admit("말")
    held = WindowCounts(names.names)
    held.add(pushed(names, {"말": 2, "글": 1}, "뉴스", 0))
    held.note(0, "뉴스", 1, 2)
    held.note(60, "뉴스", 1, 2)
    held.free(0)
    assert held.windows() == [60]
    assert held.table(0).num_rows == 0


def test_a_checkpoint_of_a_window_goes_on_being_counted():
    held, again = WindowCounts(Names().names), WindowCounts(Names().names)
    held.add(named(["말"], 2))
    again.replace(0, held.table(0))
    again.add(named(["말", "글"]))
    table = as_word_counts({0: again.table(0)})
    assert dict(zip(table.words, table.counts.tolist(), strict=True)) == {"말": 3, "글": 1}


def test_an_occurrence_weighs_half_after_a_half_life():
    decay = Decay(100.0)
    stored = 8 * decay.weight
    for _ in range(4):
        assert decay.advance(25) is None
    assert stored / decay.weight == pytest.approx(4.0)
    divisor = decay.advance(100 * 60)
    assert divisor is not None
    assert stored / divisor / decay.weight == pytest.approx(8 * 2.0**-61)
    never = Decay(None)
    assert never.advance(10**12) is None
    assert never.weight == 1.0
