"""Sums of what stood around words, by window and source: counted once, bounded, kept, published."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from embedding.errors import RefusedError
from embedding.exchange.payload import BlockCounts, CountGroup, Reread, RowDelta, Usage, said
from embedding.exchange.protocol import VERSION, Push
from embedding.records import SourceProgress, Table, Window, WindowUnit
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.cutting.cutter import Cutter
from embedding.server.recovery.restoring import assemble, collect, restore
from embedding.server.state import ServerState
from embedding.server.words.usage import UsageSums
from embedding.snapshots.store import SnapshotStore

DIM = 3
WINDOW = Window.holding(datetime(2020, 2, 1, tzinfo=UTC), WindowUnit.DAY)
AT = int(WINDOW.start.timestamp())
NEXT = AT + 86_400


class Server:
    """A state with four words and the pushes of one node."""

    def __init__(self, **changes) -> None:
        settings = {"min_count": 1, "device": "cpu", "usage_replicas": 2} | changes
        self.config = ServerConfig(**settings)
        self.state = ServerState(self.config, SyncConfig(policy="asp"), dim=DIM, seed=1)
        self.state.hello("n0", version=VERSION, digest="", clock=0)
        self.ids = self.state.admit(["말", "글", "봄", "꽃"], np.ones(4, dtype=np.int64))
        self.sequence = 0

    def told(self, parts: list[tuple[str, int, list[int], float]], **changes) -> Push:
        """A push of (source, window, words, slope) groups, each word read five times."""
        groups, ids, slopes = [], [], []
        for source, window, words, slope in parts:
            ids += words
            slopes += [[slope] * DIM + [-slope] * DIM + [2 * slope] * DIM] * len(words)
            groups.append(CountGroup(source, window, len(ids)))
        n = len(ids)
        counts = BlockCounts(
            tuple(groups),
            np.array(ids, dtype=np.int64),
            [],
            np.full(n, 5),
            np.ones(n, dtype=np.int64),
        )
        usage = Usage(np.arange(n), np.array(slopes, dtype=np.float16), np.full(n, 2.0, np.float32))
        self.sequence += 1
        push = Push("n0", self.sequence, 0, counts=counts, usage=usage)
        return replace(push, **changes)

    def push(self, *parts) -> Push:
        push = self.told(list(parts))
        self.state.push(push)
        return push

    @property
    def usage(self):
        return self.state.accounts.usage


def test_sums_add_up_by_window_source_and_word_in_replicas_that_take_turns():
    server = Server()
    first = server.push(("뉴스", AT, [0, 1], 1.0), ("글판", AT, [0], 7.0))
    server.state.push(first)
    server.push(("뉴스", AT, [0], 2.0), ("뉴스", NEXT, [2], 5.0))
    server.push(("뉴스", AT, [0], 4.0))
    board, news = server.usage.held([AT])
    assert (board.source, news.source) == ("글판", "뉴스")
    assert board.ids.tolist() == [0]
    assert news.ids.tolist() == [0, 1]
    assert news.mentions.tolist() == [15, 5]
    both = sorted(news.slopes[0, :, 0].tolist())
    assert both == [2.0, 5.0], "pushes 1 and 3 in one replica, 2 in the other, none twice"
    assert sorted(news.pairs[0].tolist()) == [2.0, 4.0]
    (other,) = server.usage.held([NEXT])
    assert other.ids.tolist() == [2]


def before(part: int, words: list[int], slope: float, source: str = "뉴스") -> Reread:
    n = len(words)
    slopes = np.full((n, said(DIM)), slope, np.float16)
    return Reread(AT, source, part, np.array(words), slopes, np.full(n, 2.0, np.float32))


def test_texts_that_were_read_again_lie_beside_the_window_part_by_part(tmp_path):
    server = Server(snapshots=str(tmp_path), cut="manual", usage_words=3)
    rows = (RowDelta(Table.IN, server.ids, np.ones((4, DIM), np.float32)),)
    progress = (SourceProgress("뉴스", 1, 5, AT + 60.0, AT, ()),)
    told = tuple(before(part, [0, 1], part + 1.0) for part in (0, 1, 2))
    push = server.told([("뉴스", AT, [0, 3], 3.0)], deltas=rows, progress=progress, reread=told)
    server.state.push(push)
    server.state.push(push)  # sent again: it is counted once
    fresh, first, second = server.usage.held([AT], least=5)
    assert (fresh.past, first.past, second.past) == (0, 1, 2)
    assert first.slopes[0, :, 0].tolist() == [1.0, 2.0], "parts 0 and 1 are the two replicas"
    assert second.slopes[0, :, 0].tolist() == [3.0, 0.0]
    assert server.usage.describe()["before"] == 4
    assert (fresh.slopes.dtype, first.slopes.dtype) == (np.float32, np.float16)
    server.state.push(server.told([], usage=None, reread=(before(0, [0, 1, 2, 3], 1.0),)))
    assert server.usage.dropped == 1, "as many words as of the window itself"
    cutter = Cutter(server.state, server.config)
    ref = cutter.cut(WINDOW)
    opened = SnapshotStore(str(tmp_path)).open(ref.id)
    usage = opened.usage
    assert [opened.words[row] for row in usage.rows] == ["말", "꽃"]
    assert [len(one) for one in usage.reread] == [1, 1], "words that the snapshot holds"
    assert usage.reread[1].means[0, :, 0].tolist() == [1.5, 0.0]
    assert [each.tables for each in (usage, *usage.reread)] == [3, 3, 3]
    assert sorted(usage.table(1)[0, :, 0].tolist()) == [-1.5, 0.0], "in input rows"
    assert sorted(usage.table(2)[0, :, 0].tolist()) == [0.0, 3.0], "by what stands around"
    assert not server.usage.parts()
    server.state.push(server.told([], usage=None, reread=(before(0, [0], 1.0),)))
    assert not server.usage.parts(), "a closed window takes no more"
    cutter.close()


def test_what_two_nodes_read_of_one_part_adds_up_and_stays_finite():
    server = Server()
    for slope in (40_000.0, 30_000.0, 1.5):
        words = [0] if slope > 2 else [1]
        server.state.push(server.told([], usage=None, reread=(before(0, words, slope),)))
    server.state.push(server.told([], usage=None, reread=(before(0, [1], 2.0),)))
    (held,) = server.usage.held([AT])
    assert held.slopes[:, 0, 0].tolist() == [60_000.0, 3.5]
    assert held.pairs[:, 0].tolist() == [4.0, 4.0]


def test_the_bound_holds_and_says_what_was_passed_over():
    server = Server(usage_words=2)
    server.push(("뉴스", AT, [0], 1.0))
    server.push(("뉴스", AT, [0, 1, 2], 1.0), ("글판", AT, [3], 1.0))
    assert len(server.usage) == 2
    assert server.usage.dropped == 2
    (news,) = server.usage.held([AT])
    assert news.mentions.tolist() == [10, 5]


def test_without_replicas_nothing_is_kept():
    server = Server(usage_replicas=0)
    server.push(("뉴스", AT, [0], 1.0))
    assert len(server.usage) == 0


def test_sums_survive_a_restart():
    server = Server()
    server.push(("뉴스", AT, [0, 1], 1.5), ("글판", NEXT, [2], 7.0))
    server.state.push(server.told([], usage=None, reread=(before(3, [1, 2], 2.5),)))
    with server.state.lock:
        collected = collect(server.state)
        copy = server.state.tables.copy(server.state.vocabulary.rows, accumulators=False)
    copy.finish(server.state.lock)
    content = assemble(server.state, collected, copy)
    again = ServerState(server.config, SyncConfig(policy="asp"), dim=DIM, seed=1)
    restore(again, content, "memory")
    kept, back = server.usage.held([AT, NEXT]), again.accounts.usage.held([AT, NEXT])
    assert [(one.source, one.past) for one in kept] == [("뉴스", 0), ("뉴스", 2), ("글판", 0)]
    for one, other in zip(kept, back, strict=True):
        assert (one.source, one.past) == (other.source, other.past)
        for name in ("ids", "mentions", "pairs", "slopes"):
            assert np.array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("other", [{"usage_replicas": 3}, {"dim": DIM + 1}])
def test_sums_of_other_replicas_or_columns_are_passed_over(other):
    server = Server()
    server.push(("뉴스", AT, [0, 1], 1.5))
    kept = server.usage.content()
    sums = UsageSums(other.get("dim", DIM), replicas=other.get("usage_replicas", 2), limit=9)
    sums.restore(server.usage.parts(), kept)
    assert not sums.parts()
    again = UsageSums(DIM, replicas=2, limit=9)
    again.restore(server.usage.parts(), kept)
    assert len(again) == 2


def test_a_snapshot_has_the_use_of_its_words_and_a_closed_window_takes_no_more(tmp_path):
    server = Server(snapshots=str(tmp_path), cut="manual")
    rows = (RowDelta(Table.IN, server.ids, np.ones((4, DIM), np.float32)),)
    progress = (SourceProgress("뉴스", 1, 5, AT + 60.0, AT, ()),)
    push = server.told([("뉴스", AT, [0, 3], 3.0)], deltas=rows, progress=progress)
    server.state.push(push)
    cutter = Cutter(server.state, server.config)
    ref = cutter.cut(WINDOW)
    usage = SnapshotStore(str(tmp_path)).open(ref.id).usage
    words = SnapshotStore(str(tmp_path)).open(ref.id).words
    assert [words[row] for row in usage.rows] == ["말", "꽃"]
    assert usage.sources == ["뉴스", "뉴스"]
    assert usage.mentions.tolist() == [5, 5]
    assert sorted(usage.means[0, :, 0].tolist()) == [0.0, 1.5], "g over N"
    assert usage.tables == 1, "nothing was read again to compare it with by the others"
    assert len(server.usage) == 0
    server.push(("뉴스", AT, [0], 1.0))
    assert len(server.usage) == 0
    cutter.close()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"slopes": np.zeros((1, DIM), np.float32)}, "shape"),
        ({"slopes": np.full((1, said(DIM)), np.nan, np.float32)}, "not finite"),
        ({"pairs": np.array([-1.0], np.float32)}, "negative"),
        ({"pairs": np.array([np.inf], np.float32)}, "not finite"),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(change, reason):
    server = Server()
    push = server.told([("뉴스", AT, [0], 1.0)])
    with pytest.raises(RefusedError, match=reason):
        server.state.push(replace(push, usage=replace(push.usage, **change)))
    assert len(server.usage) == 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"slopes": np.zeros((1, DIM), np.float32)}, "shape"),
        ({"slopes": np.full((1, said(DIM)), np.nan, np.float32)}, "not finite"),
        ({"pairs": np.array([-1.0], np.float32)}, "negative"),
        (
            {"ids": np.array([0, 0]), "slopes": np.zeros((2, 9)), "pairs": np.ones(2)},
            "twice",
        ),
        ({"ids": np.array([-1])}, "outside 0"),
        ({"ids": np.array([10**6])}, "outside 0"),
        ({"window": 2**60}, "outside any calendar"),
    ],
)
def test_nonsense_about_texts_before_is_refused_and_changes_nothing(change, reason):
    server = Server()
    push = server.told([], usage=None, reread=(replace(before(0, [0], 1.0), **change),))
    with pytest.raises(RefusedError, match=reason):
        server.state.push(push)
    assert not server.usage.parts()


def test_sums_of_a_word_without_a_row_are_refused():
    server = Server()
    push = server.told([("뉴스", AT, [0], 1.0)])
    counts = replace(push.counts, ids=np.array([-1]), words=["몰라"])
    with pytest.raises(RefusedError, match="no row"):
        server.state.push(replace(push, counts=counts))
