"""A crawler that ends leaves nothing running: what goes on would rob the crawler after it.

Each test cancels at every point shortly after the moment in which a wait ends by itself, as there
a cancellation can get lost (`asyncio.wait_for` before Python 3.12).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from embedding.crawl.crawler import _end
from embedding.crawl.extractor import Extractor
from embedding.crawl.frontier import Frontier
from embedding.crawl.runner import SourceRunner
from embedding.crawl.services import Services, make_pseudonyms
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import make_adapter

STEPS = range(8)
"""How many turns of the event loop pass between the end of a wait and the cancellation."""


async def turns(n: int) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


async def cancelled(task: asyncio.Task[None]) -> bool:
    """Whether a task ends once it is told to; a failing test must not leave it behind either."""
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=10.0)
    while not task.done():
        task.cancel()
        await turns(5)
    return bool(done) and task.cancelled()


@pytest.fixture
def runner(quick: Any, tmp_path: Path) -> Iterator[SourceRunner]:
    frontier = Frontier(f"sqlite:///{tmp_path}/frontier.db")
    config = quick()
    source = SourceConfig(name="s", kind="page", url="http://127.0.0.1:1/list")
    adapter = make_adapter(source, make_pseudonyms(config))
    yield SourceRunner(adapter, Services(config, frontier))
    frontier.close()


@pytest.mark.parametrize("steps", STEPS)
async def test_fetching_ends_when_news_come_as_it_is_cancelled(
    runner: SourceRunner, steps: int
) -> None:
    fetching = asyncio.create_task(runner.fetch_forever())
    await turns(10)
    runner._wake.set()
    await turns(steps)
    assert await cancelled(fetching)


@pytest.mark.parametrize("steps", STEPS)
async def test_extraction_is_cancelled_even_as_its_answer_comes(steps: int) -> None:
    extractor = Extractor(0, 20.0, 50_000)
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def exchange() -> str:
        return await answer

    async def work() -> None:
        await extractor._within(exchange(), "http://example.org/", 0.0)
        await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await turns(3)
    answer.set_result("page")
    await turns(steps)
    assert await cancelled(working)


async def test_a_task_that_loses_a_cancellation_is_told_again() -> None:
    told = 0

    async def deaf() -> None:
        nonlocal told
        while told < 3:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told += 1

    task = asyncio.create_task(deaf())
    await turns(1)
    await _end([task])
    ended = task.done()
    while not task.done():
        task.cancel()
        await turns(1)
    assert ended
    assert told == 3
