from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from embedding.crawl.addresses import LONGEST_KEY
from embedding.crawl.frontier import Frontier
from embedding.crawl.lease import LeaseConfig
from embedding.crawl.rewinding import block
from embedding.crawl.tables import Fetched
from embedding.kernel.errors import ConfigError
from embedding.sources.config import SourceConfig
from generated import examples
from pgserver import PostgresServer


@pytest.fixture
def frontier(database: str) -> Iterator[Frontier]:
    found = Frontier(database)
    yield found
    found.close()


def claimed(frontier: Frontier, n: int = 10, now: float = 10.0) -> list[str]:
    return [claim.key for claim in frontier.claim("s", n, now, 100.0)]


def test_oldest_first_and_nothing_twice(frontier: Frontier) -> None:
    assert frontier.discover("s", [("c", 3.0), ("a", 1.0), ("b", 2.0), ("a", 1.0)], 5.0) == 3
    assert frontier.discover("s", [("a", 1.0)], 6.0) == 0
    assert claimed(frontier, 2) == ["a", "b"]
    assert claimed(frontier) == ["c"]
    assert claimed(frontier) == []
    assert claimed(frontier, now=200.0) == ["a", "b", "c"]


def test_undated_references_are_taken_from_the_end_of_the_listing(frontier: Frontier) -> None:
    frontier.discover("s", [("new", None), ("old", None)], 5.0)
    assert claimed(frontier) == ["old", "new"]


def test_pending_until_acknowledged(frontier: Frontier) -> None:
    frontier.discover("s", [("a", 1.0), ("b", 2.0)], 5.0)
    assert frontier.acknowledge(["a"], 6.0) == 0
    for key in claimed(frontier):
        frontier.record([Fetched(key, "s")], [], 11.0)
    assert frontier.backlog(["s", "t"]) == {"s": 2, "t": 0}
    assert frontier.acknowledge(["a", "unknown"], 12.0) == 1
    assert frontier.backlog(["s"])["s"] == 1
    assert claimed(frontier, now=1000.0) == []


@pytest.mark.parametrize("database", ["file", "postgres"], indirect=True)
def test_what_was_not_acknowledged_is_new_after_a_restart(database: str) -> None:
    url = database
    first = Frontier(url)
    first.discover("s", [(key, None) for key in "abcd"], 5.0)
    keys = claimed(first)
    first.record([Fetched(keys[0], "s"), Fetched(keys[1], "s")], [], 11.0)
    first.acknowledge([keys[0]], 12.0)
    first.fail(keys[2], 12.0, "http_4xx")
    first.close()
    second = Frontier(url)
    assert second.recover(["other"]) == 0
    assert second.recover(["s"]) == 2
    assert set(claimed(second)) == {keys[1], keys[3]}
    second.close()


def test_postponed_keys_wait_and_failed_ones_do_not_come_back(frontier: Frontier) -> None:
    frontier.discover("s", [("a", 1.0), ("b", 2.0)], 5.0)
    claimed(frontier)
    frontier.postpone("a", 50.0, "timeout")
    frontier.fail("b", 11.0, "http_4xx")
    assert claimed(frontier, now=49.0) == []
    (again,) = frontier.claim("s", 5, 50.0, 10.0)
    assert (again.key, again.attempts) == ("a", 2)
    frontier.postpone("a", 51.0, "host_down", counts=False)
    assert frontier.claim("s", 5, 51.0, 10.0)[0].attempts == 2
    assert frontier.backlog(["s"])["s"] == 1


def test_released_claims_can_be_taken_at_once(frontier: Frontier) -> None:
    frontier.discover("s", [("a", 1.0)], 5.0)
    frontier.release(claimed(frontier))
    assert frontier.claim("s", 5, 10.0, 10.0)[0].attempts == 1


def test_inline_texts_are_taken_once_and_again_after_a_restart(frontier: Frontier) -> None:
    assert frontier.offer("s", [("p#comment-1", 1.0)], 5.0)
    assert not frontier.offer("s", [("p#comment-1", 1.0)], 6.0)
    assert claimed(frontier, now=1000.0) == []
    frontier.recover(["s"])
    assert frontier.relist("s") == 1
    assert claimed(frontier, now=1000.0) == []
    assert frontier.offer("s", [("p#comment-1", 1.0)], 7.0)
    frontier.acknowledge(["p#comment-1"], 8.0)
    frontier.recover(["s"])
    assert not frontier.offer("s", [("p#comment-1", 1.0)], 9.0)


def test_inline_texts_that_vanished_are_given_up(frontier: Frontier) -> None:
    frontier.offer("s", [("p#comment-1", 1.0)], 5.0)
    frontier.recover(["s"])
    assert frontier.expire("s", 5.0) == 0
    assert frontier.expire("s", 6.0) == 1
    assert frontier.backlog(["s"])["s"] == 0


