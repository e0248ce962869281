from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.kernel.clock import EventClock
from embedding.kernel.errors import ConfigError
from generated import examples
from yeoron_simweb.playback import DAY_SECONDS, PlaybackClock, State, Timeline

START = datetime(2020, 1, 1, tzinfo=UTC).timestamp()
WALL = 1_700_000_000.0


def make(
    events: list[float],
    *,
    speed: float = DAY_SECONDS,
    gap: float = DAY_SECONDS / 4,
    backlog: int = 0,
):
    timeline = Timeline.plan(events, speed=speed, longest_gap=gap)
    return PlaybackClock(events, timeline, max_backlog=backlog)


def test_one_day_takes_one_second_at_a_day_per_second() -> None:
    hourly = [START + 3600 * hour for hour in range(24)]
    timeline = Timeline.plan(hourly, speed=DAY_SECONDS, longest_gap=DAY_SECONDS)
    assert timeline.length == pytest.approx(1.0)
    assert timeline.play(START + DAY_SECONDS / 2) == pytest.approx(0.5)
    assert timeline.event(0.25) == pytest.approx(START + DAY_SECONDS / 4)


def test_an_empty_year_passes_quickly() -> None:
    events = [START + DAY_SECONDS / 2, START + 365 * DAY_SECONDS]
    timeline = Timeline.plan(events, speed=DAY_SECONDS, longest_gap=DAY_SECONDS / 4)
    assert timeline.length == pytest.approx(3 * 0.25)
    assert timeline.knots[-1][0] == START + 366 * DAY_SECONDS


def test_nothing_is_published_before_the_start() -> None:
    clock = make([START + 10])
    assert clock.advance(WALL + 1e9) == range(0)
    assert clock.state is State.WAITING
    assert EventClock(clock.knots(WALL)).event_now(WALL + 5) == START


def test_a_document_appears_when_its_moment_comes_and_the_end_is_reached() -> None:
    clock = make([START + DAY_SECONDS / 4, START + DAY_SECONDS / 2], gap=DAY_SECONDS)
    clock.start(WALL)
    assert list(clock.advance(WALL + 0.1)) == []
    assert list(clock.advance(WALL + 0.3)) == [0]
    assert clock.published == pytest.approx([WALL + 0.25])
    assert list(clock.advance(WALL + 9)) == [1]
    assert clock.state is State.DONE
    assert clock.event == START + DAY_SECONDS


def test_a_second_start_and_a_wall_clock_that_steps_back_change_nothing() -> None:
    clock = make([START + DAY_SECONDS / 4, START + DAY_SECONDS / 2], gap=DAY_SECONDS)
    clock.start(WALL)
    clock.advance(WALL + 0.3)
    before = clock.event
    clock.start(WALL + 0.4)
    assert list(clock.advance(WALL)) == []
    assert clock.event == before


def test_the_clock_waits_for_readers_and_goes_on_with_exact_times() -> None:
    events = [START + 3600 * (hour + 1) for hour in range(20)]
    clock = make(events, speed=3600.0, backlog=4)
    clock.start(WALL)
    assert list(clock.advance(WALL + 100)) == [0, 1, 2, 3]
    assert clock.holding
    assert list(clock.advance(WALL + 200, backlog=4)) == []
    # Three quarters of the bound: it goes on, by one document.
    assert list(clock.advance(WALL + 300, backlog=3)) == [4]
    knots = EventClock(clock.knots(WALL + 300))
    for event, wall in zip(events, clock.published, strict=False):
        assert knots.wall(event) == pytest.approx(wall, abs=1e-3)
    assert clock.published[4] >= WALL + 200


def test_planned_knots_reach_to_the_end_while_playing() -> None:
    events = [START + 3600 * (hour + 1) for hour in range(20)]
    clock = make(events, speed=3600.0, gap=DAY_SECONDS)
    clock.start(WALL)
    clock.advance(WALL + 2)
    assert EventClock(clock.knots(WALL + 2)).wall(events[10]) == pytest.approx(WALL + 11)


