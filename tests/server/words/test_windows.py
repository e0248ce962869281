"""The watermark, and windows that are due."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.records import Calendar, WindowUnit
from embedding.server.parts import Content
from embedding.server.words.windows import WindowTracker

HOUR = 3600


def tracker(**changes) -> WindowTracker:
    return WindowTracker(Calendar(WindowUnit.HOUR), idle_s=changes.pop("idle_s", 10.0), **changes)


def went_on(t: WindowTracker, before: WindowTracker) -> set[str]:
    """The nodes that are waited for once `t` has what a checkpoint says of `before`."""
    facts = {**before.save().facts, "event_times": {}}  # loaded by the clock of the machine
    t.load(Content(facts, {}, {}))
    return t.nodes


def test_the_slowest_live_source_holds_the_watermark():
    t = tracker()
    assert t.advance(now=0) is None
    t.progress("빠름", 5000.0, now=0)
    t.progress("느림", 4000.0, now=0)
    assert t.advance(now=1) == 4000.0


def test_an_idle_source_holds_nothing_back_unless_something_is_pending():
    t = tracker()
    t.progress("빠름", 5000.0, now=0)
    t.progress("느림", 4000.0, now=0)
    t.report("n0", {"느림": 3}, now=0)
    t.progress("빠름", 9000.0, now=20)
    assert t.advance(now=21) == 4000.0
    t.report("n0", {"느림": 0}, now=21)
    assert t.advance(now=22) == 9000.0


def test_a_source_that_is_known_and_has_given_nothing_yet_holds_the_watermark():
    t = tracker()
    t.report("n0", {"새": 5}, now=0)
    t.progress("뉴스", 5000.0, now=0)
    assert t.advance(now=5) is None
    t.progress("새", 100.0, now=6)
    assert t.advance(now=6) == 100.0


def test_what_a_departed_node_had_pending_is_not_waited_for():
    t = tracker()
    t.progress("느림", 4000.0, now=0)
    t.report("n0", {"느림": 3}, now=0)
    t.progress("빠름", 9000.0, now=20)
    t.leave("n0")
    assert t.advance(now=20) == 9000.0


def test_a_source_that_moved_is_not_waited_for_at_the_node_that_had_it():
    t = tracker()
    t.report("n0", {"뉴스": 2}, now=0)
    t.progress("뉴스", 1000.0, now=0, node="n0")
    t.report("n0", {}, now=1)  # it has given the source up, and pushes what it had left
    t.progress("뉴스", 2000.0, now=2, node="n0")
    t.report("n1", {"뉴스": 1}, now=3)
    t.progress("뉴스", 9000.0, now=3, node="n1")
    assert t.advance(now=3) == 2000.0
    t.report("n0", {}, now=4)
    assert t.advance(now=4) == 9000.0
    again = tracker()
    again.expect(went_on(again, t), until=100.0)
    again.report("n0", {}, now=5)
    again.progress("뉴스", 9500.0, now=5, node="n1")
    assert again.advance(now=5) == 9500.0


moves = st.lists(
    st.tuples(st.sampled_from(["n0", "n1", "n2"]), st.sampled_from("가나"), st.booleans()),
    max_size=30,
)


@given(moves)
def test_whoever_had_a_source_its_last_reader_moves_the_watermark(moves):
    t = tracker()
    for at, (node, source, told) in enumerate(moves):
        if told:
            t.report(node, {source: 1}, now=at)
        t.progress(source, 10.0 * at, now=at, node=node)
    for node in ("n0", "n1", "n2"):
        t.report(node, {"가": 0, "나": 0} if node == "n1" else {}, now=100)
    for source in "가나":
        t.progress(source, 5000.0, now=100, node="n1")
    assert t.advance(now=100) == 5000.0


def test_event_time_goes_on_when_all_sources_are_silent():
    t = tracker()
    t.progress("뉴스", 4000.0, now=0)
    t.report("n0", {"뉴스": 0}, now=0, event_now=8000.0)
    t.report("n1", {}, now=0, event_now=7000.0)
    assert t.advance(now=5) == 4000.0
    assert t.advance(now=50) == 7000.0


def test_windows_are_due_in_order_once_passed():
    t = tracker()
    t.progress("뉴스", 2 * HOUR - 1.0, now=0)
    starts = [HOUR, 0, 2 * HOUR]
    assert [w.start.timestamp() for w in t.due(starts, now=0)] == [0]
    t.progress("뉴스", 2 * HOUR, now=0)
    assert [w.start.timestamp() for w in t.due(starts, now=0)] == [0, HOUR]


def test_window_bounds_follow_the_unit():
    t = WindowTracker(Calendar(WindowUnit.MONTH), idle_s=1)
    start = int(datetime(2020, 2, 1, tzinfo=UTC).timestamp())
    assert t.window(start).label == "2020-02"


happenings = st.lists(
    st.tuples(st.sampled_from("가나다"), st.floats(-1e6, 1e6), st.integers(0, 2), st.floats(0, 30)),
    max_size=40,
)


@given(happenings)
def test_the_watermark_never_goes_back_nor_past_a_live_source(happenings):
    t = tracker()
    now, before = 0.0, None
    for source, published, pending, passed in happenings:
        now += passed
        t.progress(source, published, now=now)
        t.report("n0", {source: pending}, now=now)
        previous = t.watermark
        mark = t.advance(now=now)
        assert mark is not None
        if before is not None:
            assert mark >= before
        if previous is None or mark > previous:
            live = [
                s.published
                for s in t.sources.values()
                if any(s.pending.values()) or now - s.last_news <= t.idle_s
            ]
            assert mark == pytest.approx(min(live))
        before = mark


def test_of_sources_that_are_read_together_a_silent_one_holds_nothing_back():
    t = tracker(in_step=True)
    for node in ("n0", "n1"):
        t.report(node, {"말뭉치": 1}, now=0)
    t.progress("뉴스", 9000.0, now=1, node="n0")
    t.progress("드묾", 2000.0, now=1, node="n0")
    assert t.advance(now=1) is None, "the other node has yet to say how far it is"
    t.progress("게시판", 3000.0, now=2, node="n1")
    assert t.advance(now=2) == 3000.0
    t.progress("댓글", 8000.0, now=3, node="n1")
    assert t.advance(now=3) == 8000.0
    t.leave("n1")
    assert t.advance(now=4) == 9000.0


def test_nodes_that_share_a_source_all_have_to_pass_a_window():
    t = tracker()
    for node in ("n0", "n1"):
        t.report(node, {"말뭉치": 1}, now=0)
    t.progress("말뭉치", 9000.0, now=1, node="n0")
    assert t.advance(now=1) is None
    t.progress("말뭉치", 3000.0, now=2, node="n1")
    assert t.advance(now=2) == 3000.0
    t.leave("n1")
    assert t.advance(now=3) == 9000.0


def test_after_a_restart_the_watermark_waits_for_nodes_that_have_not_said_how_far_they_are():
    before = tracker(in_step=True)
    before.progress("뉴스", 9000.0, now=0, node="n0")
    before.progress("뉴스", 3000.0, now=0, node="n1")
    assert before.advance(now=0) == 3000.0
    t = tracker(in_step=True)
    t.progress("뉴스", 9000.0, now=100)
    t.watermark = before.watermark
    t.expect(went_on(t, before), until=160.0)
    t.progress("뉴스", 9500.0, now=101, node="n0")
    assert t.advance(now=101) == 3000.0, "n1 may have found more meanwhile"
    t.report("n1", {"뉴스": 2}, now=102)
    assert t.advance(now=102) == 3000.0, "n1 is as far as it was"
    t.progress("뉴스", 4000.0, now=103, node="n1")
    assert t.advance(now=103) == 4000.0


def test_a_node_that_does_not_come_back_after_a_restart_is_waited_for_so_long():
    before = tracker()
    before.report("n1", {"느림": 3}, now=0)
    before.progress("느림", 3000.0, now=0, node="n1")
    t = tracker()
    t.progress("느림", 3000.0, now=100)
    t.expect(went_on(t, before), until=160.0)
    t.progress("빠름", 9000.0, now=159, node="n0")
    assert t.advance(now=159) is None
    assert t.advance(now=160) == 9000.0
