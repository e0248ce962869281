"""Going back in the frontier: documents since a moment are read again; and blocked sources.

The pool must not be running: nodes know in memory what they have read.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from embedding.crawl.addresses import canonical
from embedding.crawl.tables import (
    AS_NEW,
    BLOCKED,
    LEASES,
    LISTED,
    POLLS,
    URLS,
    USES,
    YIELDS,
    open_engine,
)

FORGOTTEN = "forgotten"
"""Why an address is not read: somebody asked for its text to be forgotten."""


@contextmanager
def _changing(frontier: str, *, scrub: bool = False) -> Iterator[sa.Connection]:
    """One transaction on a frontier's database.

    scrub  SQLite leaves what is deleted in free pages and in its log: the file is written again
    """
    engine = open_engine(frontier)
    try:
        with engine.begin() as connection:
            yield connection
        if scrub and engine.dialect.name == "sqlite":
            with engine.connect() as connection:
                raw = connection.connection.cursor()
                raw.execute("VACUUM")
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                raw.close()
    finally:
        engine.dispose()


def erase_source(frontier: str, source: str, *, dry: bool = False) -> int:
    """Remove all rows of a source; how many addresses there are. Its block, if any, stays."""
    with _changing(frontier, scrub=not dry) as connection:
        n = _count(connection, URLS.c.source == source)
        for table in () if dry else (URLS, USES, LISTED, POLLS, YIELDS, LEASES):
            connection.execute(sa.delete(table).where(table.c.source == source))
    return n


def erase_address(frontier: str, url: str, *, dry: bool = False) -> int:
    """Forget a page with its comments, or one comment; how many addresses there are.

    What was kept of them goes. The address itself stays as one that is not read again, also where
    it was not known: else the next look at the listing would bring its text back.
    """
    key = canonical(url)
    # Other names of the page lead to the same text.
    these = sa.or_(
        URLS.c.key == key, URLS.c.key.startswith(f"{key}#", autoescape=True), URLS.c.alias_of == key
    )
    values = {
        **AS_NEW,
        "status": "failed",
        "reason": FORGOTTEN,
        "order_at": 0.0,
        "discovered_at": 0.0,
        "published_at": None,
        "alias_of": None,
    }
    with _changing(frontier, scrub=not dry) as connection:
        n = _count(connection, these)
        if dry:
            return n
        connection.execute(sa.update(URLS).where(these).values(**values))
        comments_used = USES.c.key.startswith(f"{key}#", autoescape=True)
        connection.execute(sa.delete(USES).where(sa.or_(USES.c.key == key, comments_used)))
        connection.execute(sa.delete(LISTED).where(LISTED.c.key == key))
        if not _count(connection, URLS.c.key == key):
            connection.execute(sa.insert(URLS).values(key=key, source="", inline=False, **values))
    return n


def erase_before(frontier: str, before: float, *, dry: bool = False) -> int:
    """Remove addresses that were done or given up before a time (Unix seconds); how many.

    Those that somebody asked to be forgotten stay.
    """
    when = sa.func.coalesce(URLS.c.done_at, URLS.c.fetched_at, URLS.c.discovered_at)
    these = sa.and_(
        URLS.c.status.in_(("done", "failed")),
        when < before,
        sa.func.coalesce(URLS.c.reason, "") != FORGOTTEN,
    )
    with _changing(frontier) as connection:
        n = _count(connection, these)
        if not dry:
            old = sa.select(URLS.c.key).where(these)
            connection.execute(sa.delete(LISTED).where(LISTED.c.key.in_(old)))
            connection.execute(sa.delete(URLS).where(these))
    return n


def _count(connection: sa.Connection, these: sa.ColumnElement[bool]) -> int:
    count = sa.select(sa.func.count()).select_from(URLS).where(these)
    return int(connection.execute(count).scalar_one())


@dataclass(frozen=True)
class Rewound:
    """How many documents will be read again.

    addresses  fetched again from their own address
    listed     taken from their listing again, as far as it still has them
    """

    addresses: int
    listed: int


@dataclass(frozen=True)
class Blocked:
    """Since when (Unix seconds) and why."""

    at: float
    reason: str


def rewind(frontier: str, since: float, *, without: Collection[str] = ()) -> Rewound:
    """Make documents of event time `since` (Unix seconds) and later new, but for some sources'.

    A document without a time of its own counts by when it was fetched.
    """
    with _changing(frontier) as connection:
        when = sa.func.coalesce(URLS.c.published_at, URLS.c.fetched_at, URLS.c.discovered_at)
        these = sa.and_(
            URLS.c.status.in_(("done", "fetched")),
            when >= since,
            URLS.c.source.not_in(list(without)),
        )
        count = sa.select(URLS.c.inline, sa.func.count()).where(these).group_by(URLS.c.inline)
        counts = {bool(inline): int(n) for inline, n in connection.execute(count)}
        connection.execute(sa.update(URLS).where(these).values(**AS_NEW, discovered_at=time.time()))
        connection.execute(sa.delete(USES).where(USES.c.at >= since))
        # A copy elsewhere of what a source left out had is no duplicate any more.
        left_out = sa.update(URLS).where(when >= since, URLS.c.source.in_(list(without)))
        connection.execute(left_out.values(content_hash=None))
    return Rewound(counts.get(False, 0), counts.get(True, 0))


def block(frontier: str, source: str, reason: str) -> None:
    """From the next publication on nobody reads this source; a block that is there stays."""
    with _changing(frontier) as connection:
        known = sa.select(BLOCKED.c.source).where(BLOCKED.c.source == source)
        if connection.execute(known).fetchone() is None:
            entry = {"source": source, "at": time.time(), "reason": reason}
            connection.execute(sa.insert(BLOCKED).values(**entry))


def unblock(frontier: str, source: str) -> bool:
    """Let a source be read again; whether it was blocked."""
    with _changing(frontier) as connection:
        gone = connection.execute(sa.delete(BLOCKED).where(BLOCKED.c.source == source))
        return bool(gone.rowcount)


def blocked(frontier: str) -> dict[str, Blocked]:
    """The blocked sources by name."""
    with _changing(frontier) as connection:
        rows = connection.execute(sa.select(BLOCKED))
        return {row.source: Blocked(row.at, row.reason) for row in rows}
