"""Text preparation outside the crawler's process: masks and morphemes hold up no event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from embedding.kernel.children import Child, Reply
from embedding.kernel.errors import ConfigError, PlatformError
from embedding.kernel.records import Document, TokenBlock
from embedding.text.config import TextConfig
from embedding.text.pool_worker import encode

log = logging.getLogger(__name__)

_WORKER = "embedding.text.pool_worker"
_STARTING = 300.0
"""Seconds that a process may take to load the morpheme analyser."""
_BROKEN = (OSError, EOFError, TimeoutError, ValueError)


class TextPool:
    """`TextPipeline` in `processes` processes of their own, started when they are first needed.

    A batch that takes longer than `limit` seconds, or that ends its process, is tried again one
    document at a time; a document that does it twice is passed on without a word, so that it is
    learnt as nothing instead of stopping the stream. Every process has a cache and new words of its
    own. Used from one event loop; `close` it at the end.
    """

    def __init__(self, config: TextConfig, processes: int, limit: float, *, warm: bool) -> None:
        self._config = config
        self._limit = limit
        self._warm = warm
        self._idle: asyncio.LifoQueue[Child | None] = asyncio.LifoQueue()
        for _ in range(processes):
            self._idle.put_nowait(None)
        self._started: set[Child] = set()
        self._reports: dict[int, dict[str, Any]] = {}
        self.digest = ""
        """That of the latest block."""
        self.given_up = 0
        """Documents that could not be prepared."""

    async def prepare(self) -> None:
        """Start one process.

        Raises ConfigError for settings that cannot work, PlatformError when it dies at once.
        """
        child = await self._take()
        self._idle.put_nowait(child)

    async def block(self, documents: Sequence[Document], available: Sequence[float]) -> TokenBlock:
        """See `TextPipeline.block`; raises ConfigError and PlatformError as `prepare` does."""
        found = await self._try(documents, available)
        if found is not None:
            return found
        log.warning("a batch of %d documents could not be prepared; one by one", len(documents))
        blank = [await self._without_harm([each]) for each in documents]
        found = await self._try(blank, available)
        if found is None:
            raise PlatformError("the text process died of documents that it had prepared before.")
        return found

    async def _without_harm(self, one: Sequence[Document]) -> Document:
        """The document, or the same without text when it ends two processes."""
        for _ in range(2):
            if await self._try(one, [0.0]) is not None:
                return one[0]
        self.given_up += 1
        log.error("%s: its text could not be prepared; it is passed on without a word", one[0].url)
        return replace(one[0], text="", title="")

    async def _try(
        self, documents: Sequence[Document], available: Sequence[float]
    ) -> TokenBlock | None:
        """One attempt; None when it took too long, ended its process, or met a defect."""
        child: Child | None = await self._take()
        try:
            if child is None:  # pragma: no cover  (for the type checker: `_take` gives one)
                return None
            header, body = await self._ask(child, encode(documents, available), self._limit)
            if "defect" in header:
                log.error("text preparation met a defect: %s", header["defect"])
                return None
            return TokenBlock.from_buffer(body)
        except _BROKEN:
            await self._end(child)
            child = None
            return None
        except asyncio.CancelledError:
            # Its answer is still to come and must not be taken for the next batch's.
            if child is not None:
                child.kill()
            child = None
            raise
        finally:
            self._idle.put_nowait(child)

    async def _take(self) -> Child:
        """An idle process, started if need be; whoever takes it puts one back, or None."""
        child = await self._idle.get()
        if child is not None:
            return child
        try:
            return await self._start()
        except BaseException:
            self._idle.put_nowait(None)
            raise

    async def _start(self) -> Child:
        child = await Child.start(_WORKER, quiet=False)
        self._started.add(child)
        try:
            settings = {"config": self._config.model_dump(mode="json"), "warm": self._warm}
            await self._ask(child, settings, _STARTING)
        except _BROKEN as error:
            await self._end(child)
            raise PlatformError(
                f"a text process ended before it was ready ({type(error).__name__}); "
                "is there memory for the morpheme analyser (half a gigabyte)?"
            ) from error
        except BaseException:
            child.kill()
            raise
        return child

    async def _ask(self, child: Child, header: dict[str, Any], limit: float) -> Reply:
        async with asyncio.timeout(limit):
            answer, body = await child.ask(header)
        if "refused" in answer:
            raise ConfigError(answer["refused"])
        if "digest" in answer:
            self.digest = answer["digest"]
            self._reports[child.pid] = answer["report"]
        return answer, body

    async def _end(self, child: Child | None) -> None:
        if child is not None:
            self._started.discard(child)
            await child.end()

    def report(self) -> dict[str, Any]:
        """See `TextPipeline.report`; counters of all processes added up, shares averaged."""
        reports = list(self._reports.values())
        return {**merged(reports), "given_up": self.given_up} if reports else {}

    async def close(self) -> None:
        """End all processes."""
        await asyncio.gather(*map(self._end, list(self._started)), return_exceptions=True)


def merged(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One report of several: numbers are added, shares (floats) averaged, names taken as they are.

    Words that several processes met count for each of them.
    """
    result: dict[str, Any] = {}
    for name in dict.fromkeys(name for report in reports for name in report):
        values = [report[name] for report in reports if name in report]
        if isinstance(values[0], dict):
            result[name] = merged(values)
        elif isinstance(values[0], float):
            result[name] = sum(values) / len(values)
        elif isinstance(values[0], int):
            result[name] = sum(values)
        else:
            result[name] = values[-1]
    return result
