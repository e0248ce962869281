"""Which text of dead processes a crawler reads again, and when it has read all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedding.crawl.frontier import Frontier
from embedding.crawl.tables import Fetched
from embedding.database.patience import Patience
from embedding.worker.crawling.crawling import Rereading


@pytest.fixture
def frontier(tmp_path: Path) -> Iterator[Frontier]:
    found = Frontier(f"sqlite:///{tmp_path}/f.db")
    found.discover("s", [("x", 5.0), ("y", 6.0)], 9.0)
    fetch(found)
    found.acknowledge(["x", "y"], 12.0, "a")
    yield found
    found.close()


def fetch(frontier: Frontier) -> list[str]:
    keys = [claim.key for claim in frontier.claim("s", 9, 10.0, 100.0)]
    frontier.record([Fetched(key, "s", published=5.0) for key in keys], [], 11.0)
    return keys


def test_it_waits_until_it_is_known_how_far_back_and_then_until_all_is_read(frontier) -> None:
    rereading = Rereading(frontier, Patience())
    asked = {"lost": [["a", "s"], ["a", "t"]], "since": None}

    def follow() -> dict:
        asyncio.run(rereading.follow(asked, {"s"}))
        return rereading.report()

    assert follow() == {"put": 0, "left": 1, "begun": [], "gone": []}
    asked["since"] = 0.0
    assert follow() == {"put": 0, "left": 2, "begun": [["a", "s"]], "gone": []}
    assert (rereading.incarnation("x"), rereading.incarnation("z")) == ("a", "")
    assert sorted(fetch(frontier)) == ["x", "y"]
    asyncio.run(rereading.put(["x"]))
    frontier.fail("y", 12.0, "gone")
    assert follow()["left"] == 0
    assert rereading.report()["gone"] == [["a", "s", 5.0]]
    assert rereading.report()["put"] == 1
    assert frontier.backlog(["s"])["s"] == 0


def test_what_earlier_holders_of_a_source_had_read_is_read_too(frontier) -> None:
    rereading = Rereading(frontier, Patience())
    rereading.inherited.add(("a", "s"))
    asyncio.run(rereading.follow({"since": 0.0}, {"t"}))
    assert rereading.report()["left"] == 0, "it does not read that source"
    asyncio.run(rereading.follow({"since": 0.0}, {"s"}))
    assert rereading.report()["left"] == 2
