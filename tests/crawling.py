"""Running a crawler until it has done what a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from embedding.crawl.crawler import Crawler
from embedding.kernel.records import Document
from waiting import eventually


async def crawl(
    crawler: Crawler,
    enough: Callable[[list[Document]], object],
    seconds: float = 150.0,
    *,
    acknowledge: bool = True,
) -> list[Document]:
    """The documents until `enough` is true of them; it is asked once the crawler has begun."""
    found: list[Document] = []

    async def stop() -> None:
        try:
            await eventually(lambda: crawler.report() and enough(found), crawler.report, seconds)
        finally:
            crawler.stop()

    stopping = asyncio.create_task(stop())
    async for document in crawler.documents():
        found.append(document)
        if acknowledge:
            crawler.acknowledge([document.url])
    await stopping
    return found
