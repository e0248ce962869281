"""Several nodes of a corpus say of the use of words what one node says that reads all of it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from embedding.exchange.payload import ContextSums, WindowUse
from embedding.exchange.protocol import PROTOCOL_VERSION
from embedding.exchange.wire import Message
from embedding.kernel.records import Calendar, TokenBlock, WindowUnit
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.flight.leaving import LeavingCalls
from embedding.server.rowstore.interface import RowShape
from embedding.server.state import ServerState
from embedding.worker.corpus.corpus import document_key
from embedding.worker.usage.past import PastTexts
from embedding.worker.usage.peers import CorpusPeers
from embedding.worker.usage.usage import UsageReader

DIM, DAY, WORDS, DAYS = 8, 86_400, 40, 4


class Lexicon:
    """All words, in the order of their ids."""

    ids = np.arange(WORDS)
    counts = np.full(WORDS, 100.0)

    def places(self, ids: np.ndarray) -> np.ndarray:
        return ids

    def names(self, ids: np.ndarray) -> list[str]:
        return [f"말{at}" for at in ids.tolist()]


class Line:
    """A node's stream to a server without its network."""

    def __init__(self, state: ServerState, node: str) -> None:
        session = state.hello(node, version=PROTOCOL_VERSION, digest="", clock=0).session
        self._calls = LeavingCalls(state, lambda: (node, session)).calls()

    def request(self, message: Message) -> Message:
        return self._calls[str(message.header["op"])](message)


def rows(ids: np.ndarray) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(WORDS, DIM)).astype(np.float32)[ids]


def corpus() -> list[tuple[int, list[list[str]]]]:
    """Day and sentences of each line; on the third day all documents are near each other."""
    random = np.random.default_rng(2)
    days = np.repeat(np.arange(DAYS), (30, 30, 4, 30))
    return [
        (day, [[f"말{at}" for at in random.integers(0, WORDS, 12)] for _ in range(3)])
        for day in days.tolist()
    ]


def of(node: int, nodes: int, line: int) -> bool:
    """Whether a node reads a line: stretches of eight are dealt out."""
    return line // 8 % nodes == node


def feed(reader: UsageReader, day: int, node: int, nodes: int) -> bool:
    """A node reads its lines of a day; whether it has any."""
    lines = [
        (at, text)
        for at, (when, text) in enumerate(corpus())
        if when == day and of(node, nodes, at)
    ]
    if not lines:
        return False
    block = TokenBlock.build(
        "s",
        [text for _, text in lines],
        published=[float(day * DAY)] * len(lines),
        keys=[document_key("posts", at) for at, _ in lines],
    )
    reader.keep([block], [np.array([int(word[1:]) for word in block.words])])
    return True


def readings(nodes: int) -> dict[int, list[WindowUse]]:
    """What is said of each day."""
    state = ServerState(ServerConfig(), SyncConfig(policy="asp"), RowShape(DIM))
    found: dict[int, list[WindowUse]] = {}
    readers = []
    for node in range(nodes):
        peers = CorpusPeers(Line(state, f"n{node}"), nodes, 100_000) if nodes > 1 else None
        readers.append(UsageReader(2, PastTexts(Calendar(WindowUnit.DAY), 100_000, 6), peers))
    under_way: list[int | None] = [None] * nodes
    for day in range(DAYS + 1):
        for node, reader in enumerate(readers):
            mine = any(when == day and of(node, nodes, at) for at, (when, _) in enumerate(corpus()))
            if not mine and day < DAYS:
                continue
            last, under_way[node] = under_way[node], day * DAY
            if last is not None:
                for window, past in reader.leave(last, day * DAY if day < DAYS else None):
                    use = reader.close(window, Lexicon(), rows, past)  # type: ignore[arg-type]
                    found.setdefault(window // DAY, []).append(use)
            feed(reader, day, node, nodes)
    return found


def key(part: ContextSums) -> tuple[int, str, int]:
    return part.window, part.source, part.part


@pytest.mark.parametrize("nodes", [2, 3])
def test_nodes_say_together_what_one_says_alone(nodes: int):
    alone, together = readings(1), readings(nodes)
    assert sorted(together) == list(range(DAYS))
    for day, uses in together.items():
        (one,), (other,) = alone[day], uses
        assert len(one.sums) > 16
        for part, its in zip(sorted(one.sums, key=key), sorted(other.sums, key=key), strict=True):
            assert key(part) == key(its)
            np.testing.assert_array_equal(part.ids, its.ids)
            np.testing.assert_array_equal(part.documents, its.documents)
            np.testing.assert_array_equal(part.sums, its.sums)
        for shift, its_shift in zip(one.shifts, other.shifts, strict=True):
            np.testing.assert_array_equal(shift.contexts, its_shift.contexts)


def test_what_is_remembered_is_as_much_as_one_node_remembers():
    reader = UsageReader(2, PastTexts(Calendar(WindowUnit.DAY), 4_000, 6))
    for day in range(2):
        feed(reader, day, 0, 1)
    held = reader.past.held(2_160)
    assert reader.past.tokens == 2_160
    again = reader.past.of_all({day: [*parts, *parts] for day, parts in held.items()})
    assert 3_400 < again.tokens <= 4_000
    assert again.before(DAY) == [0]
    assert sorted(reader.past.held(2_000)) == [DAY]


def test_a_word_that_gets_its_row_late_has_it_in_all_mentions():
    past = PastTexts(Calendar(WindowUnit.DAY), 1_000, 6, names_late_words=True)
    for day, late in enumerate(([0, -1, -1, 3], [0, 1, -1, 3])):
        text = [[["a", "b", "c", "b", "d"]]]
        block = TokenBlock.build("s", text, published=[float(day * DAY)], keys=["posts#1"])
        past.add([block], [np.array(late)])
    past.find_late_words(lambda words: np.array([{"b": 1}.get(word, -1) for word in words]))
    for day in range(2):
        assert past.of_window(day * DAY)[0].ids.tolist() == [0, 1, -1, 1, 3]
    past.find_late_words(lambda words: np.full(len(words), 9))
    assert past.of_window(0)[0].ids.tolist() == [0, 1, -1, 1, 3]


def test_a_message_that_is_none_is_refused():
    from embedding.kernel.errors import RefusedError

    state = ServerState(ServerConfig(), SyncConfig(policy="asp"), RowShape(DIM))
    send = partial(Line(state, "n0").request)
    whole = {
        "op": "leave_window",
        "window": 0,
        "until": 1,
        "nodes": 2,
        "keep": 7,
        "enough": 9,
        "past": [],
    }
    assert send(Message(whole)).header["close"] == []
    for name in ("window", "until", "nodes", "keep", "enough", "past"):
        with pytest.raises(RefusedError):
            send(Message({**whole, name: "x"}))
