"""Nodes of a stream read their documents by what all of them counted: together they say what one
node says that reads all of it."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.exchange.payload import WindowUse
from embedding.exchange.protocol import PROTOCOL_VERSION
from embedding.exchange.textcounts import (
    OWN,
    READY,
    SEND,
    WAIT,
    TextCounts,
    added_up,
    read,
    written,
)
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Calendar, TokenBlock, WindowUnit
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.flight.sharing import SharingCalls
from embedding.server.rowstore.interface import RowShape
from embedding.server.state import ServerState
from embedding.server.words.sharedcounts import SharedCounts
from embedding.worker.usage.paircounts import PairCounts, pair_counts
from embedding.worker.usage.past import PastTexts
from embedding.worker.usage.sharing import StreamPeers
from embedding.worker.usage.usage import UsageReader

DIM, DAY, WORDS, DAYS = 8, 86_400, 40, 3
LEXICON: Any = SimpleNamespace(
    ids=np.arange(WORDS),
    counts=np.full(WORDS, 100.0),
    places=lambda ids: ids,
    names=lambda ids: [f"말{at}" for at in ids.tolist()],
)


def rows(ids: np.ndarray) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(WORDS, DIM)).astype(np.float32)[ids]


class Line:
    """A node's stream to a server without its network."""

    def __init__(self, state: ServerState, node: str) -> None:
        session = state.hello(node, version=PROTOCOL_VERSION, digest="", clock=0).session
        self._calls = SharingCalls(state, lambda: (node, session)).calls()
        self.sent = 0

    def request(self, message: Message) -> Message:
        self.sent += len(message.arrays)
        return self._calls[str(message.header["op"])](message)


def stream(nodes: int, last: int = DAYS) -> tuple[list[UsageReader], list[Line], ServerState]:
    """Nodes that have read their documents of some days: half of the words are one node's habit."""
    state = ServerState(ServerConfig(), SyncConfig(policy="asp"), RowShape(DIM))
    lines = [Line(state, f"n{node}") for node in range(nodes)]
    readers = [
        UsageReader(
            2, PastTexts(Calendar(WindowUnit.DAY), 100_000, 6), None, StreamPeers(line, look_s=0.0)
        )
        for line in lines
    ]
    random = np.random.default_rng(2)
    for at in range(60 * last):
        node, day = at % nodes, at // 60
        habit = np.arange(WORDS) if at % 4 < 2 else np.arange(WORDS // 2)
        text = [[f"말{word}" for word in random.choice(habit, 12)]]
        block = TokenBlock.build("s", [text], published=[float(day * DAY)], keys=[f"http://a/{at}"])
        table = np.array([int(word[1:]) for word in block.words])
        readers[node].keep([block], [table])
        state.accounts.readers.greet(f"n{node}", f"life{node}")
        state.accounts.readers.read(day * DAY, f"n{node}", f"life{node}", "s", 1)
    return readers, lines, state


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


@pytest.mark.parametrize("nodes", [2, 4])
def test_nodes_say_together_what_one_says_alone(nodes: int) -> None:
    window = (DAYS - 1) * DAY
    (alone,), (line,), _ = stream(1)
    assert alone.ready(window, LEXICON)
    assert line.sent == 0, "one node sends no counts"
    readers, _, _ = stream(nodes)
    assert [reader.ready(window, LEXICON) for reader in readers] == [False] * (nodes - 1) + [True]
    assert all(reader.ready(window, LEXICON) for reader in readers)
    one, together = sums(said([alone], window)), sums(said(readers, window))
    assert one.keys() == together.keys()
    for key, each in one.items():
        np.testing.assert_allclose(together[key], each, atol=0.02)


def test_without_the_others_a_node_says_something_else() -> None:
    window = (DAYS - 1) * DAY
    (alone,), _, _ = stream(1)
    alone.ready(window, LEXICON)
    readers, _, _ = stream(2)
    one, apart = sums(said([alone], window)), sums(said(readers, window))
    assert max(np.abs(apart[key] - each).max() for key, each in one.items()) > 0.2


def test_nobody_waits_for_a_dead_node_or_when_the_server_does_not() -> None:
    window = (DAYS - 1) * DAY
    readers, _, state = stream(3)
    assert not readers[0].ready(window, LEXICON)
    assert readers[0].ready(window, LEXICON, overdue=True)
    readers, _, state = stream(2)
    assert not readers[0].ready(window, LEXICON)
    state.leave("n1", state.ledger.of("n1").session)
    assert readers[0].ready(window, LEXICON)


def test_the_sum_of_a_window_stays_when_more_is_read_of_it() -> None:
    shared = SharedCounts()
    one, other = counts([[0, 1]]), counts([[1, 2]])
    assert shared.answer(DAY, "a", ["a", "b"], ["a", "b"])[0] == SEND
    shared.hand_in(DAY, "a", one)
    assert shared.answer(DAY, "a", ["a", "b"], ["a", "b"])[0] == WAIT
    shared.hand_in(DAY, "b", other)
    answer, parts = shared.answer(DAY, "b", ["a", "b"], ["a", "b"])
    assert (answer, parts) == (READY, (one, other))
    shared.hand_in(DAY, "a", other)
    assert shared.answer(DAY, "a", ["a", "b"], ["a"]) == (READY, (one, other))


def test_a_node_alone_goes_on_alone_and_old_windows_are_forgotten() -> None:
    shared = SharedCounts()
    assert shared.answer(DAY, "a", ["a"], ["a"]) == (OWN, ())
    assert shared.answer(DAY, "b", ["a", "b"], ["b"]) == (OWN, ()), "the first one read by its own"
    for window in range(2, 100):
        shared.answer(window * DAY, "a", ["a"], ["a"])
    assert len(shared._given) == len(shared._fixed) < 9


def counts(sentences: list[list[int]]) -> TextCounts:
    tokens = np.array([word for one in sentences for word in one], dtype=np.int32)
    ends = np.cumsum([0, *map(len, sentences)])
    seen = np.bincount(tokens, minlength=WORDS).astype(float)
    return pair_counts(tokens, ends, 0, 2, WORDS).counted(np.arange(WORDS), seen)


TEXTS = st.lists(st.lists(st.integers(0, WORDS - 1), max_size=9), max_size=9)


@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_counts_of_parts_add_up_to_those_of_the_whole(texts: list[list[list[int]]]) -> None:
    parts = [read(Message({}, written(counts(text)))) for text in texts]
    whole = counts([sentence for text in texts for sentence in text])
    found = added_up([part for part in parts if part is not None])
    np.testing.assert_array_equal(found.seen, whole.seen)
    for mine, its in zip(
        vars(PairCounts.of_sum(found)).values(),
        vars(PairCounts.of_sum(whole)).values(),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize(
    "change",
    [
        {"count_ids": np.zeros(WORDS, np.int64)},
        {"count_seen": np.zeros(1, np.float32)},
        {"count_first": np.full(1, WORDS, np.int32)},
        {"count_second": np.full(1, -1, np.int32)},
        {"count_pairs": np.full(1, np.nan, np.float32)},
    ],
)
def test_what_are_no_counts_is_refused_in_a_sentence(change: dict[str, np.ndarray]) -> None:
    with pytest.raises(RefusedError, match="share_counts"):
        read(Message({}, {**written(counts([[3, 4]])), **change}))
