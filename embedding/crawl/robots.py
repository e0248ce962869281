"""robots.txt as RFC 9309 says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from protego import Protego

from embedding.crawl.addresses import origin_of
from embedding.errors import FetchError

MAX_BYTES = 500 * 1024
"""RFC 9309 section 2.5: at least this much of a robots.txt is read; the rest is ignored."""
_RETRY = 300.0
"""Seconds for which an unreachable robots.txt forbids everything before it is asked again."""
_MOST_ORIGINS = 10_000


@dataclass(frozen=True)
class Verdict:
    """Whether an address may be fetched, and the seconds to keep between two requests."""

    allowed: bool
    crawl_delay: float
    retry_after: float | None = None


@dataclass(frozen=True)
class _Rules:
    parsed: Protego | None
    expires: float


class Robots:
    """Asks each origin once a day. `get` fetches a robots.txt: (status, text) or FetchError."""

    def __init__(
        self, agent: str, ttl: float, get: Callable[[str], Awaitable[tuple[int, str]]]
    ) -> None:
        self._agent = agent
        self._ttl = ttl
        self._get = get
        self._rules: dict[str, _Rules] = {}
        self._asking: dict[str, asyncio.Lock] = {}

    async def verdict(self, url: str) -> Verdict:
        """What robots.txt says of `url`; a server that fails forbids all for some minutes."""
        rules = await self._of(origin_of(url))
        if rules.parsed is None:
            return Verdict(False, 0.0, retry_after=max(1.0, rules.expires - time.monotonic()))
        delay = float(rules.parsed.crawl_delay(self._agent) or 0.0)
        rate = rules.parsed.request_rate(self._agent)
        if rate is not None and rate.requests:
            delay = max(delay, rate.seconds / rate.requests)
        return Verdict(bool(rules.parsed.can_fetch(url, self._agent)), delay)

    async def _of(self, origin: str) -> _Rules:
        known = self._rules.get(origin)
        if known is not None and known.expires > time.monotonic():
            return known
        async with self._asking.setdefault(origin, asyncio.Lock()):
            known = self._rules.get(origin)
            if known is not None and known.expires > time.monotonic():
                return known
            if len(self._rules) >= _MOST_ORIGINS:
                self._rules.pop(next(iter(self._rules)))
            self._rules[origin] = rules = await self._ask(origin)
            return rules

    async def _ask(self, origin: str) -> _Rules:
        now = time.monotonic()
        try:
            status, text = await self._get(f"{origin}/robots.txt")
        except FetchError as error:
            if error.reason == "private_address":
                raise
            return _Rules(None, now + _RETRY)
        if status >= 500 or status == 429:
            return _Rules(None, now + _RETRY)
        if status >= 400:
            text = ""
        return _Rules(await asyncio.to_thread(Protego.parse, text), now + self._ttl)
