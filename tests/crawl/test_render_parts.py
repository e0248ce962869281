"""Parts of the rendering that need no browser."""

from __future__ import annotations

import asyncio

import pytest

from embedding.crawl.browser import Slots, StaticFiles
from embedding.crawl.fetcher import Response


async def test_one_alone_waits_for_the_others_and_holds_the_next_back() -> None:
    places = Slots(2)
    inside: set[str] = set()
    order: list[str] = []

    async def visit(name: str, alone: bool) -> None:
        async with places.every() if alone else places.one():
            inside.add(name)
            order.append(name)
            assert len(inside) == 1 if alone or "alone" in inside else len(inside) <= 2
            await asyncio.sleep(0.01)
            inside.discard(name)

    names = ["a", "b", "c", "alone", "d", "e"]
    await asyncio.wait_for(asyncio.gather(*(visit(n, n == "alone") for n in names)), 60)
    assert order == names


async def test_a_cancelled_wait_gives_its_places_back() -> None:
    places = Slots(2)
    async with places.one():
        waiting = asyncio.create_task(places.every().__aenter__())
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(60), places.one():
            pass
    async with asyncio.timeout(60), places.every():
        pass


def answer(size: int, **headers: str) -> Response:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return Response("http://e.org/a.js", 200, named, b"x" * size)


def test_scripts_are_kept_as_long_as_they_say_and_for_one_source() -> None:
    files = StaticFiles()
    files.put("s", "a", answer(10, cache_control="public, max-age=60"), now=0.0)
    assert files.get("s", "a", 59.0) is not None
    assert files.get("other", "a", 1.0) is None
    assert files.get("s", "a", 60.0) is None
    for control in ("no-store", "no-cache", "private, max-age=9", "max-age=0"):
        files.put("s", "b", answer(10, cache_control=control), now=0.0)
        assert files.get("s", "b", 0.0) is None
    files.put("s", "c", answer(10), now=0.0)
    assert files.get("s", "c", 100.0) is not None
    assert files.get("s", "c", 1000.0) is None


def test_the_memory_of_scripts_is_bounded() -> None:
    files = StaticFiles(limit=100)
    for n in range(50):
        files.put("s", str(n), answer(25), now=0.0)
        files.get("s", "0", 0.0)
        assert files._size <= 100
    assert files.get("s", "0", 0.0) is not None
    assert files.get("s", "1", 0.0) is None
    files.put("s", "big", answer(26), now=0.0)
    assert files.get("s", "big", 0.0) is None
