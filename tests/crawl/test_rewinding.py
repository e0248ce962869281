"""Going back in the frontier, and sources that are blocked; SQLite and PostgreSQL alike."""

from __future__ import annotations

import pytest

from embedding.crawl.frontier import Frontier
from embedding.crawl.lease import LeaseConfig
from embedding.crawl.rewinding import block, blocked, rewind, unblock
from embedding.crawl.tables import Fetched
from embedding.sources.config import SourceConfig

pytestmark = pytest.mark.parametrize("database", ["file", "postgres"], indirect=True)

JANUARY, FEBRUARY = 1_577_836_800.0, 1_580_515_200.0


@pytest.fixture
def address(database: str) -> str:
    return database


def read(frontier: Frontier, source: str, key: str, published: float | None) -> None:
    """A document goes through the frontier to its end."""
    frontier.discover(source, [(key, published)], JANUARY)
    (claim,) = frontier.claim(source, 1, FEBRUARY, 60.0)
    was = Fetched(claim.key, source, None, '"e"', "then", f"h-{key}")
    frontier.record([was], [], FEBRUARY)
    assert frontier.acknowledge([claim.key], FEBRUARY) == 1


def test_what_was_read_since_then_is_new_again(address):
    frontier = Frontier(address)
    read(frontier, "news", "https://n/old", JANUARY)
    read(frontier, "news", "https://n/new", FEBRUARY + 5)
    read(frontier, "news", "https://n/undated", None)
    read(frontier, "board", "https://b/spam", FEBRUARY + 6)
    frontier.offer("news", [("inline:1", FEBRUARY + 7)], FEBRUARY)
    frontier.close()
    rewound = rewind(address, FEBRUARY, without=["board"])
    assert (rewound.addresses, rewound.listed) == (2, 1)
    frontier = Frontier(address)
    claims = frontier.claim("news", 10, FEBRUARY + 100, 60.0)
    assert {claim.key for claim in claims} == {"https://n/new", "https://n/undated"}
    assert frontier.relist("news") == 1
    assert frontier.backlog(["board"])["board"] == 0
    hashes = [f"h-{key}" for key in ("https://n/old", "https://n/new", "https://b/spam")]
    assert frontier.with_content(hashes) == {"h-https://n/old": {"https://n/old"}}
    frontier.close()
    assert rewind(address, FEBRUARY + 1000, without=[]).addresses == 0


def test_a_blocked_source_is_not_published_until_it_is_unblocked(address):
    sources = [
        SourceConfig(name=name, kind="feed", url=f"https://{name}.example/feed")
        for name in ("news", "board")
    ]
    block(address, "board", "spam")
    block(address, "board", "once more")
    assert {name: one.reason for name, one in blocked(address).items()} == {"board": "spam"}
    frontier = Frontier(address)
    leases = frontier.leases(LeaseConfig())
    leases.publish(sources)
    assert [source.name for source in leases.sources()] == ["news"]
    assert unblock(address, "board")
    assert not unblock(address, "board")
    leases.publish(sources)
    assert [source.name for source in leases.sources()] == ["board", "news"]
    block(address, "news", "spam too")
    leases.publish(sources)
    assert [source.name for source in leases.sources()] == ["board"]
    frontier.close()
