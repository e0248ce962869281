"""Parts of the rendering that need no browser."""

from __future__ import annotations

import asyncio

import pytest

from embedding.crawl.browser import Slots, StaticFiles
from embedding.crawl.fetcher import Response


async def test_one_alone_waits_for_the_others_and_holds_the_next_back() -> None:
    slots = Slots(2)
    inside: set[str] = set()
    order: list[str] = []

    async def visit(name: str, alone: bool) -> None:
        async with slots.take(2 if alone else 1):
            inside.add(name)
            order.append(name)
            assert len(inside) == 1 if alone or "alone" in inside else len(inside) <= 2
            await asyncio.sleep(0.01)
            inside.discard(name)

    names = ["a", "b", "c", "alone", "d", "e"]
    await asyncio.wait_for(asyncio.gather(*(visit(n, n == "alone") for n in names)), 60)
    assert order == names


async def test_a_cancelled_wait_gives_its_places_back() -> None:
    slots = Slots(2)
    async with slots.take(1):
        waiting = asyncio.create_task(slots.take(2).__aenter__())
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(60), slots.take(1):
            pass
    async with asyncio.timeout(60), slots.take(2):
        pass


def answer(size: int, **headers: str) -> Response:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return Response("http://e.org/a.js", 200, named, b"x" * size)


def test_scripts_are_kept_as_long_as_they_say_and_for_one_source() -> None:
    now = 0.0
    files = StaticFiles(timer=lambda: now)
    files.keep("s", "a", answer(10, cache_control="public, max-age=60"))
    for control in ("no-store", "no-cache", "private, max-age=9", "max-age=0"):
        files.keep("s", "b", answer(10, cache_control=control))
        assert files.get(("s", "b")) is None
    files.keep("s", "c", answer(10))
    now = 59.0
    assert files.get(("s", "a")) is not None
    assert files.get(("other", "a")) is None
    now = 60.0
    assert files.get(("s", "a")) is None
    now = 100.0
    assert files.get(("s", "c")) is not None
    now = 1000.0
    assert files.get(("s", "c")) is None


def test_the_memory_of_scripts_is_bounded() -> None:
    files = StaticFiles(limit=100)
    for n in range(50):
        files.keep("s", str(n), answer(25))
        files.get(("s", "0"))
        assert files.currsize <= 100
    assert files.get(("s", "0")) is not None
    assert files.get(("s", "1")) is None
    files.keep("s", "big", answer(26))
    assert files.get(("s", "big")) is None
