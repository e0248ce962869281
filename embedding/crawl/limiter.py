"""Politeness to one host: how often, how many at once, and when to leave it alone.

`HostLimiter` is a pure state machine (time comes in as an argument); `Gate` is its asyncio shell.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from embedding.kernel.errors import FetchError

_TOLERATED = 3
"""Failures in a row after which a host is left alone for a while."""
_COOL_DOWN = 5.0
_LONGEST = 600.0
LONGEST_ASKED = 86400.0
"""Retry-After is obeyed up to a day; what asks for more is taken for a mistake."""
_PATIENCE = 20.0
"""Seconds that a fetch waits for a host that is left alone before it gives its place away."""
_MOST_HOSTS = 10_000


@dataclass
class HostState:
    """What is known of one host; times are seconds of a monotonic clock."""

    in_flight: int = 0
    next_at: float = 0.0
    blocked_until: float = 0.0
    failures: int = 0


class HostLimiter:
    """Grants requests to hosts."""

    def __init__(self, per_host: int) -> None:
        self._per_host = per_host
        self._hosts: dict[str, HostState] = {}

    def ask(self, host: str, interval: float, now: float, *, single: bool = False) -> float:
        """0 when the request may start now (it is counted), else seconds to wait.

        `interval` is the least time between two starts; `single` allows one request in flight.
        `inf` means: wait for a release.
        """
        state = self._hosts.get(host)
        if state is None:
            self._forget(now)
            state = self._hosts[host] = HostState()
        if state.in_flight >= (1 if single else self._per_host):
            return float("inf")
        wait = max(state.next_at, state.blocked_until) - now
        if wait > 0:
            return wait
        state.in_flight += 1
        state.next_at = now + interval
        return 0.0

    def blocked(self, host: str, now: float) -> float:
        """Seconds for which the host is still left alone."""
        state = self._hosts.get(host)
        return max(0.0, state.blocked_until - now) if state else 0.0

    def release(self, host: str, now: float, *, ok: bool, retry_after: float = 0.0) -> None:
        """A granted request ended; failures in a row make the host rest ever longer."""
        state = self._hosts[host]
        state.in_flight -= 1
        state.failures = 0 if ok else state.failures + 1
        rest = min(retry_after, LONGEST_ASKED)
        if state.failures >= _TOLERATED:
            rest = max(rest, min(_COOL_DOWN * 2 ** (state.failures - _TOLERATED), _LONGEST))
        state.blocked_until = max(state.blocked_until, now + rest)

    def _forget(self, now: float) -> None:
        """Drop hosts that nothing is known of any more, once there are many."""
        if len(self._hosts) < _MOST_HOSTS:
            return
        self._hosts = {
            host: state
            for host, state in self._hosts.items()
            if state.in_flight or max(state.next_at, state.blocked_until) > now
        }


class Gate:
    """Waits for the limiter, then for one of the places that all hosts share."""

    def __init__(self, per_host: int, concurrency: int) -> None:
        self._limiter = HostLimiter(per_host)
        self._places = asyncio.Semaphore(concurrency)
        self._released: dict[str, asyncio.Event] = {}
        """Of the hosts that somebody waits for."""

    @asynccontextmanager
    async def slot(
        self,
        host: str,
        interval: float,
        *,
        single: bool = False,
        patience: float = float("inf"),
    ) -> AsyncIterator[None]:
        """One request to `host`; a FetchError inside counts as the host's failure.

        Raises FetchError when the turn would come too late to wait for it: `host_down` for a
        host that is left alone, `host_busy` for one that asks for long pauses.
        """
        await self._enter(host, interval, single, patience)
        ok, retry_after = True, 0.0
        try:
            async with self._places:
                yield
        except FetchError as error:
            ok, retry_after = error.retry_after is None, error.retry_after or 0.0
            raise
        finally:
            self._limiter.release(host, time.monotonic(), ok=ok, retry_after=retry_after)
            waiting = self._released.pop(host, None)
            if waiting is not None:
                waiting.set()

    async def _enter(self, host: str, interval: float, single: bool, patience: float) -> None:
        while True:
            now = time.monotonic()
            wait = self._limiter.ask(host, interval, now, single=single)
            if wait == 0:
                return
            blocked = self._limiter.blocked(host, now)
            if blocked > _PATIENCE:
                raise FetchError(
                    "host_down", f"{host}: left alone for {blocked:.0f} s.", retry_after=blocked
                )
            if float("inf") > wait > patience:
                raise FetchError(
                    "host_busy", f"{host}: its next turn is in {wait:.0f} s.", retry_after=wait
                )
            if wait == float("inf"):
                await self._released.setdefault(host, asyncio.Event()).wait()
            else:
                await asyncio.sleep(wait)
