"""Places in a browser: several pages at once, or one alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    """`n` places, given out in the order in which they are asked for."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._free = asyncio.Semaphore(n)
        self._next = asyncio.Lock()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """One place beside others."""
        async with self._next:
            await self._free.acquire()
        try:
            yield
        finally:
            self._free.release()

    @asynccontextmanager
    async def every(self) -> AsyncIterator[None]:
        """All places: nobody else has one meanwhile."""
        taken = 0
        try:
            async with self._next:
                while taken < self._n:
                    await self._free.acquire()
                    taken += 1
            yield
        finally:
            for _ in range(taken):
                self._free.release()