def test_aliases_are_not_fetched_and_know_their_page(frontier: Frontier) -> None:
    frontier.discover("s", [("a", 1.0), ("canonical", 2.0)], 5.0)
    assert claimed(frontier, 1) == ["a"]
    assert frontier.alias("canonical", "a", "s", 11.0)
    assert frontier.alias("canonical", "a", "s", 12.0)
    assert not frontier.alias("canonical", "b", "s", 13.0)
    assert claimed(frontier) == []
    assert not frontier.alias("a", "c", "s", 14.0)


def test_equal_texts_are_found_by_their_keys(frontier: Frontier) -> None:
    frontier.discover("s", [("a", 1.0)], 5.0)
    claimed(frontier)
    frontier.record([Fetched("a", "s", content_hash="h")], [], 11.0)
    assert frontier.with_content(["h", "i"]) == {"h": {"a"}}
    frontier.recover(["s"])
    assert frontier.with_content(["h"]) == {}


def test_large_listings(frontier: Frontier) -> None:
    keys = [(f"k{n}", float(n)) for n in range(3000)]
    assert frontier.discover("s", keys, 1.0) == 3000
    assert frontier.known([key for key, _ in keys] + ["x"]) == 3000


@pytest.mark.parametrize("database", ["file", "postgres"], indirect=True)
def test_two_processes_never_claim_the_same(database: str) -> None:
    url = database
    frontiers = [Frontier(url) for _ in range(3)]
    frontiers[0].discover("s", [(f"k{n}", float(n)) for n in range(120)], 1.0)
    taken: list[str] = []

    def take(frontier: Frontier) -> None:
        while keys := claimed(frontier, 3):
            taken.extend(keys)

    threads = [threading.Thread(target=take, args=(one,)) for one in frontiers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for one in frontiers:
        one.close()
    assert len(taken) == len(set(taken)) == 120


def test_there_is_no_column_for_text(tmp_path: Path) -> None:
    Frontier(f"sqlite:///{tmp_path}/f.db").close()
    with sqlite3.connect(tmp_path / "f.db") as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(frontier_urls)")}
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
    connection.close()
    assert not columns & {"text", "title", "body", "author", "content"}
    assert mode == "wal"


@pytest.mark.parametrize(
    "key", ["http://x/" + "".join(map(str, range(2000))), "p#comment-\0", "p#comment-\ud800"]
)
def test_a_key_that_no_database_holds_stops_nothing(frontier: Frontier, key: str) -> None:
    """A site chooses the addresses and ids that it names."""
    assert frontier.discover("s", [(key, 1.0), ("a", 2.0)], 5.0) == 1
    assert frontier.offer("s", [(key, 1.0), ("p#comment-1", 1.0)], 5.0) == {"p#comment-1"}
    assert claimed(frontier) == ["a"]
    assert not frontier.alias(key, "a", "s", 11.0)


def test_the_longest_key_is_held(frontier: Frontier) -> None:
    random = hashlib.shake_256(b"x").hexdigest(LONGEST_KEY)[: LONGEST_KEY - 9]
    assert frontier.discover("s", [(f"http://x/{random}", 1.0)], 5.0) == 1


@pytest.mark.parametrize("url", ["nonsense", "sqlite:////proc/none/f.db", "mysql+nope://x/y"])
def test_a_database_that_cannot_be_opened(url: str) -> None:
    with pytest.raises(ConfigError, match=r"crawl\.frontier"):
        Frontier(url)


class Lives(RuleBasedStateMachine):
    """No key is in two hands, none is lost, acknowledged ones never come back."""

    def __init__(self) -> None:
        super().__init__()
        self.frontier = self.empty()
        self.now = 0.0
        self.known: set[str] = set()
        self.held: set[str] = set()
        self.read: set[str] = set()
        self.done: set[str] = set()

    def empty(self) -> Frontier:
        return Frontier("sqlite://")

    @rule(n=st.integers(0, 9))
    def discover(self, n: int) -> None:
        added = self.frontier.discover("s", [(str(n), float(n))], self.now)
        assert added == (str(n) not in self.known)
        self.known.add(str(n))

    @rule(n=st.integers(1, 4))
    def claim(self, n: int) -> None:
        self.now += 1.0
        keys = {c.key for c in self.frontier.claim("s", n, self.now, 1e9)}
        assert not keys & (self.held | self.read | self.done)
        self.held |= keys

    @rule()
    def fetch(self) -> None:
        for key in sorted(self.held)[:2]:
            self.frontier.record([Fetched(key, "s")], [], self.now)
            self.held.discard(key)
            self.read.add(key)

    @rule()
    def acknowledge(self) -> None:
        keys = sorted(self.read)[:2]
        assert self.frontier.acknowledge(keys, self.now) == len(keys)
        self.read -= set(keys)
        self.done |= set(keys)

    @rule()
    def restart(self) -> None:
        self.frontier.recover(["s"])
        self.held.clear()
        self.read.clear()

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.frontier.backlog(["s"])["s"] == len(self.known - self.done)

    def teardown(self) -> None:
        self.frontier.close()


Lives.TestCase.settings = settings(max_examples=examples(25), stateful_step_count=20)
TestLives = Lives.TestCase


class LivesOnPostgres(Lives):
    address = ""

    def empty(self) -> Frontier:
        found = Frontier(self.address)
        ran(self.address, "TRUNCATE frontier_urls")
        return found


LivesOnPostgres.TestCase.settings = Lives.TestCase.settings


@pytest.fixture(scope="class")
def on_postgres(postgres: PostgresServer) -> None:
    LivesOnPostgres.address = postgres.new_database()


@pytest.mark.usefixtures("on_postgres")
class TestLivesOnPostgres(LivesOnPostgres.TestCase):
    pass


def ran(address: str, *statements: str) -> None:
    engine = sa.create_engine(address)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.fixture(params=["file", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a database in which a frontier has been used."""
    if request.param == "postgres":
        address = request.getfixturevalue("postgres").new_database()
    else:
        address = f"sqlite:///{tmp_path}/f.db"
    found = Frontier(address)
    found.discover("s", [("k", 1.0)], 1.0)
    found.close()
    return address


@pytest.mark.parametrize("version", [0, 2, 70])
def test_a_frontier_of_another_version_is_refused(kept: str, version: int) -> None:
    ran(kept, f"UPDATE frontier_schema SET version = {version}")
    with pytest.raises(ConfigError, match=f"of version {version}, this version reads version 1"):
        Frontier(kept)


def test_a_frontier_from_before_versions_is_refused(kept: str) -> None:
    ran(kept, "DROP TABLE frontier_schema")
    for opening in (Frontier, lambda address: block(address, "s", "spam")):
        with pytest.raises(ConfigError, match="of version 0, this version reads version 1"):
            opening(kept)


def pool_of(frontier: Frontier, **addresses: str) -> None:
    """A pool that reads a feed of each address."""
    sources = [SourceConfig(name=name, kind="feed", url=url) for name, url in addresses.items()]
    frontier.leases(LeaseConfig()).publish(sources)


def test_an_address_that_two_sources_name_is_of_the_source_whose_site_it_is(
    frontier: Frontier,
) -> None:
    site, links = "https://press.example.kr/rss", "https://links.example.kr/rss"
    pool_of(frontier, press=site, links=links)
    keys = [f"https://www.press.example.kr/{n}" for n in range(4)]
    foreign = "https://other.example.kr/1"
    listed = {key: (f"{key}?utm_source=x", False) for key in keys}
    rows = [(foreign, 1.0), *((key, 2.0 + n) for n, key in enumerate(keys))]
    frontier.discover("links", rows, 5.0, listed, site=links)
    frontier.claim("links", 2, 6.0, 100.0)  # of the press, keys[0]
    assert frontier.discover("press", rows, 7.0, site=site) == 3
    assert [one.key for one in frontier.claim("press", 9, 8.0, 100.0)] == keys[1:]
    assert frontier.claim("links", 9, 8.0, 100.0) == []
    assert frontier.backlog(["links"])["links"] == 2, "what is being read stays where it is"
    assert frontier.discover("links", rows, 9.0, site=links) == 0
    assert frontier.backlog(["press"])["press"] == 3


def test_two_sources_of_one_site_leave_each_other_their_addresses(frontier: Frontier) -> None:
    first, second = "https://press.example.kr/rss", "https://m.press.example.kr/economy/rss"
    pool_of(frontier, first=first, second=second)
    rows = [("https://press.example.kr/1", 1.0)]
    assert frontier.discover("first", rows, 5.0, site=first) == 1
    assert frontier.discover("second", rows, 6.0, site=second) == 0
    assert frontier.backlog(["first"])["first"] == 1


def test_what_is_asked_for_is_the_address_as_it_was_linked(frontier: Frontier) -> None:
    linked = "http://h.kr/read?no=7&PHPSESSID=0a1b2c3d4e5f60718"
    listed = {"http://h.kr/read?no=7": (linked, False), "b": ("b", True)}
    frontier.discover("s", [("http://h.kr/read?no=7", 1.0), ("b", 2.0), ("c", 3.0)], 5.0, listed)
    claims = frontier.claim("s", 9, 6.0, 60.0)
    assert [(one.address, one.is_lastmod) for one in claims] == [
        (linked, False),
        ("b", True),
        ("c", False),
    ]
    frontier.discover("s", [("http://h.kr/read?no=7", 1.0)], 7.0, {})
