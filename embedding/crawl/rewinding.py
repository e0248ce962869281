"""Going back in the frontier: what was read since a moment is read again; sources that are blocked.

The pool must not be running: nodes know in memory what they have read.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from embedding.crawl.addresses import canonical
from embedding.crawl.rows import AS_NEW
from embedding.crawl.tables import BLOCKED, LEASES, LISTED, POLLS, URLS, USES, YIELDS, open_engine

FORGOTTEN = "forgotten"
"""Why an address is not read: somebody asked for its text to be forgotten."""


def erase_source(frontier: str, source: str, *, dry: bool = False) -> int:
    """Remove all rows of a source; how many addresses there are. Its block, if any, stays."""
    engine = open_engine(frontier)
    try:
        with engine.begin() as connection:
            n = _count(connection, URLS.c.source == source)
            for table in () if dry else (URLS, USES, LISTED, POLLS, YIELDS, LEASES):
                connection.execute(sa.delete(table).where(table.c.source == source))
            return n
    finally:
        _scrub(engine, dry)
        engine.dispose()


def erase_address(frontier: str, url: str, *, dry: bool = False) -> int:
    """Forget a page with its comments, or one comment; how many addresses there are.

    What was kept of them goes. The address itself stays as one that is not read again, also where
    it was not known: else the next look at the listing would bring its text back.
    """
    key = canonical(url)
    comments = URLS.c.key.startswith(f"{key}#", autoescape=True)
    these = sa.or_(URLS.c.key == key, comments)
    engine = open_engine(frontier)
    try:
        with engine.begin() as connection:
            n = _count(connection, sa.or_(these, URLS.c.alias_of == key))
            if dry:
                return n
            blank = {
                "status": "failed",
                "reason": FORGOTTEN,
                "order_at": 0.0,
                "discovered_at": 0.0,
                "attempts": 0,
                "not_before": 0.0,
                "claimed_until": 0.0,
            }
            nothing = (
                *("published_at", "fetched_at", "done_at", "etag", "last_modified"),
                *("content_hash", "alias_of"),
            )
            values = {**blank, **dict.fromkeys(nothing)}
            # Other names of the page lead to the same text.
            connection.execute(
                sa.update(URLS).where(sa.or_(these, URLS.c.alias_of == key)).values(**values)
            )
            comments_used = USES.c.key.startswith(f"{key}#", autoescape=True)
            connection.execute(sa.delete(USES).where(sa.or_(USES.c.key == key, comments_used)))
            connection.execute(sa.delete(LISTED).where(LISTED.c.key == key))
            if not connection.execute(sa.select(URLS.c.key).where(URLS.c.key == key)).fetchone():
                connection.execute(
                    sa.insert(URLS).values(key=key, source="", inline=False, **values)
                )
            return n
    finally:
        _scrub(engine, dry)
        engine.dispose()


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
    engine = open_engine(frontier)
    try:
        with engine.begin() as connection:
            n = _count(connection, these)
            if not dry:
                old = sa.select(URLS.c.key).where(these)
                connection.execute(sa.delete(LISTED).where(LISTED.c.key.in_(old)))
                connection.execute(sa.delete(URLS).where(these))
            return n
    finally:
        engine.dispose()


def _scrub(engine: sa.Engine, dry: bool) -> None:
    """SQLite leaves what was deleted in free pages and in its log: write the file again."""
    if dry or engine.dialect.name != "sqlite":
        return
    with engine.connect() as connection:
        raw = connection.connection.cursor()
        raw.execute("VACUUM")
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.close()


def _count(connection: sa.Connection, these: sa.ColumnElement[bool]) -> int:
    found = connection.execute(sa.select(sa.func.count()).select_from(URLS).where(these))
    return int(found.scalar_one())


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
    engine = open_engine(frontier)
    try:
        with engine.begin() as connection:
            when = sa.func.coalesce(URLS.c.published_at, URLS.c.fetched_at, URLS.c.discovered_at)
            these = sa.and_(
                URLS.c.status.in_(("done", "fetched")),
                when >= since,
                URLS.c.source.not_in(list(without)),
            )
            count = sa.select(URLS.c.inline, sa.func.count()).where(these).group_by(URLS.c.inline)
            found = {bool(inline): int(n) for inline, n in connection.execute(count)}
            connection.execute(
                sa.update(URLS).where(these).values(**AS_NEW, discovered_at=time.time())
            )
            connection.execute(sa.delete(USES).where(USES.c.at >= since))
            # A copy elsewhere of what a source left out had is no duplicate any more.
            connection.execute(
                sa.update(URLS)
                .where(when >= since, URLS.c.source.in_(list(without)))
                .values(content_hash=None)
            )
    finally:
        engine.dispose()
    return Rewound(found.get(False, 0), found.get(True, 0))


def block(frontier: str, source: str, reason: str) -> None:
    """From the next publication on nobody reads this source; a block that is there stays."""
    engine = open_engine(frontier)
    try:
        with engine.begin() as connection:
            known = sa.select(BLOCKED.c.source).where(BLOCKED.c.source == source)
            if connection.execute(known).fetchone() is None:
                entry = {"source": source, "at": time.time(), "reason": reason}
                connection.execute(sa.insert(BLOCKED).values(**entry))
    finally:
        engine.dispose()


def unblock(frontier: str, source: str) -> bool:
    """Let a source be read again; whether it was blocked."""
    engine = open_engine(frontier)
    try:
        with engine.begin() as connection:
            gone = connection.execute(sa.delete(BLOCKED).where(BLOCKED.c.source == source))
            return bool(gone.rowcount)
    finally:
        engine.dispose()


def blocked(frontier: str) -> dict[str, Blocked]:
    """The blocked sources by name."""
    engine = open_engine(frontier)
    try:
        with engine.begin() as connection:
            rows = connection.execute(sa.select(BLOCKED)).fetchall()
        return {row.source: Blocked(row.at, row.reason) for row in rows}
    finally:
        engine.dispose()