@pytest.mark.parametrize(("speed", "gap"), [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0)])
def test_a_clock_that_cannot_move_is_refused(speed: float, gap: float) -> None:
    with pytest.raises(ConfigError, match="above 0"):
        Timeline.plan([START], speed=speed, longest_gap=gap)


def test_no_documents_and_unsorted_documents_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        Timeline.plan([], speed=1, longest_gap=1)
    with pytest.raises(ConfigError, match="sorted"):
        make([START + 5, START])


def test_it_plays_no_further_than_it_may_and_then_goes_on() -> None:
    events = [START + 3600 * (hour + 1) for hour in range(20)]
    clock = make(events, speed=3600.0)
    clock.until = events[5] + 1800
    clock.start(WALL)
    assert EventClock(clock.knots(WALL)).event_now(WALL + 100) == clock.until
    assert list(clock.advance(WALL + 100)) == [0, 1, 2, 3, 4, 5]
    assert clock.holding
    assert clock.event == pytest.approx(clock.until)
    assert list(clock.advance(WALL + 200)) == []
    assert EventClock(clock.knots(WALL + 200)).event_now(WALL + 300) == pytest.approx(clock.until)
    clock.until = events[-1] + DAY_SECONDS
    assert list(clock.advance(WALL + 201)) == [6]
    assert clock.published[6] == pytest.approx(WALL + 200.5)
    clock.advance(WALL + 300)
    assert clock.state is State.DONE


steps = st.lists(st.tuples(st.floats(0, 30), st.integers(0, 5), st.integers(0, 30)), max_size=40)
gaps = st.lists(st.floats(0.01, 10 * DAY_SECONDS), min_size=1, max_size=30)


@settings(max_examples=examples(150))
@given(gaps=gaps, steps=steps, speed=st.floats(60, 1e6), backlog=st.integers(0, 6))
def test_whatever_readers_do(
    gaps: list[float], steps: list[tuple[float, int, int]], speed: float, backlog: int
) -> None:
    events = [START + sum(gaps[: n + 1]) for n in range(len(gaps))]
    clock = make(events, speed=speed, backlog=backlog)
    clock.start(WALL)
    wall, fetched, until = WALL, 0, -math.inf
    for delta, reads, allowed in steps:
        wall += delta
        # A reader lets it play to a little after a document, to the end, or no further than before.
        until = max(until, events[allowed] + 1e-4 if allowed < len(events) else clock.until)
        clock.until = until
        before = len(clock.published)
        new = clock.advance(wall, before - fetched)
        assert list(new) == list(range(before, len(clock.published)))
        if backlog:
            assert len(clock.published) - fetched <= backlog
        assert clock.event <= until or until >= clock._timeline.knots[-1][0]
        assert all(event <= until for event in events[before : len(clock.published)])
        fetched = min(fetched + reads, len(clock.published))
        assert all(w <= wall for w in clock.published)
        assert clock.published == sorted(clock.published)
        knots = clock.knots(wall)
        assert knots == sorted(knots)
        assert [w for _, w in knots] == sorted(w for _, w in knots)
        outside = EventClock(knots)
        for event, at in zip(events, clock.published, strict=False):
            assert outside.wall(event) == pytest.approx(at, abs=1e-4)
        assert outside.event_now(wall) == pytest.approx(clock.event, abs=speed * 1e-3)
    if not backlog and until == math.inf and wall - WALL > clock._timeline.length:
        assert len(clock.published) == len(events)


@settings(max_examples=examples(60))
@given(gaps=gaps, backlog=st.integers(1, 6))
def test_readers_that_keep_up_get_everything(gaps: list[float], backlog: int) -> None:
    events = [START + sum(gaps[: n + 1]) for n in range(len(gaps))]
    clock = make(events, speed=DAY_SECONDS, backlog=backlog)
    clock.start(WALL)
    for turn in range(10 * len(events) + 1000):
        clock.advance(WALL + turn, 0)
    assert clock.state is State.DONE
    assert len(clock.published) == len(events)
