"""What was read is recorded in groups: nothing twice, nothing lost, few statements."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from embedding.crawl.frontier import Frontier
from embedding.crawl.services import ArrivalQueue
from embedding.crawl.shingles import NearDuplicates, signature
from embedding.crawl.tables import Fetched


@pytest.fixture
def frontier(tmp_path: Path) -> Iterator[Frontier]:
    found = Frontier(f"sqlite:///{tmp_path}/f.db")
    yield found
    found.close()


@pytest.fixture
def arrivals(frontier: Frontier) -> ArrivalQueue:
    return ArrivalQueue(frontier, NearDuplicates(0.85, 100))


def claimed(frontier: Frontier, n: int) -> list[str]:
    frontier.discover("s", [(f"k{i}", float(i)) for i in range(n)], 1.0)
    return [claim.key for claim in frontier.claim("s", n, 2.0, 900.0)]


def arrival(key: str, text: str = "", *names: str) -> Fetched:
    code = text or None
    sketch = signature(f"{text} 가 나 다 라 마") if text else b""
    return Fetched(key, "s", content_hash=code, sketch=sketch, names=frozenset(names))


async def test_pages_that_come_together_take_one_transaction(
    frontier: Frontier, arrivals: ArrivalQueue
) -> None:
    keys = claimed(frontier, 40)
    begun: list[str] = []
    sa.event.listen(frontier._engine, "begin", lambda _: begun.append("begin"))
    reasons = await asyncio.gather(*(arrivals.resolve(arrival(k, f"h{k}")) for k in keys))
    assert reasons == [None] * 40
    assert len(begun) <= 2, "one look and one write"
    assert frontier.acknowledge(keys, 3.0) == 40


async def test_of_equal_texts_in_one_group_the_first_stays(
    frontier: Frontier, arrivals: ArrivalQueue
) -> None:
    a, b, c = claimed(frontier, 3)
    asked = [arrivals.resolve(arrival(key, "same")) for key in (a, b)]
    assert await asyncio.gather(*asked) == [None, "duplicate"]
    assert await arrivals.resolve(arrival(c, "same")) == "duplicate", "and in a later one"
    assert frontier.backlog(["s"])["s"] == 1


async def test_a_page_that_is_known_by_another_address(
    frontier: Frontier, arrivals: ArrivalQueue
) -> None:
    a, b = claimed(frontier, 2)
    asked = (arrivals.resolve(arrival(a, "", "final")), arrivals.resolve(arrival(b, "", "final")))
    assert await asyncio.gather(*asked) == [None, "duplicate"]


async def test_texts_too_short_to_be_duplicates_are_recorded(
    frontier: Frontier, arrivals: ArrivalQueue
) -> None:
    keys = claimed(frontier, 2)
    assert await asyncio.gather(*(arrivals.resolve(arrival(k)) for k in keys)) == [None, None]
    assert frontier.acknowledge(keys, 3.0) == 2


async def test_who_is_cancelled_has_recorded_nothing(
    frontier: Frontier, arrivals: ArrivalQueue
) -> None:
    a, b = claimed(frontier, 2)
    going, staying = (asyncio.create_task(arrivals.resolve(arrival(k, k))) for k in (a, b))
    await asyncio.sleep(0)
    going.cancel()
    assert await staying is None
    assert frontier.acknowledge([a], 3.0) == 0
    assert frontier.with_content([a, b]) == {b: {b}}


async def test_what_the_database_raises_reaches_everyone_who_waits(
    frontier: Frontier, arrivals: ArrivalQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = claimed(frontier, 2)

    def away(*_: object) -> None:
        raise OSError("the database is away")

    monkeypatch.setattr(frontier, "record", away)
    found = await asyncio.gather(
        *(arrivals.resolve(arrival(key)) for key in keys), return_exceptions=True
    )
    assert [type(each) for each in found] == [OSError, OSError]
    monkeypatch.undo()
    assert await arrivals.resolve(arrival(keys[0])) is None


def test_what_could_not_be_handed_on_is_read_again(frontier: Frontier) -> None:
    (key,) = claimed(frontier, 1)
    frontier.record([Fetched(key, "s", content_hash="h")], [], 3.0)
    frontier.reopen(key)
    assert frontier.with_content(["h"]) == {}
    assert [claim.key for claim in frontier.claim("s", 1, 4.0, 9.0)] == [key]
    frontier.offer("s", [("p#comment-1", 1.0)], 5.0)
    frontier.reopen("p#comment-1")
    assert frontier.offer("s", [("p#comment-1", 1.0)], 6.0) == {"p#comment-1"}


def test_inline_texts_are_offered_in_groups(frontier: Frontier) -> None:
    found = [(f"p#comment-{i}", float(i)) for i in range(500)]
    assert len(frontier.offer("s", found[:300], 5.0)) == 300
    begun: list[str] = []
    sa.event.listen(frontier._engine, "begin", lambda _: begun.append("begin"))
    assert frontier.offer("s", [*found[200:], found[499]], 6.0) == {key for key, _ in found[300:]}
    assert frontier.offer("s", found, 7.0) == set()
    assert len(begun) <= 4
