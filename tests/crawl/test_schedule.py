from hypothesis import given
from hypothesis import strategies as st

from embedding.crawl.schedule import PollSchedule


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.floats(0.1, 100))
def test_delays_stay_between_every_and_the_slowest(changes: list[bool], every: float) -> None:
    schedule = PollSchedule(every, 4.0)
    for changed in changes:
        delay = schedule.polled(changed, every)
        assert every <= delay <= every * 4.0


def test_a_busy_source_is_polled_often_and_a_quiet_one_seldom() -> None:
    busy, quiet = PollSchedule(10.0, 4.0), PollSchedule(10.0, 4.0)
    for _ in range(20):
        often, seldom = busy.polled(True, 10.0), quiet.polled(False, 10.0)
    assert (often, seldom) == (10.0, 40.0)
    for _ in range(4):
        seldom = quiet.polled(True, 40.0)
    assert seldom < 40.0


def test_failures_double_the_delay_and_success_forgets_them() -> None:
    schedule = PollSchedule(1.0, 4.0)
    assert [schedule.failed(0.0) for _ in range(6)] == [1, 2, 4, 8, 16, 16]
    assert schedule.failed(100.0) == 100.0
    schedule.polled(True, 1.0)
    assert schedule.failed(0.0) == 1.0
