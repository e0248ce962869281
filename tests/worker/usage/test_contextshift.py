"""Which contexts pulled a word: shares that add up, told by node and added up by the server."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from embedding.exchange.codec import from_message, to_message
from embedding.exchange.payload import ContextShift
from embedding.exchange.protocol import Push
from embedding.server.parts import PushArrival
from embedding.server.words.shifts import ContextShifts, added_up
from embedding.worker.usage import contextshift
from embedding.worker.usage.contextshift import context_shift
from embedding.worker.usage.paircounts import PairCounts
from server.saving import saved

CONTEXTS_PER_WORD = 8
LEAST_PAIRS = 20

WORDS, DIM = 60, 12
IDS = np.arange(WORDS) * 3 + 5
ROOM = 40
"""A word whose contexts change: 1, 2, 3 give way to 4, 5."""


def pairs(seed: int, beside: dict[int, int]) -> np.ndarray:
    """Symmetric counts by chance, but for those of ROOM."""
    found = np.random.default_rng(seed).poisson(3.0, (WORDS, WORDS)).astype(np.float32)
    found += found.T
    found[ROOM] = found[:, ROOM] = 0.0
    for context, times in beside.items():
        found[ROOM, context] = found[context, ROOM] = times
    return found


def both(before: np.ndarray, after: np.ndarray) -> PairCounts:
    """As they are counted in a text of two parts."""
    words, contexts = np.nonzero(before + after)
    counts = np.stack([before[words, contexts], after[words, contexts]], axis=1)
    starts = np.searchsorted(words, np.arange(WORDS + 1))
    return PairCounts(starts, contexts.astype(np.int32), counts.astype(np.float32))


BEFORE = pairs(1, {1: 30, 2: 20, 3: 10, 9: 40})
AFTER = pairs(2, {4: 45, 5: 30, 9: 75})
SAYS = np.random.default_rng(3).normal(size=(WORDS, DIM)).astype(np.float32)


def of(shift: ContextShift, word: int) -> dict[int, np.ndarray]:
    """By context the figures of a word."""
    ends = np.concatenate([[0], np.cumsum(shift.sizes)])
    (at,) = np.flatnonzero(shift.ids == IDS[word])
    own = slice(ends[at], ends[at + 1])
    figures = shift.figures[own] / shift.weights[at]
    return dict(zip(((shift.contexts[own] - 5) // 3).tolist(), figures, strict=True))


def told() -> ContextShift:
    found = context_shift(86_400, both(BEFORE, AFTER), IDS, SAYS)
    assert found is not None
    return found


def test_the_contexts_that_came_and_went_pulled_the_word():
    found = of(told(), ROOM)
    assert set(found) == {1, 2, 3, 4, 5, 9}
    assert found[4][:2] == pytest.approx([0.0, 0.3])
    assert found[1][:2] == pytest.approx([0.3, 0.0])
    assert found[9][:2] == pytest.approx([0.4, 0.5])
    assert sum(each[2] for each in found.values()) == pytest.approx(1.0, abs=1e-4)


def test_shares_are_those_of_the_formula():
    change = {1: -0.3, 2: -0.2, 3: -0.1, 4: 0.3, 5: 0.2, 9: 0.1}
    shift = sum(share * SAYS[c].astype(float) for c, share in change.items())
    for context, figures in of(told(), ROOM).items():
        expected = change[context] * (SAYS[context] @ shift) / (shift @ shift)
        assert figures[2] == pytest.approx(expected, abs=1e-4)


@given(before=st.integers(10, 10**6), after=st.integers(10, 10**6), new=st.integers(0, 90))
@settings(max_examples=40, deadline=None)
def test_shares_of_all_contexts_add_up_to_the_shift(before, after, new):
    assume(before != after)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contextshift, "CONTEXTS_PER_WORD", WORDS)
        both_times = both(pairs(before, {1: 30, 2: 9}), pairs(after, {1: 12, 4: new}))
        shift = context_shift(0, both_times, IDS, SAYS)
    assert shift is not None
    assert len(shift.ids) >= WORDS - 1
    for at in shift.ids.tolist():
        shares = [each[2] for each in of(shift, int(np.flatnonzero(at == IDS)[0])).values()]
        assert sum(shares) == pytest.approx(1.0, abs=2e-3)


def test_of_many_contexts_the_largest_shares_are_told(monkeypatch):
    monkeypatch.setattr(contextshift, "CONTEXTS_PER_WORD", WORDS)
    whole = of(told(), 7)
    assert sum(each[2] for each in whole.values()) == pytest.approx(1.0, abs=1e-3)
    monkeypatch.undo()
    some = of(told(), 7)
    assert len(some) == CONTEXTS_PER_WORD
    least = min(abs(each[2]) for each in some.values())
    assert all(abs(each[2]) <= least + 1e-6 for c, each in whole.items() if c not in some)


def test_words_that_shifted_most_are_told_and_rare_ones_never(monkeypatch):
    monkeypatch.setattr(contextshift, "MAX_SHIFTED_WORDS", 1)
    assert told().ids.tolist() == [IDS[ROOM]]
    rare = pairs(4, {1: LEAST_PAIRS - 1})
    monkeypatch.undo()
    found = context_shift(0, both(BEFORE, rare), IDS, SAYS)
    assert found is not None
    assert IDS[ROOM] not in found.ids
    assert context_shift(0, both(np.zeros_like(AFTER), AFTER), IDS, SAYS) is None


def test_it_travels_with_a_push():
    push = Push("n", 1, 0, shifts=(told(), told()))
    back = from_message(Push, to_message(push)).shifts
    for mine, theirs in zip(push.shifts, back, strict=True):
        assert mine.window == theirs.window
        for name in ("ids", "weights", "sizes", "contexts", "figures"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))


def test_the_server_weighs_nodes_by_their_pairs():
    one = ContextShift(9, *_shift([5], [1.0], [[7]], [[0.5, 0.0, 0.8]]))
    other = ContextShift(
        9, *_shift([5, 6], [3.0, 2.0], [[7, 8], [7]], [[0.1, 0.1, 0.4], [0, 1, 1], [1, 0, 1]])
    )
    found = added_up([one, other])
    assert found is not None
    rows = {
        (int(w), int(c)): each
        for w, c, each in zip(found.words, found.contexts, found.figures, strict=True)
    }
    assert rows[5, 7] == pytest.approx([0.2, 0.075, 0.5])
    assert rows[5, 8] == pytest.approx([0.0, 0.75, 0.75])
    assert rows[6, 7] == pytest.approx([1.0, 0.0, 1.0])


def _shift(ids, weights, contexts, figures):
    sizes = np.array([len(each) for each in contexts])
    heavy = np.array(weights, np.float32)
    return (
        np.array(ids),
        heavy,
        sizes,
        np.concatenate([np.array(each) for each in contexts]),
        np.array(figures, np.float32) * np.repeat(heavy, sizes)[:, None],
    )


def test_a_window_that_was_cut_is_forgotten_and_a_restart_forgets_nothing():
    held = ContextShifts(wanted=True)
    early, late = (ContextShift(w, *_shift([5], [1.0], [[7]], [[0, 1, 1]])) for w in (1, 2))
    held.learnt(PushArrival.prepare(Push("n", 1, 0, shifts=(early, late)), 0), 0.0, {0})
    again = ContextShifts(wanted=True)
    again.load(saved(held))
    for one in (held, again):
        one.free(1)
        assert one.held({1}) is None
        assert one.held({2}) is not None
    held.learnt(PushArrival.prepare(Push("n", 2, 0, shifts=(early,)), 0), 0.0, {1})
    assert held.held({1}) is None, "it is cut already"
    unwanted = ContextShifts(wanted=False)
    unwanted.learnt(PushArrival.prepare(Push("n", 1, 0, shifts=(late,)), 0), 0.0, set())
    assert unwanted.held({2}) is None
