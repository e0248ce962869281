"""Nodes read their documents by what all of them counted: together they say what one node says that
reads all of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.exchange.codec import check, from_message, to_message
from embedding.exchange.payload import HandIn, WindowUse
from embedding.exchange.protocol import PROTOCOL_VERSION
from embedding.exchange.textcounts import ShareCounts, added_up
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Calendar, TokenBlock, WindowUnit
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rowstore import RowShape
from embedding.server.state import ServerState
from embedding.server.words.shared import SharedCounts
from embedding.worker.usage.paircounts import PairCounts, pair_counts
from embedding.worker.usage.past import PastTexts
from embedding.worker.usage.sharing import Peers
from embedding.worker.usage.usage import UsageReader

READY = "ready"
SEND = "send"
SHARE_COUNTS = "share_counts"
WAIT = "wait"

DIM, DAY, WORDS, DAYS = 8, 86_400, 40, 3
LAST, MOST = (DAYS - 1) * DAY, 10**9
LEXICON: Any = SimpleNamespace(
    ids=np.arange(WORDS),
    counts=np.full(WORDS, 100.0),
    places=lambda ids: ids,
    rows=lambda waiting: np.full(len(waiting), -1),
    names=lambda ids: [f"말{at}" for at in ids.tolist()],
)


def sent(counts):
    """As a server gets them of a node."""
    message = from_message(ShareCounts, to_message(ShareCounts(DAY, 0, counts)))
    check(message, SHARE_COUNTS)
    assert message.counts is not None
    return message.counts


def rows(ids: np.ndarray) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(WORDS, DIM)).astype(np.float32)[ids]


class Line:
    """A node's stream to a server without its network."""

    def __init__(self, state: ServerState, node: str) -> None:
        state.hello(node, version=PROTOCOL_VERSION, digest="", clock=0)
        self._state, self._node = state, node
        self.sent = 0

    def request(self, message: Message) -> Message:
        self.sent += bool(message.arrays)
        stream = SimpleNamespace(state=self._state, node=self._node)
        return self._state.parts["shared counts"].calls(stream)["share_counts"](message)


