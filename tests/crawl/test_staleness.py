"""Silence raises an alarm with a name, and Poisson sources with days and nights raise none."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.crawl.config import CrawlConfig
from embedding.crawl.staleness import DiurnalRate, Event, YieldWatch
from generated import examples

DAY = 86400.0
START = 1_600_000_000.0
CONFIG = CrawlConfig()
EVERY = 600.0


def rate(t: float, a_day: float) -> float:
    """Items a second: quiet nights, busy days, calm weekends."""
    hour, weekday = (t / 3600) % 24, int(t // DAY + 3) % 7
    share = 0.02 if hour < 6 else 0.4 if hour < 8 else 1.6 if hour < 20 else 0.8
    return a_day / DAY * share * (0.4 if weekday >= 5 else 1.0)


def live(
    watch: YieldWatch,
    a_day: float,
    days: float,
    rng: np.random.Generator,
    *,
    start: float = START,
    left: float = 1.0,
    burst: float = 0.0,
) -> list[tuple[float, Event]]:
    """Polls for some days; when which alarm was raised, in days from START."""
    found, t = [], start
    while t < start + days * DAY:
        t += EVERY * rng.uniform(1.0, 2.0)
        mean = left * rate(t, a_day) * EVERY * 1.5
        if burst and mean:
            mean *= rng.gamma(1 / burst, burst)
        before = sum(watch.raised.values())
        new = int(rng.poisson(mean))
        watch.polled(t, new, 30 if new else None)
        if sum(watch.raised.values()) > before and watch.alarm is not None:
            found.append(((t - START) / DAY, watch.alarm.event))
    return found


@pytest.mark.parametrize("a_day", [3, 30, 300, 3000])
@pytest.mark.parametrize("burst", [0.0, 1.0])
def test_poisson_sources_with_days_and_nights_raise_no_alarm(a_day: float, burst: float) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        assert live(YieldWatch("UTC", EVERY, CONFIG), a_day, 28, rng, burst=burst) == []


@pytest.mark.parametrize(("a_day", "within_hours"), [(10, 120), (40, 48), (300, 24), (3000, 12)])
@pytest.mark.parametrize("left", [0.0, 0.02])
def test_a_source_that_dies_is_noticed(a_day: float, within_hours: float, left: float) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        watch = YieldWatch("UTC", EVERY, CONFIG)
        assert live(watch, a_day, 15.4, rng) == []
        found = live(watch, a_day, 7, rng, start=START + 15.4 * DAY, left=left)
        assert found
        assert found[0][1] is Event.EMPTY
        assert (found[0][0] - 15.4) * 24 < within_hours
        assert watch.raised == {"empty": 1}


def test_the_alarm_ends_when_items_come_again() -> None:
    rng = np.random.default_rng(1)
    watch = YieldWatch("UTC", EVERY, CONFIG)
    live(watch, 300, 10, rng)
    live(watch, 300, 2, rng, start=START + 10 * DAY, left=0.0)
    assert watch.alarm is not None
    live(watch, 300, 1, rng, start=START + 12 * DAY)
    assert watch.alarm is None
    assert watch.raised == {"empty": 1}


def test_what_lasts_for_a_week_becomes_usual() -> None:
    rng = np.random.default_rng(1)
    watch = YieldWatch("UTC", EVERY, CONFIG)
    live(watch, 300, 10, rng)
    live(watch, 300, 30, rng, start=START + 10 * DAY, left=0.03)
    assert watch.alarm is None
    assert watch.raised == {"empty": 1}


@pytest.mark.parametrize(
    ("reason", "event"),
    [
        ("http_4xx", Event.BLOCKED),
        ("robots", Event.BLOCKED),
        ("robots_unreadable", Event.BLOCKED),
        ("timeout", Event.UNREACHABLE),
        ("dns", Event.UNREACHABLE),
        ("http_5xx", Event.UNREACHABLE),
        ("parse", Event.PAGE_CHANGED),
    ],
)
def test_polls_that_fail_have_a_name_and_one_good_poll_ends_it(reason: str, event: Event) -> None:
    watch = YieldWatch("UTC", EVERY, CONFIG)
    for n in range(4):
        watch.poll_failed(START + n, reason)
    assert watch.alarm is None
    watch.poll_failed(START + 5, reason)
    assert watch.alarm is not None
    assert watch.alarm.event is event
    assert reason in watch.alarm.sentence
    watch.poll_failed(START + 6, reason)
    assert watch.raised == {event.value: 1}
    watch.polled(START + 7, 0, None)
    assert watch.alarm is None


def test_a_listing_that_names_nothing_and_pages_without_text_have_changed() -> None:
    watch = YieldWatch("UTC", EVERY, CONFIG)
    watch.polled(START, 10, 10)
    for n in range(1, 6):
        watch.polled(START + n, 0, 0)
    assert watch.alarm is not None
    assert watch.alarm.event is Event.PAGE_CHANGED
    watch.polled(START + 10, 1, 10)
    assert watch.alarm is None
    for n in range(20):
        watch.page(START + 11 + n, "empty")
    assert watch.alarm is not None
    assert watch.alarm.event is Event.PAGE_CHANGED
    watch.page(START + 40, None)
    assert watch.alarm is None


def test_an_unchanged_listing_is_no_empty_listing() -> None:
    watch = YieldWatch("UTC", EVERY, CONFIG)
    watch.polled(START, 10, 10)
    for n in range(1, 50):
        watch.polled(START + n, 0, None)
    assert watch.alarm is None


moments = st.floats(0.0, 4 * DAY, allow_nan=False)
happenings = st.lists(
    st.one_of(
        st.tuples(st.just("polled"), moments, st.integers(0, 5000), st.none() | st.integers(0, 99)),
        st.tuples(st.just("failed"), moments, st.sampled_from(["dns", "http_4xx", "parse", "odd"])),
        st.tuples(st.just("page"), moments, st.none() | st.sampled_from(["empty", "robots"])),
    ),
    max_size=60,
)


@settings(max_examples=examples(150))
@given(happenings, st.sampled_from(["UTC", "Asia/Seoul", "America/New_York"]))
def test_whatever_happens_the_watch_stays_sound(steps: list[tuple], zone: str) -> None:
    """Times may stand still or jump; an alarm is always one of the four and was counted."""
    watch, t, failures = YieldWatch(zone, EVERY, CONFIG), START, 0
    for kind, later, *rest in steps:
        t += later
        if kind == "polled":
            watch.polled(t, rest[0], rest[1])
            failures = 0
        elif kind == "failed":
            watch.poll_failed(t, rest[0])
            failures += 1
        else:
            watch.page(t, rest[0])
        assert math.isfinite(watch._evidence)
        assert watch._evidence >= 0
        if failures >= 5:
            assert watch.alarm is not None
        if watch.alarm is not None:
            assert watch.raised[watch.alarm.event.value] >= 1
            assert START <= watch.alarm.since <= t


@given(moments, moments, st.integers(0, 1000))
def test_what_is_expected_adds_up(a: float, b: float, items: int) -> None:
    diurnal = DiurnalRate("Asia/Seoul")
    diurnal.saw(START, START + 3 * DAY, items)
    first, last = START + 4 * DAY + min(a, b), START + 4 * DAY + max(a, b)
    middle = (first + last) / 2
    whole = diurnal.expected(first, last)
    parts = diurnal.expected(first, middle) + diurnal.expected(middle, last)
    assert whole == pytest.approx(parts, rel=1e-6, abs=1e-6)
    assert whole >= 0


def test_a_restart_forgets_nothing_of_what_is_usual() -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        first = YieldWatch("Asia/Seoul", EVERY, CONFIG)
        live(first, 300, 9.6, rng)
        second = YieldWatch("Asia/Seoul", EVERY, CONFIG)
        second.restore(json.loads(json.dumps(first.state())), 600.0)
        assert second._diurnal.items == pytest.approx(first._diurnal.items, rel=1e-3)
        assert second._diurnal.mean == pytest.approx(first._diurnal.mean, rel=1e-3)
        assert second._diurnal.dispersion == first._diurnal.dispersion
        # The source died while nobody watched: it is noticed as soon as one that was watched on.
        start = START + 9.6 * DAY + 600
        found = live(second, 300, 2, rng, start=start, left=0.0)
        assert [event for _, event in found] == [Event.EMPTY]
        rng = np.random.default_rng(seed)
        assert not live(YieldWatch("Asia/Seoul", EVERY, CONFIG), 300, 2, rng, start=start, left=0.0)


def test_a_restart_in_the_middle_of_a_silence_goes_on_with_it() -> None:
    rng = np.random.default_rng(4)
    first = YieldWatch("UTC", EVERY, CONFIG)
    live(first, 300, 10, rng)
    start, steps = START + 10 * DAY, 0.01
    while first._evidence < CONFIG.silence_evidence / 2:
        live(first, 300, steps, rng, start=start, left=0.0)
        start += steps * DAY
    second = YieldWatch("UTC", EVERY, CONFIG)
    second.restore(first.state(), 3600.0)
    assert second._evidence == first._evidence
    assert second._quiet_since == first._quiet_since + 3600.0


@settings(max_examples=examples(60))
@given(
    st.dictionaries(
        st.sampled_from(["diurnal", "evidence", "quiet_since", "listed"]),
        st.none()
        | st.floats()
        | st.booleans()
        | st.text(max_size=3)
        | st.dictionaries(
            st.sampled_from(["zone", "items", "seconds", "open", "bursts"]),
            st.just("UTC") | st.lists(st.floats() | st.text(max_size=2), max_size=48),
        ),
    ),
    st.floats(0, 1e9),
)
def test_a_state_that_is_not_whole_does_no_harm(state: dict, away: float) -> None:
    watch = YieldWatch("UTC", EVERY, CONFIG)
    watch.restore(state, away)
    watch.polled(START, 3, 3)
    watch.polled(START + 60, 3, 3)
    assert watch.alarm is None
    json.dumps(watch.state(), allow_nan=False)


def test_evidence_without_what_is_usual_is_no_silence() -> None:
    """Found by exploring: it raised an alarm of a silence since 1970."""
    watch = YieldWatch("UTC", EVERY, CONFIG)
    watch.restore({"diurnal": None, "evidence": 14.0, "quiet_since": 0.0}, 0.0)
    watch.polled(START, 3, 3)
    watch.polled(START + 60, 3, 3)
    assert watch.alarm is None


def test_another_time_zone_learns_its_hours_anew() -> None:
    first = YieldWatch("UTC", EVERY, CONFIG)
    live(first, 300, 3, np.random.default_rng(1))
    second = YieldWatch("Asia/Seoul", EVERY, CONFIG)
    second.restore(first.state(), 1.0)
    assert second._diurnal.items == 0
