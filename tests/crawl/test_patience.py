"""The frontier's database is away, locked, full or unwritable: calls wait, and nothing is lost."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.crawl.services import ArrivalQueue
from embedding.crawl.shingles import NearDuplicates
from embedding.crawl.tables import Fetched
from embedding.database import patience
from embedding.database.patience import LONGEST, Outage, Patience, opened
from embedding.kernel.errors import ConfigError
from embedding.sources.config import SourceConfig
from frontiers import FULL_DISKS, TROUBLES_OF_ANY_WRITE, TroubledDatabase, troubled
from pgserver import running_postgres
from waiting import eventually


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses, and connections that do not wait for a lock of ten seconds."""
    monkeypatch.setattr(patience, "_SHORTEST", 0.01)
    monkeypatch.setattr(patience, "LONGEST", 0.05)


def quickly(frontier: Frontier) -> Frontier:
    """Its connections give a lock up soon."""
    if frontier._engine.dialect.name != "sqlite":
        return frontier
    sa.event.listen(
        frontier._engine, "begin", lambda c: c.exec_driver_sql("PRAGMA busy_timeout=20")
    )
    sa.event.listen(frontier._engine, "connect", lambda c, _: c.execute("PRAGMA busy_timeout=20"))
    frontier._engine.dispose()
    return frontier


