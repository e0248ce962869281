import asyncio
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.crawl.fetcher import Gate, HostLimiter
from embedding.kernel.errors import FetchError


@given(
    st.lists(st.tuples(st.sampled_from(["ask", "release", "fail", "wait"]), st.floats(0.0, 2.0))),
    st.integers(1, 3),
    st.floats(0.1, 1.0),
)
def test_neither_rate_nor_concurrency_is_ever_exceeded(
    steps: list[tuple[str, float]], per_host: int, interval: float
) -> None:
    limiter, now, flying, starts = HostLimiter(per_host), 100.0, 0, []
    for step, seconds in steps:
        if step == "ask":
            wait = limiter.ask("h", interval, now)
            if wait == 0:
                flying += 1
                starts.append(now)
            else:
                assert wait > 0
        elif step == "wait":
            now += seconds
        elif flying:
            flying -= 1
            limiter.release("h", now, ok=step == "release")
        assert flying <= per_host
    assert all(b - a >= interval - 1e-9 for a, b in pairwise(starts))


def test_hosts_do_not_wait_for_each_other() -> None:
    limiter = HostLimiter(1)
    assert limiter.ask("a", 1.0, 0.0) == 0
    assert limiter.ask("a", 1.0, 5.0) == math.inf
    assert limiter.ask("b", 1.0, 0.0) == 0


def test_a_host_that_fails_is_left_alone_ever_longer() -> None:
    limiter, now, waits = HostLimiter(1), 0.0, []
    for _ in range(6):
        now += limiter.blocked("h", now)
        assert limiter.ask("h", 0.0, now) == 0
        limiter.release("h", now, ok=False)
        waits.append(limiter.blocked("h", now))
    assert waits == [0, 0, 5, 10, 20, 40]


def test_retry_after_is_obeyed_at_once() -> None:
    limiter = HostLimiter(2)
    assert limiter.ask("h", 0.0, 0.0) == 0
    limiter.release("h", 0.0, ok=False, retry_after=30.0)
    assert limiter.ask("h", 0.0, 10.0) == pytest.approx(20.0)


async def test_the_gate_keeps_the_interval() -> None:
    gate = Gate(5, 5)
    ask = gate._limiter.ask
    granted: list[float] = []

    # What counts is when the gate let them in; on a busy machine they may go on a while later.
    def noted(host: str, interval: float, now: float, *, single: bool) -> float:
        wait = ask(host, interval, now, single=single)
        granted.extend([now] if wait == 0 else [])
        return wait

    gate._limiter.ask = noted  # type: ignore[method-assign]

    async def one() -> None:
        async with gate.slot("h", 0.05):
            pass

    await asyncio.gather(*(one() for _ in range(4)))
    assert len(granted) == 4
    assert all(b - a >= 0.05 - 1e-9 for a, b in pairwise(granted))


async def test_a_single_slot_is_handed_on_and_survives_cancellation() -> None:
    gate, order = Gate(3, 3), []

    async def one(n: int, seconds: float) -> None:
        async with gate.slot("h", 0.0, single=True):
            order.append(n)
            await asyncio.sleep(seconds)

    first = asyncio.create_task(one(0, 30.0))
    await asyncio.sleep(0)
    rest = [asyncio.create_task(one(n, 0.0)) for n in (1, 2)]
    await asyncio.sleep(0.02)
    assert order == [0]
    first.cancel()
    await asyncio.wait_for(asyncio.gather(*rest), 30.0)
    assert order == [0, 1, 2]


async def test_nobody_waits_long_for_a_resting_host() -> None:
    gate = Gate(1, 1)
    with pytest.raises(FetchError):
        async with gate.slot("h", 0.0):
            raise FetchError("http_5xx", "busy", retry_after=120.0)
    with pytest.raises(FetchError) as caught:
        async with gate.slot("h", 0.0):
            pytest.fail("the host was asked to be left alone")
    assert caught.value.reason == "host_down"
    assert caught.value.retry_after == pytest.approx(120.0, abs=60.0)
