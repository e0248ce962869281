"""Going back in the frontier: what was read since a moment is read again; sources that are blocked.

The pool must not be running: nodes know in memory what they have read.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from embedding.crawl.rows import AS_NEW
from embedding.crawl.tables import BLOCKED, URLS, USES, open_engine


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
