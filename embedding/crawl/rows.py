"""Rows of the frontier's table of addresses, and the updates that are made of many at once.

The updates are made once: what SQLAlchemy does for a statement costs more than SQLite's part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from embedding.crawl.tables import URLS


@dataclass(frozen=True)
class Fetched:
    """An address that has been read; times are Unix seconds. Inline texts have no validators."""

    key: str
    source: str
    published: float | None = None
    etag: str | None = None
    last_modified: str | None = None
    content_hash: str | None = None


def new_row(key: str, source: str, now: float, **more: Any) -> dict[str, Any]:
    """A row of `URLS` for an address that was just found; `more` replaces columns of it."""
    return {
        "key": key,
        "source": source,
        "inline": False,
        "status": "new",
        "discovered_at": now,
        "order_at": now,
        "attempts": 0,
        "not_before": 0.0,
        "claimed_until": 0.0,
        **more,
    }


READ = (
    sa.update(URLS)
    .where(URLS.c.key == sa.bindparam("of"))
    .values(
        status="fetched",
        claimed_until=0.0,
        fetched_at=sa.bindparam("now"),
        published_at=sa.func.coalesce(sa.bindparam("at", type_=sa.Float), URLS.c.published_at),
        etag=sa.bindparam("tag"),
        last_modified=sa.bindparam("modified"),
        content_hash=sa.bindparam("code"),
    )
)
"""Takes rows of `read_row`."""

OVER = (
    sa.update(URLS)
    .where(URLS.c.key == sa.bindparam("of"))
    .values(
        status="done",
        content_hash=None,
        reason=sa.bindparam("why"),
        done_at=sa.bindparam("now"),
    )
)
"""Takes rows of `over_row`."""


AS_NEW = {
    "status": "new",
    "reason": None,
    "done_at": None,
    "fetched_at": None,
    "attempts": 0,
    "not_before": 0.0,
    "claimed_until": 0.0,
    "etag": None,
    "last_modified": None,
    "content_hash": None,
}
"""Of an address that is read once more: what the last fetch left is forgotten, so that "not
modified" does not pass for read."""


def read_row(one: Fetched, now: float) -> dict[str, Any]:
    """`one` was read and is handed on."""
    return {
        "of": one.key,
        "now": now,
        "at": one.published,
        "tag": one.etag,
        "modified": one.last_modified,
        "code": one.content_hash,
    }


def over_row(one: Fetched, reason: str, now: float) -> dict[str, Any]:
    """Nothing comes of `one`."""
    return {"of": one.key, "now": now, "why": reason}
