"""Extraction outside the event loop: in worker processes, or in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from embedding.crawl.extract import Extracted, read_page
from embedding.crawl.extract_worker import HEADER, decode, pack, unpack
from embedding.errors import FetchError

T = TypeVar("T")

_ROOT = str(Path(__file__).resolve().parents[2])
_STARTING = 60.0
"""Seconds more that the first page of a process may take: it loads its libraries."""
_ENDING = 2.0


class Extractor:
    """Runs `read_page` in `processes` processes of their own; with 0 in a thread.

    A page that takes longer than `limit` seconds, or that kills its process, is refused by
    itself; its process is replaced.
    """

    def __init__(self, processes: int, limit: float) -> None:
        self._processes = processes
        self._limit = limit
        self._idle: asyncio.LifoQueue[Process | None] = asyncio.LifoQueue()
        for _ in range(max(1, processes)):
            self._idle.put_nowait(None)
        self._started: set[Process] = set()

    async def extract(self, body: bytes, content_type: str, url: str, zone: str) -> Extracted:
        """See `read_page`; raises FetchError (`bad_encoding`, `empty`, `parse`)."""
        process = await self._idle.get()
        try:
            if self._processes == 0:
                call = asyncio.to_thread(read_page, body, content_type, url, zone)
                return await self._within(call, url, 0.0)
            extra = 0.0
            if process is None:
                process, extra = await self._start(), _STARTING
            ask = pack({"type": content_type, "url": url, "zone": zone}, body)
            return decode(await self._within(_exchange(process, ask), url, extra))
        except FetchError as error:
            if error.reason == "extraction":
                await self._end(process)
                process = None
                raise FetchError("parse", str(error)) from error
            raise
        except (OSError, EOFError, ValueError) as error:
            await self._end(process)
            process = None
            raise FetchError("parse", f"{url}: the page ended its extraction process.") from error
        except asyncio.CancelledError:
            # Its answer is still to come and must not be taken for the next page's.
            _kill(process)
            process = None
            raise
        finally:
            self._idle.put_nowait(process)

    async def _within(self, call: Awaitable[T], url: str, extra: float) -> T:
        # Not `asyncio.wait_for`, which may drop a cancellation (see SourceRunner._wait).
        try:
            async with asyncio.timeout(self._limit + extra):
                return await call
        except TimeoutError as error:
            raise FetchError(
                "extraction", f"{url}: extraction took longer than {self._limit:g} s."
            ) from error

    async def _start(self) -> Process:
        path = os.pathsep.join(filter(None, (_ROOT, os.environ.get("PYTHONPATH"))))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "embedding.crawl.extract_worker",
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._started.add(process)
        return process

    async def _end(self, process: Process | None) -> None:
        """Kill a process and wait until it is gone."""
        if process is not None:
            _kill(process)
            self._started.discard(process)
            # Reading to the end closes the pipes too, before the loop goes. On a busy machine a
            # killed process may take longer to go; nobody needs to wait for that.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ENDING):
                    await process.communicate()

    async def close(self) -> None:
        """End all processes."""
        await asyncio.gather(*map(self._end, list(self._started)), return_exceptions=True)


def _kill(process: Process | None) -> None:
    if process is not None and process.returncode is None:
        process.kill()


async def _exchange(process: Process, ask: bytes) -> dict[str, object]:
    """Send one frame and read the answer; raises OSError or EOFError when the process ended."""
    if process.stdin is None or process.stdout is None:
        raise EOFError("the process has no pipes")
    process.stdin.write(ask)
    await process.stdin.drain()
    length, _ = HEADER.unpack(await process.stdout.readexactly(HEADER.size))
    return unpack(await process.stdout.readexactly(length))