def reading(
    nodes: int, *, corpus: bool = False
) -> tuple[list[UsageReader], list[Line], ServerState]:
    """Nodes that have read their documents of some days: half of the words are one node's habit."""
    config = ServerConfig(in_step=corpus)
    state = ServerState(config, SyncConfig(policy="asp"), RowShape(DIM))
    lines = [Line(state, f"n{node}") for node in range(nodes)]
    readers = []
    for line in lines:
        peers = Peers(line, MOST, nodes=nodes if corpus else 0, look_s=0.0)
        readers.append(UsageReader(2, DIM, PastTexts(Calendar(WindowUnit.DAY), 100_000, 6), peers))
    random = np.random.default_rng(2)
    for at in range(60 * DAYS):
        node, day = at % nodes, at // 60
        habit = np.arange(WORDS) if at % 4 < 2 else np.arange(WORDS // 2)
        text = [[f"말{word}" for word in random.choice(habit, 12)]]
        block = TokenBlock.build("s", [text], published=[float(day * DAY)], keys=[f"http://a/{at}"])
        table = np.array([int(word[1:]) for word in block.words])
        readers[node].keep([block], [table])
        state.accounts.readers.greet(f"n{node}", f"life{node}")
        state.accounts.readers.read(day * DAY, f"n{node}", f"life{node}", "s", 1)
        reaches(state, node, day * DAY)
    return readers, lines, state


def reaches(state: ServerState, node: int, at: float) -> None:
    """A node pushes text of this time."""
    state.accounts.tracker.progress("s", float(at), now=0.0, node=f"n{node}")


def sums(uses: list[WindowUse]) -> dict[tuple[str, int, int], np.ndarray]:
    """Sums and documents of each word, by source and part, of all nodes together."""
    found: dict[tuple[str, int, int], np.ndarray] = defaultdict(lambda: np.zeros(DIM + 1))
    for use in uses:
        for part in use.sums:
            columns = np.column_stack([part.sums.astype(float), part.documents])
            for row, each in zip(part.ids.tolist(), columns, strict=True):
                found[part.source, part.part, row] += each
    return found


def said(readers: list[UsageReader], window: int) -> list[WindowUse]:
    return [reader.close(window, LEXICON, rows) for reader in readers]


@pytest.mark.parametrize("corpus", [False, True])
@pytest.mark.parametrize("nodes", [2, 4])
def test_nodes_say_together_what_one_says_alone(nodes: int, corpus: bool) -> None:
    (alone,), (line,), _ = reading(1)
    assert alone.ready(LAST, LEXICON)
    assert line.sent == 0, "one node sends no counts"
    readers, _, _ = reading(nodes, corpus=corpus)
    assert [reader.ready(LAST, LEXICON) for reader in readers] == [False] * (nodes - 1) + [True]
    assert all(reader.ready(LAST, LEXICON) for reader in readers)
    one, together = sums(said([alone], LAST)), sums(said(readers, LAST))
    assert one.keys() == together.keys()
    for key, each in one.items():
        np.testing.assert_allclose(together[key], each, atol=0.02)


def test_without_the_others_a_node_says_something_else() -> None:
    (alone,), _, _ = reading(1)
    alone.ready(LAST, LEXICON)
    readers, _, _ = reading(2)
    one, apart = sums(said([alone], LAST)), sums(said(readers, LAST))
    assert max(np.abs(apart[key] - each).max() for key, each in one.items()) > 0.2


def test_nobody_waits_for_a_dead_node() -> None:
    for corpus in (False, True):
        readers, _, state = reading(2, corpus=corpus)
        assert not readers[0].ready(LAST, LEXICON)
        state.leave("n1", state.ledger.of("n1").session)
        assert readers[0].ready(LAST, LEXICON)


def test_a_node_that_hands_in_its_use_without_counts_is_waited_for_no_longer() -> None:
    """One of the protocol before does not know of counts."""
    readers, _, state = reading(2)
    assert not readers[0].ready(LAST, LEXICON)
    state.accounts.readers.hand_in("n1", "life1", HandIn(LAST, 1, ()))
    assert readers[0].ready(LAST, LEXICON)


def test_nodes_of_a_corpus_wait_for_those_that_are_behind() -> None:
    readers, _, state = reading(2, corpus=True)
    assert not readers[0].ready(LAST, LEXICON), "the other has handed nothing in"
    reaches(state, 1, LAST + DAY)
    assert readers[0].ready(LAST, LEXICON), "it has read on"


def test_a_node_of_a_corpus_that_never_came_is_waited_for() -> None:
    (reader,), (line,), state = reading(1, corpus=True)
    reader.peers = Peers(line, MOST, nodes=2, look_s=0.0)
    assert not reader.ready(LAST, LEXICON)
    Line(state, "n1")
    assert not reader.ready(LAST, LEXICON)
    reaches(state, 1, LAST + DAY)
    assert reader.ready(LAST, LEXICON)


def test_a_node_of_a_corpus_that_was_killed_is_waited_for_until_it_has_read_on() -> None:
    readers, _, state = reading(2, corpus=True)
    state.lost("n1", state.ledger.of("n1").session)
    assert not readers[0].ready(LAST, LEXICON)
    Line(state, "n1")
    state.accounts.greet("n1", "another life")
    assert not readers[0].ready(LAST, LEXICON)
    assert readers[1].ready(LAST, LEXICON), "what it remembers, read again"
    assert readers[0].ready(LAST, LEXICON)


def test_what_a_node_counted_stays_when_it_is_killed() -> None:
    readers, _, state = reading(2, corpus=True)
    assert not readers[1].ready(LAST, LEXICON)
    state.lost("n1", state.ledger.of("n1").session)
    Line(state, "n1")
    assert readers[0].ready(LAST, LEXICON)
    assert readers[1].ready(LAST, LEXICON)
    shared = [reader.peers.sum(LAST) for reader in readers if reader.peers is not None]
    assert [None if each is None else each.seen.sum() for each in shared] == [60.0 * 12 * DAYS] * 2


def test_a_server_that_was_restarted_asks_for_counts_again() -> None:
    readers, lines, state = reading(2, corpus=True)
    assert not readers[0].ready(LAST, LEXICON)
    state.parts["shared counts"] = SharedCounts()
    state.accounts.tracker.expect(["n1"], until=1e12)
    assert not readers[0].ready(LAST, LEXICON)
    assert readers[1].ready(LAST, LEXICON)
    assert readers[0].ready(LAST, LEXICON)
    assert [line.sent for line in lines] == [2, 1]


@pytest.mark.parametrize("corpus", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_a_server_that_was_restarted_waits_for_the_sum_by_which_a_node_has_read(
    corpus: bool, alone: bool
) -> None:
    """A checkpoint says who handed in, and a node that has yet to come back holds the sum."""
    readers, lines, state = reading(2, corpus=corpus)
    first, second = (reader.peers for reader in readers)
    assert first is not None
    assert second is not None
    if alone:
        state.parts["shared counts"].answer(LAST, "n0", None, ["n0"], ["n0"])
        first.ready(LAST, lambda: None)
    else:
        assert not readers[1].ready(LAST, LEXICON)
        assert readers[0].ready(LAST, LEXICON)
    state.accounts.readers.hand_in("n0", "life0", HandIn(LAST, 1, ()))
    reaches(state, 0, LAST + DAY)
    state.parts["shared counts"] = SharedCounts()
    state.accounts.readers._greeted = {"n1"}
    state.accounts.tracker.expect(["n0"], until=1e12)
    assert not readers[1].ready(LAST, LEXICON)
    assert not readers[1].ready(LAST, LEXICON)
    welcome = cast("Any", SimpleNamespace(epoch=2))
    for message in first.greeted(welcome):
        lines[0].request(message)
    assert not list(first.greeted(welcome)), "this server knows it"
    assert readers[1].ready(LAST, LEXICON)
    mine, its = first.sum(LAST), second.sum(LAST)
    if mine is None or its is None:
        assert mine is its is None
        assert alone
    else:
        for name, each in vars(mine).items():
            np.testing.assert_array_equal(each, vars(its)[name])


def test_a_node_of_a_corpus_rests_until_the_others_are_there_or_it_is_told_to_stop() -> None:
    readers, _, _ = reading(2, corpus=True)
    peers, rests = readers[0].peers, list[int]()
    assert peers is not None

    def rest() -> bool:
        rests.append(1)
        if len(rests) == 3:
            readers[1].ready(LAST, LEXICON)
        return False

    peers.rest = rest
    readers[0].wait(LAST, LEXICON)
    assert len(rests) == 3
    assert peers.sum(LAST) is not None
    peers.rest = lambda: True
    readers[0].wait(0, LEXICON)


def test_the_sum_of_a_window_stays_when_more_is_read_of_it() -> None:
    shared = SharedCounts()
    one, other, both = counts([[0, 1]]), counts([[1, 2]]), ["a", "b"]
    assert shared.answer(DAY, "a", None, both, both) == (SEND, ())
    assert shared.answer(DAY, "a", one, both, both) == (WAIT, ())
    assert shared.answer(DAY, "b", other, both, both) == (READY, (one, other))
    assert shared.answer(DAY, "a", other, both, ["a"]) == (READY, (one, other))


def test_a_node_alone_goes_on_alone_and_old_windows_are_forgotten() -> None:
    shared = SharedCounts()
    assert shared.answer(DAY, "a", None, ["a"], ["a"]) == (READY, ())
    late = shared.answer(DAY, "b", None, ["a", "b"], ["b"])
    assert late == (READY, ()), "the first one read by its own"
    for window in range(2, 100):
        shared.answer(window * DAY, "a", None, ["a"], ["a"])
    assert shared.answer(DAY, "b", None, ["a", "b"], ["b"]) == (SEND, ())
    assert len(shared._windows) < 9


def counts(sentences: list[list[int]]):
    tokens = np.array([word for one in sentences for word in one], dtype=np.int32)
    ends = np.cumsum([0, *map(len, sentences)])
    seen = np.bincount(tokens, minlength=WORDS).astype(float)
    return pair_counts(tokens, ends, 0, 2, WORDS).counted(np.arange(WORDS), seen)


TEXTS = st.lists(st.lists(st.integers(0, WORDS - 1), max_size=9), max_size=9)


@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_counts_of_parts_add_up_to_those_of_the_whole(texts: list[list[list[int]]]) -> None:
    parts = [sent(counts(text)) for text in texts]
    whole = counts([sentence for text in texts for sentence in text])
    found = added_up([part for part in parts if part is not None], MOST)
    np.testing.assert_array_equal(found.seen, whole.seen)
    for mine, its in zip(
        vars(PairCounts.of_sum(found)).values(),
        vars(PairCounts.of_sum(whole)).values(),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, its)


def test_of_more_than_a_message_holds_the_pairs_that_were_counted_least_are_left_out() -> None:
    found = added_up([counts([[0, 1], [0, 1], [2, 3], [4, 5], [4, 5]])], 16 * (WORDS + 2))
    assert (found.first.tolist(), found.second.tolist()) == ([0, 4], [1, 5])
    assert found.pairs.tolist() == [2.0, 2.0]


def test_a_question_that_is_none_is_refused() -> None:
    state = ServerState(ServerConfig(), SyncConfig(policy="asp"), RowShape(DIM))
    whole = {"op": "share_counts", "window": DAY, "nodes": 0}
    line = Line(state, "n0")
    assert line.request(Message(whole)).header["answer"] == READY
    for change in ({"window": "x"}, {"window": 2**50}, {"nodes": -1}):
        with pytest.raises(RefusedError, match="share_counts"):
            line.request(Message({**whole, **change}))


@pytest.mark.parametrize(
    "change",
    [
        {"ids": np.zeros(WORDS, np.int64)},
        {"seen": np.zeros(1, np.float32)},
        {"second": np.full(1, WORDS, np.int32)},
        {"second": np.full(1, -1, np.int32)},
        {"pairs": np.full(1, np.nan, np.float32)},
    ],
)
def test_what_are_no_counts_is_refused_in_a_sentence(change: dict[str, np.ndarray]) -> None:
    with pytest.raises(RefusedError, match="share_counts"):
        sent(replace(counts([[3, 4]]), **change))
