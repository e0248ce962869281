"""Documents of a dead process are given out once more, for how they use words alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from embedding.crawl.frontier import Frontier
from embedding.crawl.lease import Incarnation
from embedding.crawl.rewinding import erase_address, erase_source, rewind
from embedding.crawl.tables import Fetched

A, B = Incarnation("n0", "a"), Incarnation("n0", "b")


@pytest.fixture
def frontier(database: str) -> Iterator[Frontier]:
    found = Frontier(database)
    yield found
    found.close()


def table(connection: sa.Connection, name: str) -> sa.Table:
    return sa.Table(name, sa.MetaData(), autoload_with=connection)


def held(frontier: Frontier, incarnation: Incarnation, *sources: str) -> None:
    with frontier._engine.begin() as connection:
        leases = table(connection, "frontier_leases")
        connection.execute(sa.delete(leases))
        for source in sources:
            row = {"source": source, "holder": str(incarnation), "cost": 1.0, "rate": 0.0}
            row |= {"measured": 0.0, "gone": False, "until": 1e12, "fence": 1, "debts": "[]"}
            connection.execute(sa.insert(leases).values(**row))
    frontier.held_by(incarnation)


def learn(frontier: Frontier, source: str, *keys: str, at: float = 5.0) -> None:
    frontier.discover(source, [(key, at) for key in keys], 9.0)
    claims = [claim.key for claim in frontier.claim(source, 99, 10.0, 100.0)]
    rows = [Fetched(key, source, published=at, content_hash=f"h{key}") for key in claims]
    frontier.record(rows, [], 11.0)
    assert frontier.acknowledge(claims, 12.0) == len(keys)


def test_what_a_process_learnt_is_new_again_for_whoever_takes_its_source(frontier) -> None:
    held(frontier, A, "s", "t")
    learn(frontier, "s", "old", at=1.0)
    learn(frontier, "s", "x", "y")
    learn(frontier, "t", "z")
    held(frontier, B, "s")
    assert frontier.read_again("s", "a", 4.0) == 2
    assert frontier.read_again("s", "a", 4.0) == 0, "they are under way"
    assert frontier.read_again("t", "a", 4.0) == 0, "another node holds it"
    assert frontier.reading_again(["s", "t"]) == {"x": "a", "y": "a"}
    claims = [claim.key for claim in frontier.claim("s", 9, 20.0, 100.0)]
    assert sorted(claims) == ["x", "y"]
    frontier.record([Fetched("x", "s", published=5.0)], [(Fetched("y", "s"), "duplicate")], 21.0)
    frontier.was_read_again(["x"])
    assert frontier.gone_again(["s"]) == [("a", "s", 5.0)]
    assert frontier.reading_again(["s"]) == {}
    assert frontier.backlog(["s"])["s"] == 0
    assert frontier.read_again("s", "a", 4.0) == 1, "its own process is asked for again, still"


def test_it_is_known_over_a_restart_what_is_read_again(frontier) -> None:
    held(frontier, A, "s")
    learn(frontier, "s", "x")
    held(frontier, B, "s")
    frontier.read_again("s", "a", 0.0)
    (claim,) = frontier.claim("s", 9, 20.0, 100.0)
    frontier.record([Fetched(claim.key, "s", published=5.0)], [], 21.0)
    held(frontier, Incarnation("n1", "c"), "s")
    frontier.recover(["s"])
    assert frontier.reading_again(["s"]) == {"x": "a"}
    assert [claim.key for claim in frontier.claim("s", 9, 30.0, 100.0)] == ["x"]


def test_who_is_given_a_document_knows_at_once_that_it_is_read_again(frontier) -> None:
    """Asked for afterwards, it may be read before the answer, and is learnt twice."""
    held(frontier, A, "s")
    learn(frontier, "s", "x")
    assert frontier.offer("s", [("c", 5.0)], 11.0) == {"c"}
    assert frontier.acknowledge(["c"], 12.0) == 1
    held(frontier, B, "s")
    assert frontier.read_again("s", "a", 0.0) == 2
    assert frontier.again == {}
    frontier.claim("s", 9, 20.0, 100.0)
    assert frontier.again == {"x": "a"}
    frontier.again.clear()
    assert frontier.offer("s", [("c", 5.0), ("d", 5.0)], 21.0) == {"c", "d"}
    assert frontier.again == {"c": "a"}
    frontier.again["x"] = "b"
    frontier.release(["x"])
    frontier.was_read_again(["x"])
    frontier.claim("s", 9, 22.0, 100.0)
    assert "x" not in frontier.again, "it is learnt"


def test_who_is_told_late_that_documents_were_learnt_notes_by_whom(frontier) -> None:
    held(frontier, A, "s")
    frontier.discover("s", [("x", 5.0)], 9.0)
    frontier.claim("s", 9, 10.0, 100.0)
    frontier.record([Fetched("x", "s", published=5.0)], [], 11.0)
    held(frontier, B, "s")
    from embedding.crawl.addresses import key_digest

    frontier.recover(["s"], {key_digest("x")}, "a")
    assert frontier.read_again("s", "a", 0.0) == 1


def test_what_is_too_old_or_forgotten_or_learnt_anew_is_not_read_again(frontier, database) -> None:
    held(frontier, A, "s")
    learn(frontier, "s", "old", at=1.0)
    learn(frontier, "s", "https://a.example/x", "https://a.example/y")
    frontier.forget_uses(["s"], 4.0)
    if database != "sqlite://":
        erase_address(database, "https://a.example/x")
        assert frontier.read_again("s", "a", 0.0) == 1
        rewind(database, 0.0)
        assert frontier.reading_again(["s"]) == {}, "it is learnt again"
        learn(frontier, "s", "old", "https://a.example/y")
        erase_source(database, "s")
        with frontier._engine.begin() as connection:
            assert not connection.execute(sa.select(table(connection, "frontier_uses"))).all()
    with frontier._engine.begin() as connection:
        uses = table(connection, "frontier_uses")
        names = connection.execute(sa.select(uses.c.key)).scalars().all()
    assert "old" not in names
