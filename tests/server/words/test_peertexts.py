"""Which node of a shared corpus reads a window again: the last one that leaves it, and no other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.exchange.pasttexts import PastDocuments
from embedding.server.words.peertexts import PeerTexts, Readers

END = 1_000
NEVER = float("-inf")


def text(name: str, tokens: int = 2) -> list[PastDocuments]:
    """One document of a source that is named like its node."""
    one = np.zeros(1, dtype=np.int64)
    ends = np.array([0, tokens])
    whole = np.array([0, 1])
    return [PastDocuments(name, np.zeros(tokens, np.int32), ends, whole, one, one, one)]


def texts(name: str, *windows: int) -> dict[int, list[PastDocuments]]:
    return {window: text(name) for window in windows}


def readers(**present: float) -> Readers:
    return Readers(len(present), present, present)


TWO = readers(a=NEVER, b=NEVER)


def test_the_last_to_leave_reads_what_all_remember():
    peers = PeerTexts()
    assert peers.leave("a", 1, 2, texts("a", 0, 1), TWO, 7) == []
    assert peers.leave("b", 1, 2, texts("b", 1), TWO, 7, closed={0}) == [1]
    found = peers.texts(1, 1_000)
    assert {start: [part.source for part in parts] for start, parts in found.items()} == {
        0: ["a"],
        1: ["a", "b"],
    }


def test_a_window_that_the_last_one_skipped_is_read_by_it():
    """October 2018 of the petitions: all of its documents are in the share of one node."""
    peers = PeerTexts()
    assert peers.leave("a", 0, 1, texts("a", 0), TWO, 7) == []
    assert peers.leave("a", 1, 2, texts("a", 0, 1), TWO, 7) == []
    assert peers.leave("b", 0, 2, texts("b", 0), TWO, 7) == [0, 1]
    assert sorted(peers.texts(0, 1_000)) == [0]


def test_nobody_waits_for_a_node_that_is_away_or_has_read_on():
    peers = PeerTexts()
    gone = Readers(2, ("a", "b"), {"a": 0.0})
    assert peers.leave("a", 1, 2, texts("a", 1), gone, 7) == [1]
    # A server that was restarted knows by the counts how far a node has come.
    assert PeerTexts().leave("a", 1, 2, texts("a", 1), readers(a=1.0, b=2.0), 7) == [1]
    assert PeerTexts().leave("a", 1, 2, texts("a", 1), readers(a=1.0, b=1.0), 7) == []


def test_a_node_that_never_came_is_waited_for():
    peers = PeerTexts()
    alone = Readers(2, ("a",), {"a": 0.0})
    assert peers.leave("a", 1, END, texts("a", 1), alone, 7) == []
    assert peers.leave("b", 1, END, texts("b", 1), TWO, 7) == [1]


def test_no_window_is_read_twice():
    peers = PeerTexts()
    peers.leave("a", 1, 2, texts("a", 1), TWO, 7)
    assert peers.leave("b", 1, 2, texts("b", 1), TWO, 7) == [1]
    assert peers.leave("a", 1, 2, texts("a", 1), TWO, 7) == []  # its process was started again
    assert peers.leave("b", 1, 2, texts("b", 1), TWO, 7) == [1]  # what it read came to nothing
    assert peers.leave("b", 1, 2, texts("b", 1), TWO, 7, closed={1}) == []


def test_old_windows_are_forgotten_and_memory_is_bounded():
    peers = PeerTexts(most_tokens=9)
    peers.leave("a", 1, 2, texts("a", 0, 1), TWO, 7)
    peers.leave("b", 1, 2, texts("b", 1), TWO, 7)
    assert peers.tokens == 6
    peers.leave("a", 2, 3, texts("a", 1, 2), TWO, 7)
    peers.leave("b", 2, 3, texts("b", 0, 1, 2), TWO, 7)
    assert peers.tokens == 8
    assert sorted(peers.texts(2, 1_000)) == [1, 2]


def test_a_node_that_is_ahead_is_heard_on_what_it_has_forgotten():
    peers = PeerTexts()
    peers.leave("a", 1, 2, texts("a", 0, 1), TWO, 2)
    peers.leave("a", 2, 3, texts("a", 1, 2), TWO, 2)
    assert peers.leave("b", 1, 2, texts("b", 0, 1), TWO, 2, closed={0}) == [1]
    assert {start: len(parts) for start, parts in peers.texts(1, 100).items()} == {0: 2, 1: 2}
    peers.leave("b", 2, 3, texts("b", 1, 2), TWO, 2)
    assert sorted(peers.texts(2, 100)) == [1, 2]


def test_a_process_that_was_started_again_does_not_forget_for_its_node():
    peers = PeerTexts()
    peers.leave("a", 0, 1, {0: text("a", 5)}, TWO, 7)
    peers.leave("a", 0, 1, {0: text("a", 3)}, TWO, 7)
    assert peers.tokens == 5


def test_the_latest_windows_are_given_until_they_are_enough():
    peers = PeerTexts()
    peers.leave("a", 3, 4, texts("a", 0, 1, 2, 3), readers(a=NEVER), 7)
    assert sorted(peers.texts(3, 3)) == [2, 3]
    assert sorted(peers.texts(2, 1)) == [2]


@given(
    st.lists(st.sets(st.integers(0, 5), min_size=1), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
@pytest.mark.timeout(120)
def test_each_window_is_read_once_whatever_the_order(windows, random):
    """Nodes have text of some windows, and leave them in any order."""
    names = [f"n{at}" for at in range(len(windows))]
    everybody = Readers(len(names), names, dict.fromkeys(names, NEVER))
    left = {name: sorted(own) for name, own in zip(names, windows, strict=True)}
    peers, read, reached = PeerTexts(), [], dict.fromkeys(names, NEVER)
    while any(left.values()):
        name = random.choice([name for name, own in left.items() if own])
        window, *left[name] = left[name]
        until = left[name][0] if left[name] else END
        reached[name] = until
        held = sorted(own for own in windows[names.index(name)] if own <= window)
        due = peers.leave(name, window, until, texts(name, *held), everybody, 7)
        assert all(start < min(reached.values()) for start in due)
        read += due
    assert sorted(read) == sorted({start for own in windows for start in own})
