"""Taking a source or an address out of the frontier, and what is old.

The pool must not be running: nodes know in memory what they have read.
"""

from __future__ import annotations

import sqlalchemy as sa

from embedding.crawl.addresses import canonical
from embedding.crawl.tables import LEASES, LISTED, POLLS, URLS, USES, YIELDS, open_engine

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
