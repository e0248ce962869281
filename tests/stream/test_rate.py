from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.errors import ConfigError
from embedding.stream import TokenBucket


def test_a_burst_passes_and_then_the_rate_holds() -> None:
    bucket = TokenBucket(2.0, 3.0)
    assert [bucket.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert bucket.delay(0.0) == 0.5
    assert not bucket.take(0.4)
    assert bucket.take(0.5)


def test_a_large_cost_leaves_a_debt() -> None:
    bucket = TokenBucket(1.0, 2.0)
    assert bucket.take(0.0, 10.0)
    assert bucket.delay(0.0) == 9.0


def test_reservations_queue_up() -> None:
    bucket = TokenBucket(2.0, 1.0)
    assert [bucket.reserve(0.0) for _ in range(4)] == [0.0, 0.5, 1.0, 1.5]


def test_a_clock_that_steps_back_gives_nothing() -> None:
    bucket = TokenBucket(1.0, 1.0, now=100.0)
    assert bucket.take(100.0)
    assert not bucket.take(50.0)
    assert not bucket.take(100.5)
    assert bucket.take(101.0)


@given(
    st.floats(0.1, 100),
    st.floats(1, 50),
    st.lists(st.tuples(st.floats(0, 2), st.floats(0.01, 1)), max_size=60),
)
def test_never_more_than_burst_plus_rate(
    rate: float, burst: float, steps: list[tuple[float, float]]
) -> None:
    bucket, now, passed = TokenBucket(rate, burst), 0.0, 0.0
    for pause, cost in steps:
        now += pause
        passed += cost if bucket.take(now, cost) else 0.0
        assert passed <= burst + rate * now + 1e-6 * len(steps)
        wait = bucket.delay(now, cost)
        assert TokenBucket(rate, burst).take(0.0, cost) or wait > 0


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (float("nan"), 1), (1, 0)])
def test_what_would_never_pass_is_refused(rate: float, burst: float) -> None:
    with pytest.raises(ConfigError, match="rate limiter"):
        TokenBucket(rate, burst)


def test_a_negative_cost_is_refused() -> None:
    for call in (TokenBucket(1, 1).take, TokenBucket(1, 1).reserve):
        with pytest.raises(ConfigError, match="negative"):
            call(0.0, -1.0)