@pytest.fixture
def troubled_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TroubledDatabase]:
    with troubled(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def frontier(troubled_database: TroubledDatabase) -> Iterator[Frontier]:
    found = quickly(Frontier(troubled_database.address))
    yield found
    found.close()


AWAY = pytest.mark.parametrize("troubled_database", TROUBLES_OF_ANY_WRITE, indirect=True)
FULL = pytest.mark.parametrize("troubled_database", FULL_DISKS, indirect=True)


async def away(found: Patience) -> None:
    """Until it is known that the database does not answer."""
    await eventually(lambda: found.away)


def test_pauses_grow_to_a_bound_and_an_outage_is_told_from_the_next() -> None:
    outage = Outage().failed(100.0)
    pauses = []
    for _ in range(40):
        pauses.append(outage.pause)
        outage = outage.failed(110.0)
    assert pauses == sorted(pauses)
    assert pauses[-1] <= LONGEST
    assert outage.lasting(130.0) == 30.0
    after = outage.answered(140.0)
    assert (after.lasting(150.0), after.total(150.0)) == (0.0, 40.0)
    assert after.failed(160.0).total(165.0) == 45.0


@AWAY
async def test_a_database_that_is_away_is_waited_for_and_told_of_once(
    frontier: Frontier, troubled_database: TroubledDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    frontier.discover("s", [(f"k{i}", float(i)) for i in range(6)], 1.0)
    keys = [claim.key for claim in frontier.claim("s", 6, 2.0, 900.0)]
    frontier.record([Fetched(key, "s") for key in keys], [], 3.0)
    waiting = Patience()
    before = waiting.clock()
    with troubled_database.trouble():
        asked = [
            asyncio.create_task(waiting.ask(frontier.acknowledge, [key], 4.0, aside=at % 2 > 0))
            for at, key in enumerate(keys)
        ]
        await away(waiting)
        assert waiting.attempt(frontier.backlog, ["s"]) is None, "what can be left out is"
        assert not any(task.done() for task in asked)
    assert await asyncio.gather(*asked) == [1] * 6, "each counted once"
    assert waiting.away == 0.0
    assert waiting.attempt(frontier.backlog, ["s"]) == {"s": 0}
    told = [record.getMessage() for record in caplog.records]
    assert len([line for line in told if "does not answer" in line]) == 1
    assert len([line for line in told if "answers again" in line]) == 1
    assert any(code in told[0] for code in troubled_database.codes), told[0]
    assert waiting.clock() >= before


@pytest.mark.parametrize("wrong", ["SELECT nothing FROM nowhere", "INSERT INTO frontier_pool"])
async def test_what_waiting_cannot_mend_is_raised(database: str, wrong: str) -> None:
    frontier = Frontier(database)

    def ask() -> None:
        with frontier._engine.begin() as connection:
            connection.exec_driver_sql(wrong)

    waiting = Patience()
    with pytest.raises(sa.exc.DBAPIError):
        await waiting.ask(ask)
    assert waiting.away == 0.0
    frontier.close()


@FULL
async def test_a_full_disk_is_waited_for(
    frontier: Frontier, troubled_database: TroubledDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = Patience()
    rows = [(f"http://example.org/{'long' * 50}/{i}", float(i)) for i in range(300)]
    with troubled_database.trouble():
        asked = asyncio.create_task(waiting.ask(frontier.discover, "s", rows, 1.0))
        await away(waiting)
    assert await asked == 300
    assert frontier.backlog(["s"])["s"] == 300
    assert any(code in caplog.text for code in troubled_database.codes), caplog.text


def test_an_offer_that_may_have_been_taken_is_taken_once(database: str) -> None:
    frontier = Frontier(database)
    rows = [("c1", 1.0), ("c2", 2.0)]
    assert frontier.offer("s", rows, 5.0) == {"c1", "c2"}
    # Its answer was lost: asked again it is the same one, and nobody else's.
    assert frontier.offer("s", rows, 5.0, again=True) == {"c1", "c2"}
    assert frontier.offer("s", rows, 6.0) == frozenset()
    assert frontier.offer("s", rows, 6.0, again=True) == frozenset()
    frontier.acknowledge(["c1"], 7.0)
    assert frontier.offer("s", rows, 5.0, again=True) == {"c2"}
    frontier.close()


@AWAY
async def test_who_gave_up_while_the_database_was_away_has_recorded_nothing(
    frontier: Frontier, troubled_database: TroubledDatabase
) -> None:
    waiting = Patience()
    arrivals = ArrivalQueue(frontier, NearDuplicates(0.85, 100), waiting)
    frontier.discover("s", [("k1", 1.0), ("k2", 2.0)], 1.0)
    keys = [claim.key for claim in frontier.claim("s", 2, 2.0, 900.0)]
    with troubled_database.trouble():
        first, second = (asyncio.create_task(arrivals.resolve(Fetched(key, "s"))) for key in keys)
        await away(waiting)
        first.cancel()
        await asyncio.wait({first})
    assert await second is None
    assert frontier.acknowledge(keys, 9.0) == 1


@pytest.mark.parametrize("stopped", [False, True])
def test_a_frontier_that_cannot_be_opened_yet_is_opened_later(
    tmp_path: Path, stopped: bool
) -> None:
    file = tmp_path / "f.db"
    Frontier(f"sqlite:///{file}").close()
    moved = file.rename(file.with_suffix(".kept"))
    file.mkdir()
    stop = threading.Event()

    def wait(_: float) -> bool:
        if stopped:
            stop.set()
        else:
            file.rmdir()
            moved.rename(file)
        return stop.is_set()

    found = opened(lambda: Frontier(f"sqlite:///{file}"), wait)
    assert (found is None) is stopped
    if found is not None:
        found.close()
    with pytest.raises(ConfigError):
        opened(lambda: Frontier("mysql+nobody://x"), wait)


def test_a_frontier_is_opened_once_its_server_has_started() -> None:
    with running_postgres() as server:
        address = server.new_database()
        server.stop()

        def wait(_: float) -> bool:
            server.start()
            return False

        found = opened(lambda: Frontier(address), wait)
        assert found is not None
        found.close()


@AWAY
async def test_a_crawl_goes_on_after_its_database_was_away(
    site: Any,
    quick: Any,
    reply: Any,
    frontier: Frontier,
    troubled_database: TroubledDatabase,
) -> None:
    words = " ".join(f"낱말{i}" for i in range(30))
    items = "".join(f"<item><link>{site.base}/{i}</link></item>" for i in range(8))
    rss = f"<rss version='2.0'><channel><title>t</title>{items}</channel></rss>"
    site.answers = {
        "/rss": reply(rss, content_type="application/rss+xml"),
        **{
            f"/{i}": reply(f"<html><body><p>글 {i} 번. {words} 끝{i}</p></body></html>")
            for i in range(8)
        },
    }
    source = SourceConfig(
        undated="fetched", name="s", kind="feed", url=f"{site.base}/rss", every=0.1
    )
    crawler = Crawler([source], quick(site.host, dedupe_min_chars=10_000), frontier)
    found: list[str] = []

    async def read() -> None:
        async for document in crawler.documents():
            found.append(document.url)
            await crawler.patience.ask(crawler.acknowledge, [document.url])
            if len(found) == 8:
                crawler.stop()

    reading = asyncio.create_task(read())
    async with asyncio.timeout(120):
        await eventually(lambda: len(found) >= 2)
        with troubled_database.trouble():
            await away(crawler.patience)
        await reading
    assert sorted(found) == [f"{site.base}/{i}" for i in range(8)], "each once"
    assert frontier.backlog(["s"])["s"] == 0
    errors = next(iter(crawler._runners.values())).counters.errors
    assert not errors, "waiting is no fault of a page"
