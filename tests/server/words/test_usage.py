"""How words were used, by window and source: counted once, bounded, kept, published."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from embedding.exchange.payload import (
    BUSIEST,
    UNITS,
    BlockCounts,
    ContextSums,
    CountGroup,
    HandIn,
    RowDelta,
)
from embedding.exchange.protocol import PROTOCOL_VERSION, Push
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import SourceProgress, Table, Window, WindowUnit
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.parts import Moment, PushArrival
from embedding.server.recovery.restoring import assemble, collect, restore
from embedding.server.rowstore import RowShape
from embedding.server.snapshotting.snapshotter import Snapshotter
from embedding.server.state import ServerState
from embedding.server.validation import checked
from embedding.server.words.usage import UsageSums, added_up
from embedding.snapshots.format import Missing
from embedding.snapshots.store import SnapshotStore
from server.saving import saved

DIM = 3
WINDOW = Window.holding(datetime(2020, 2, 1, tzinfo=UTC), WindowUnit.DAY)
AT = int(WINDOW.start.timestamp())
NEXT = AT + 86_400


def use(
    part: int, words: list[int], value: float, source: str = "뉴스", window: int = AT
) -> ContextSums:
    """Sums of `value`, over two documents for each word."""
    n = len(words)
    sums = np.full((n, DIM), value, np.float16)
    return ContextSums(window, source, part, np.array(words), sums, np.full(n, 2.0, np.float32))


class Server:
    """A state with four words and the pushes of one node."""

    def __init__(self, **changes) -> None:
        settings = {"min_count": 1, "device": "cpu"} | changes
        self.config = ServerConfig(**settings)
        self.state = ServerState(self.config, SyncConfig(policy="asp"), RowShape(DIM, seed=1))
        self.state.hello("n0", version=PROTOCOL_VERSION, digest="", clock=0)
        self.ids = self.state.words.admit(["말", "글", "봄", "꽃"], np.ones(4, dtype=np.int64))

    def push(self, *parts: ContextSums, node: str = "n0", **changes) -> Push:
        if node not in self.state.ledger.nodes:
            self.state.hello(node, version=PROTOCOL_VERSION, digest="", clock=0)
        sequence = self.state.ledger.of(node).accepted + 1
        push = replace(Push(node, sequence, 0, usage=parts), **changes)
        self.state.push(push)
        return push

    @property
    def usage(self) -> UsageSums:
        return self.state.accounts.usage

    def sums(self, *starts: int):
        return added_up(self.usage.held(starts))


def test_sums_add_up_by_window_source_time_and_unit():
    server = Server()
    first = server.push(use(0, [0, 1], 1.0), use(5, [0], 2.0), use(0, [0], 7.0, "글판"))
    server.state.push(first)  # sent again: it is counted once
    more = use(0, [0], 4.0), use(0, [2], 5.0, window=NEXT), use(UNITS + 1, [3], 6.0)
    server.push(*more, node="n1")
    board, news, before = server.sums(AT)
    assert (board.source, news.source, before.source) == ("글판", "뉴스", "뉴스")
    assert (board.time, news.time, before.time) == (0, 0, 1)
    assert news.ids.tolist() == [0, 1]
    first_of_dim = news.sums[news.units, 0]
    assert (first_of_dim[0, 0], first_of_dim[0, 5], first_of_dim[1, 0]) == (5.0, 2.0, 1.0)
    assert first_of_dim.sum() == 8.0, "no other unit has any"
    assert (news.documents[0, 0], news.documents[0, 5], news.documents.sum()) == (4.0, 2.0, 8.0)
    assert before.ids.tolist() == [3]
    assert before.sums[before.units[0, 1], 0] == 6.0
    (other,) = server.sums(NEXT)
    assert other.ids.tolist() == [2]
    assert server.usage.describe(Moment(0.0, str)) == {
        "usage": {"held": 5, "before": 1, "dropped": 0, "units": UNITS}
    }


def test_a_process_says_all_of_a_window_in_portions_and_the_last_word_counts():
    server = Server()

    def portion(*parts, first: int | None = None, life: str = "a") -> Push:
        ends = () if first is None else (HandIn(AT, first),)
        return server.push(*parts, hand_ins=ends, incarnation=life)

    portion(use(0, [0], 9.0))  # of a try that it gave up
    portion(use(0, [0], 1.0), use(0, [0], 1.0, window=NEXT))
    assert server.usage.held([AT, NEXT]) == [], "nothing counts before all is there"
    portion(use(0, [1], 2.0), first=2)
    assert value_of(server) == {0: 1.0, 1: 2.0}
    portion(use(0, [0, 1, 2], 3.0), first=4)
    assert value_of(server) == {0: 3.0, 1: 3.0, 2: 3.0}, "it takes the place of what was said"
    portion(use(0, [3], 5.0), life="b", first=5)
    assert value_of(server) == {0: 3.0, 1: 3.0, 2: 3.0, 3: 5.0}
    server.usage.drop(AT, "a", "뉴스")
    assert value_of(server) == {3: 5.0}
    portion(use(0, [0], 1.0), life="b")
    server.usage.begin("n0", "c")
    assert not any(portion for _, _, _, portion, _ in saved(server.usage).facts["usage"]), (
        "nobody ends it"
    )


def test_what_heirs_say_of_one_text_counts_once_with_the_texts_before_it():
    server = Server()

    def hand_in(node: str, life: str, words: list[int], value: float, *marks: str) -> None:
        parts = (use(part, words, value) for part in (0, 2 * UNITS))
        own = [replace(part, incarnation=mark) for part in parts for mark in marks]
        server.push(*own, node=node, hand_ins=(HandIn(AT, 1),), incarnation=life)

    hand_in("n0", "a", [0], 1.0, "")
    hand_in("n1", "b", [0], 2.0, "a")
    assert [used.documents.sum() for used in server.sums(AT)] == [2.0, 2.0]
    hand_in("n2", "c", [1], 4.0, "", "a")
    assert value_of(server) == {1: 8.0}, "its own, and that of the dead one in place of the other's"
    hand_in("n1", "b", [2], 1.0, "")
    assert value_of(server) == {1: 8.0, 2: 1.0}
    again = UsageSums(DIM, wanted=True, limit=100)
    again.load(saved(server.usage))
    assert added_up(again.held([AT]))[0].documents.sum() == 6.0


def test_words_that_a_node_says_under_several_marks_are_bounded_once():
    server = Server(usage_words=4)
    parts = use(0, [0, 1, 2], 1.0), replace(use(0, [0, 1, 2], 1.0), incarnation="dead")
    server.push(*parts, hand_ins=(HandIn(AT, 1),), incarnation="a")
    assert value_of(server) == {0: 2.0, 1: 2.0, 2: 2.0}
    server.push(use(0, [3, 2], 1.0), node="n1", hand_ins=(HandIn(AT, 1),), incarnation="b")
    assert server.usage.dropped[AT] == 1
    assert value_of(server) == {0: 2.0, 1: 2.0, 2: 2.0, 3: 1.0}


def value_of(server: Server) -> dict[int, float]:
    one = server.sums(AT)[0]
    values = one.sums[one.units[:, 0], 0]
    return dict(zip(one.ids.tolist(), values.tolist(), strict=True))


def test_the_sums_do_not_depend_on_who_was_first():
    values = (0.1, 1_000.0, -0.3, 7.7)
    found = []
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)):
        server = Server()
        for at in order:
            server.push(use(0, [0], values[at]), node=f"n{at}")
        found.append(value_of(server))
    assert found[0] == found[1] == found[2]


def test_a_snapshot_has_the_use_of_its_words_and_a_closed_window_takes_no_more(tmp_path):
    server = Server(snapshots=str(tmp_path), cut="manual")
    rows = (RowDelta(Table.IN, server.ids, np.ones((4, DIM), np.float32)),)
    progress = (SourceProgress("뉴스", 1, 5, AT + 60.0, AT, ()),)
    past = use(2 * UNITS + 1, [3], 5.0), use(2 * UNITS, [1], 5.0)
    past = (*past, use(BUSIEST * UNITS + 3, [0], 2.0))
    parts = use(0, [0, 3], 3.0), use(UNITS, [0], 1.0), *past
    counts = BlockCounts(
        (CountGroup("뉴스", AT, 4),), server.ids, [], np.full(4, 5), np.ones(4, dtype=np.int64)
    )
    server.push(*parts, deltas=rows, progress=progress, counts=counts)
    snapshotter = Snapshotter(server.state, server.config)
    ref = snapshotter.cut(WINDOW)
    opened = SnapshotStore(str(tmp_path)).open(ref.id)
    usage = opened.usage
    assert usage is not None
    assert [opened.words[row] for row in usage.rows] == ["말", "꽃"]
    assert usage.sources == ["뉴스", "뉴스"]
    assert usage.mentions.tolist() == [2, 2]
    assert usage.pairs.shape == (2, UNITS)
    assert usage.means[0, :2, 0].tolist() == [1.5, 0.0], "sums over documents"
    assert [[opened.words[row] for row in one.rows] for one in usage.reread] == [["말"], ["꽃"]], (
        "not of a word that the window has not"
    )
    assert [opened.words[row] for row in usage.busiest.rows] == ["말"]
    assert usage.busiest.pairs[0].nonzero()[0].tolist() == [3]
    server.push(use(0, [0], 1.0), node="n1")
    assert value_of(server)[0] == 4.0, "for a revision"
    server.state.accounts.free([AT])
    server.push(use(0, [0], 1.0), node="n1")
    assert not server.usage.held([AT])
    snapshotter.stop()


def test_what_two_nodes_read_of_one_part_adds_up_and_stays_finite():
    server = Server()
    for value in (40_000.0, 30_000.0, 1.5):
        server.push(use(0, [0] if value > 2 else [1], value), node=f"n{value}")
    server.push(use(0, [1], 2.0))
    (found,) = server.sums(AT)
    assert found.sums[found.units[:, 0], 0].tolist() == [60_000.0, 3.5]
    assert found.documents[:, 0].tolist() == [4.0, 4.0]


def test_sums_are_kept_in_the_numbers_in_which_they_came():
    part = use(0, [0], 0.1)
    (found,) = checked(Push("n0", 1, 0, usage=(part,)), dim=DIM, most_bytes=1).usage
    assert found.sums is part.sums


def test_a_word_of_many_units_is_one_of_the_words_that_there_is_room_for():
    server = Server(usage_words=2)
    server.push(*(use(unit, [0, 1], 1.0) for unit in range(UNITS)))
    assert not server.usage.dropped
    assert len(server.usage) == 2


def test_the_bound_holds_and_says_what_was_passed_over():
    server = Server(usage_words=2)
    server.push(use(0, [0], 1.0))
    server.push(use(0, [0, 1, 2], 1.0), use(UNITS, [0, 1, 2], 1.0), node="n1")
    assert len(server.usage) == 2
    assert server.usage.dropped[AT] == 3, "as many words as of the window itself"
    assert server.state.missing([AT]) == (Missing(part="usage", reason="usage_limit"),)


def test_nothing_is_kept_where_it_is_not_wanted():
    server = Server(usage=False)
    server.push(use(0, [0], 1.0))
    assert not saved(server.usage).facts["usage"]


def test_sums_survive_a_restart():
    server = Server()
    parts = use(0, [0, 1], 1.5), use(1, [2], 7.0, "글판", NEXT), use(2 * UNITS, [1, 2], 2.5)
    server.push(*parts)
    with server.state.lock:
        collected = collect(server.state)
        copy = server.state.tables.copy(server.state.vocabulary.rows, accumulators=False)
    copy.finish(server.state.lock)
    content = assemble(collected, copy)
    again = ServerState(server.config, SyncConfig(policy="asp"), RowShape(DIM, seed=1))
    restore(again, content, "memory")
    kept, back = server.sums(AT, NEXT), added_up(again.accounts.usage.held([AT, NEXT]))
    assert [(one.source, one.time) for one in kept] == [("글판", 0), ("뉴스", 0), ("뉴스", 2)]
    for one, other in zip(kept, back, strict=True):
        assert (one.source, one.time) == (other.source, other.time)
        assert np.array_equal(one.ids, other.ids)
        assert np.array_equal(one.documents, other.documents)
        mine, theirs = (each.sums[each.units] for each in (one, other))
        assert np.array_equal(mine, theirs)


def test_sums_of_another_dimension_are_passed_over():
    server = Server()
    server.push(use(0, [0, 1], 1.5))
    kept = saved(server.usage)
    other = UsageSums(DIM + 1, wanted=True, limit=9)
    other.load(kept)
    assert not saved(other).facts["usage"]
    other = UsageSums(DIM, wanted=True, limit=9)
    other.load(kept)
    assert len(other) == 2


def test_a_checkpoint_copies_no_sums_and_a_source_that_goes_gives_its_memory_back():
    words, dim = 2_000, 100
    usage = UsageSums(dim, wanted=True, limit=10 * words)
    sums = np.zeros((words, dim), np.float16)
    parts = tuple(
        ContextSums(AT, source, part, np.arange(words), sums, np.ones(words, np.float32))
        for source in ("글판", "뉴스")
        for part in (0, 1)
    )
    usage.learnt(PushArrival.prepare(Push("n0", 1, 0, usage=parts), 0), 0.0, set())
    kept = saved(usage)
    tracemalloc.start()
    try:
        files = usage.save().files(None)
        assert sum(file.nbytes for file in files.values()) > 4 * sums.nbytes
        assert tracemalloc.get_traced_memory()[1] < sums.nbytes / 4
        restored = UsageSums(dim, wanted=True, limit=10 * words)
        restored.load(kept)
        whole = tracemalloc.get_traced_memory()[0]
        restored.drop(AT, "", "뉴스")
        assert tracemalloc.get_traced_memory()[0] < whole - 1.9 * sums.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sums": np.zeros((1, DIM + 1), np.float32)}, "shape"),
        ({"sums": np.full((1, DIM), np.nan, np.float32)}, "not finite"),
        ({"documents": np.array([-1.0], np.float32)}, "at least 0"),
        ({"documents": np.array([np.inf], np.float32)}, "finite"),
        (
            {"ids": np.array([0, 0]), "sums": np.zeros((2, DIM)), "documents": np.ones(2)},
            "twice",
        ),
        ({"ids": np.array([-1])}, "outside 0"),
        ({"ids": np.array([10**6])}, "outside 0"),
        ({"window": 2**60}, "outside any calendar"),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(change, reason):
    server = Server()
    with pytest.raises(RefusedError, match=reason):
        server.push(replace(use(0, [0], 1.0), **change))
    assert not saved(server.usage).facts["usage"]
