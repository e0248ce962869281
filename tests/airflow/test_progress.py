"""When a source group has passed a window: a pure function of the server's status."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding_airflow.progress import Target, grouped, judge

END = datetime(2020, 3, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
BEFORE, AFTER = "2020-02-20T00:00:00+00:00", "2020-03-02T00:00:00+00:00"


def source(published: str | None, idle: float = 0.0, documents: int = 10) -> dict[str, Any]:
    """A source's entry in the status."""
    return {
        "documents": documents,
        "tokens": documents * 100,
        "published_at": published,
        "idle_s": idle,
    }


def target(*names: str) -> Target:
    """Waits for these sources to pass February 2020."""
    return Target(names, "2020-02", END.timestamp(), idle_after_s=30.0)


def look(status: dict[str, Any], *names: str, watched_s: float = 100.0, now: float = NOW):
    return judge(status, target(*names), watched_s=watched_s, now=now)


def test_a_source_passes_with_a_document_from_after_the_window():
    seen = look({"sources": {"한겨레": source(AFTER), "경향": source(BEFORE)}}, "한겨레", "경향")
    assert seen.passed == ("한겨레",)
    assert seen.waiting == ("경향",)
    assert not seen.done
    assert seen.documents == 20
    assert seen.tokens == 2000
    assert BEFORE in seen.sentence()


def test_the_end_itself_belongs_to_the_next_window():
    assert look({"sources": {"a": source(END.isoformat())}}, "a").done


def test_a_snapshot_of_the_window_ends_the_wait():
    status = {"windows": {"2020-02": {"snapshot": "s1"}}, "sources": {"a": source(BEFORE)}}
    seen = look(status, "a")
    assert seen.done
    assert seen.snapshot == "s1"
    assert "s1" in seen.sentence()


def test_the_watermark_passes_every_source():
    assert look({"watermark": AFTER, "sources": {"a": source(BEFORE)}}, "a").done


def test_a_silent_source_is_given_up_once_the_others_are_past_the_window():
    status = {"sources": {"a": source(BEFORE, idle=31), "b": source(AFTER)}}
    seen = look(status, "a")
    assert seen.done
    assert seen.idle == ("a",)
    assert "silent: a" in seen.sentence()


def test_a_silent_source_is_waited_for_while_the_others_are_inside_the_window():
    status = {"sources": {"a": source(BEFORE, idle=31), "b": source(BEFORE, idle=1)}}
    assert not look(status, "a").done


def test_all_silent_means_the_stream_has_ended():
    status = {"sources": {"a": source(BEFORE, idle=31), "b": source(BEFORE, idle=40)}}
    assert look(status, "a", "b").done


def test_a_nodes_event_clock_tells_that_the_window_is_over():
    status = {
        "sources": {"a": source(BEFORE, idle=31), "b": source(BEFORE, idle=1)},
        "nodes": {"n0": {"report": {"event_now": END.timestamp() + 1}}},
    }
    assert look(status, "a").idle == ("a",)


def test_pending_documents_are_waited_for():
    status = {"sources": {"a": {**source(BEFORE, idle=31), "pending": 3}, "b": source(AFTER)}}
    assert look(status, "a").waiting == ("a",)


def test_a_pool_that_is_starting_is_waited_for():
    """No node has reported a source yet: silence says nothing."""
    status = {"sources": {}, "nodes": {"n0": {"report": {"event_now": NOW}}}}
    assert look(status, "a", watched_s=9_999).waiting == ("a",)


def test_silence_counts_from_when_the_watch_began():
    status = {"sources": {"a": source(BEFORE, idle=9_999), "b": source(AFTER)}}
    assert not look(status, "a", watched_s=29.0).done
    assert look(status, "a", watched_s=30.0).done


def test_a_source_nobody_has_heard_of_is_given_up_after_the_same_silence():
    status = {"sources": {"b": source(AFTER)}}
    assert not look(status, "a", watched_s=29.0).done
    seen = look(status, "a", watched_s=30.0)
    assert seen.idle == ("a",)


def test_a_window_that_goes_on_in_wall_time_is_never_given_up():
    status = {"sources": {"a": source(BEFORE, idle=9_999)}}
    assert not look(status, "a", now=END.timestamp() - 1).done


def test_an_empty_status_waits():
    seen = look({}, "a", watched_s=0.0)
    assert seen.waiting == ("a",)
    assert "no document" in seen.sentence()


def test_the_last_error_of_a_source_that_did_not_pass_is_told():
    status = {
        "sources": {"a": source(None, idle=31), "b": source(AFTER)},
        "nodes": {"n0": {"report": {"sources": {"a": {"last_error": "timeout"}, "b": {}}}}},
    }
    assert look(status, "a", "b").errors == {"a": "timeout"}


def test_groups_keep_the_order_of_the_file():
    pairs = [("b", "news"), ("c", "board"), ("a", "news")]
    assert grouped(pairs) == {"news": ["b", "a"], "board": ["c"]}
    assert list(grouped(pairs)) == ["news", "board"]


ENTRIES = st.builds(
    source, st.sampled_from([None, BEFORE, AFTER]), st.floats(0, 100), st.integers(0, 50)
)
STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "watermark": st.sampled_from([None, BEFORE, AFTER]),
        "sources": st.dictionaries(st.sampled_from("abcd"), ENTRIES),
        "nodes": st.just({"n0": {"report": {"event_now": NOW}}}),
    },
)


@given(STATUSES, st.lists(st.sampled_from("abcd"), min_size=1, unique=True), st.floats(0, 100))
def test_each_source_is_in_one_state_and_waiting_longer_never_undoes_an_answer(
    status, names, watched
):
    seen = look(status, *names, watched_s=watched)
    assert sorted((*seen.passed, *seen.idle, *seen.waiting)) == sorted(names)
    assert seen.done == (not seen.waiting)
    later = look(status, *names, watched_s=watched + 10)
    assert set(later.waiting) <= set(seen.waiting)


@pytest.mark.parametrize("name", ["a", "한겨레"])
def test_the_sentence_is_one_line(name):
    assert "\n" not in look({"sources": {name: source(BEFORE)}}, name).sentence()


def test_alarms_of_the_group_are_told_and_those_of_others_are_not():
    alarm = {"event": "blocked", "since": BEFORE, "sentence": "it refuses", "node": "n0"}
    status = {"sources": {"a": source(BEFORE)}, "alarms": {"a": alarm, "b": alarm}}
    seen = look(status, "a")
    assert seen.alarms == {"a": {"event": "blocked", "since": BEFORE, "sentence": "it refuses"}}
    assert "alarm: a (blocked)" in seen.sentence()
    assert "alarm" not in look({"sources": {"a": source(BEFORE)}}, "a").sentence()
