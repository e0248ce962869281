"""The clock of a web that plays back the past."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx

from embedding.kernel.clock import EventClock

log = logging.getLogger(__name__)


def read_clock(data: Any) -> EventClock:
    """`{"knots": [[event, wall], …]}` as a clock; raises ValueError."""
    knots = data.get("knots") if isinstance(data, dict) else None
    if not isinstance(knots, list):
        raise ValueError("no list `knots`")
    try:
        pairs = sorted((float(event), float(wall)) for event, wall in knots)
    except TypeError as error:
        raise ValueError("knots are not pairs of numbers") from error
    return EventClock(tuple(pairs))


class ReplayClock:
    """Reads the clock's address again and again; identity when there is none."""

    def __init__(self, url: str | None, every: float) -> None:
        self._url = url
        self._every = every
        self._warned = False
        self.now = EventClock()
        """The latest clock."""

    async def follow(self) -> None:
        """Read until cancelled; while the address fails, the clock read last stays."""
        if self._url is None:
            return
        # The simulation's own control address: no robots, no rate, and loopback is its place.
        async with httpx.AsyncClient(timeout=5.0, trust_env=False) as client:
            while True:
                await self._read(client, self._url)
                await asyncio.sleep(self._every)

    async def _read(self, client: httpx.AsyncClient, url: str) -> None:
        try:
            answer = await client.get(url)
            answer.raise_for_status()
            self.now = read_clock(answer.json())
            self._warned = False
        except (httpx.HTTPError, ValueError) as error:
            if not self._warned:
                log.warning("replay clock %s: not readable (%s)", url, type(error).__name__)
            self._warned = True

    async def first(self) -> None:
        """Read once, so that the first documents are judged by the right time."""
        if self._url is not None:
            async with httpx.AsyncClient(timeout=5.0, trust_env=False) as client:
                await self._read(client, self._url)
