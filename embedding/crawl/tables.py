"""The frontier's tables and their database engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import make_url
from sqlalchemy.pool import StaticPool

from embedding.database.postgres import ensure_schema, postgres_engine, reason, shown
from embedding.kernel.errors import ConfigError

READING = "yeoron_reading"
"""Execution option of connections that only read and must not wait for the write lock."""

_MAKING = 0x59454F524F4E
"""Key of the lock under which the tables are made on PostgreSQL."""

metadata = sa.MetaData()

URLS = sa.Table(
    "frontier_urls",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("inline", sa.Boolean, nullable=False),
    sa.Column("status", sa.String(8), nullable=False),
    sa.Column("reason", sa.String(32)),
    sa.Column("order_at", sa.Float, nullable=False),
    sa.Column("published_at", sa.Float),
    sa.Column("discovered_at", sa.Float, nullable=False),
    sa.Column("fetched_at", sa.Float),
    sa.Column("done_at", sa.Float),
    sa.Column("attempts", sa.Integer, nullable=False, default=0),
    sa.Column("not_before", sa.Float, nullable=False, default=0.0),
    sa.Column("claimed_until", sa.Float, nullable=False, default=0.0),
    sa.Column("etag", sa.Text),
    sa.Column("last_modified", sa.Text),
    sa.Column("content_hash", sa.String(32)),
    sa.Column("alias_of", sa.Text),
    sa.Index("frontier_next", "source", "status", "order_at"),
    sa.Index("frontier_content", "content_hash"),
)
"""One row an address. Times are Unix seconds; `status` is new, fetched, done or failed."""

LISTED = sa.Table(
    "frontier_listed",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("source", sa.String(80), nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("is_lastmod", sa.Boolean, nullable=False),
)
"""How an address was listed, where that says more than its key: as it was linked, which is what is
asked for, and whether its time is when it was changed last."""

POLLS, YIELDS = (
    sa.Table(
        name,
        metadata,
        sa.Column("source", sa.String(80), primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("saved_at", sa.Float, nullable=False),
    )
    for name in ("frontier_polls", "frontier_yields")
)
"""What was learnt of a source's rate of change, and how much it usually brings, by hour (JSON), for
the next start or the next node."""

POOL_TABLE = sa.Table(
    "frontier_pool",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("allocated_at", sa.Float, nullable=False, default=0.0),
    sa.Column("moves", sa.Integer, nullable=False, default=0),
)
"""One row, which whoever changes a lease locks first."""

NODES = sa.Table(
    "frontier_nodes",
    metadata,
    sa.Column("node", sa.String(80), primary_key=True),
    sa.Column("mark", sa.String(32), nullable=False),
    sa.Column("until", sa.Float, nullable=False),
)
"""See `lease.Seat`."""

LEASES = sa.Table(
    "frontier_leases",
    metadata,
    sa.Column("source", sa.String(80), primary_key=True),
    sa.Column("settings", sa.Text),
    sa.Column("cost", sa.Float, nullable=False),
    sa.Column("rate", sa.Float, nullable=False),
    sa.Column("measured", sa.Float, nullable=False),
    sa.Column("wanted", sa.String(80)),
    sa.Column("gone", sa.Boolean, nullable=False),
    sa.Column("holder", sa.String(200)),
    sa.Column("until", sa.Float, nullable=False),
    sa.Column("fence", sa.Integer, nullable=False),
    sa.Column("debts", sa.Text, nullable=False),
    sa.Index("frontier_holder", "holder"),
    sa.Index("frontier_wanted", "wanted"),
)
"""See `lease.Lease`; `settings` is the source as JSON, `holder` and `debts` are incarnations."""

OWING = LEASES.c.debts != sa.literal_column("'[]'")
"""Leases with debts, written as in their index: SQLite uses it for this very expression only."""
sa.Index("frontier_debts", LEASES.c.source, sqlite_where=OWING, postgresql_where=OWING)

USES = sa.Table(
    "frontier_uses",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("source", sa.String(80), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("life", sa.String(80), nullable=False),
    sa.Column("again", sa.Boolean, nullable=False),
    sa.Index("frontier_used", "source", "life"),
)
"""Documents that are done, of the windows that nodes remember: event time, and mark of the process
that learnt each. When that dies they are read `again`, for how they use words alone."""

BLOCKED = sa.Table(
    "frontier_blocked",
    metadata,
    sa.Column("source", sa.String(80), primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)
"""Sources that nobody reads until they are unblocked, whatever the sources file says."""

# Updates of many rows at once are made here, once: what SQLAlchemy does for a statement costs more
# than SQLite's part of it.


@dataclass(frozen=True)
class Fetched:
    """An address that has been read; times are Unix seconds. Inline texts have no validators.

    content_hash, sketch  digest and MinHash of the text; empty where it is too short to be a
                          duplicate
    names                 other addresses of the page: where it was in the end, which it declares
    """

    key: str
    source: str
    published: float | None = None
    etag: str | None = None
    last_modified: str | None = None
    content_hash: str | None = None
    sketch: bytes = b""
    names: frozenset[str] = frozenset()


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


def new_row(key: str, source: str, now: float, **more: Any) -> dict[str, Any]:
    """A row of `URLS` for an address that was just found; `more` replaces columns of it."""
    row = {"key": key, "source": source, "inline": False, "discovered_at": now, "order_at": now}
    return {**row, **AS_NEW, **more}


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
"""What was read and is handed on."""

OVER = (
    sa.update(URLS)
    .where(URLS.c.key == sa.bindparam("of"))
    .values(
        status="done", content_hash=None, reason=sa.bindparam("why"), done_at=sa.bindparam("now")
    )
)
"""What nothing comes of."""

_SCHEMA = sa.Table(
    "frontier_schema",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
)
"""One row: the version of these tables. A database from before it was kept has none."""

FRONTIER_VERSION = 1
"""Raised with every change of the tables above."""


def open_engine(url: str) -> sa.Engine:
    """Engine with the tables in place.

    Raises ConfigError when the database cannot be opened, or was written by another version.
    """
    try:
        address = make_url(url)
        options: dict[str, Any] = {}
        if address.get_backend_name() == "sqlite":
            if address.database in (None, "", ":memory:"):
                options["poolclass"] = StaticPool
            else:
                Path(str(address.database)).parent.mkdir(parents=True, exist_ok=True)
            options["connect_args"] = {"timeout": 10.0, "check_same_thread": False}
        if address.get_backend_name() == "postgresql":
            engine = postgres_engine(address)
        else:
            engine = sa.create_engine(address, **options)
            _tune_sqlite(engine)
        _create(engine)
    except (sa.exc.SQLAlchemyError, ImportError, OSError) as error:
        raise ConfigError(
            f"crawl.frontier: the database {_shown(url)} cannot be opened ({reason(error)}); a "
            "writable SQLite file or a PostgreSQL address is accepted."
        ) from error
    return engine


def _shown(url: str) -> str:
    """An address without user, password and parameters."""
    try:
        address = make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        return repr(url.rpartition("@")[2])
    sqlite = address.get_backend_name() == "sqlite"
    return repr(address.database) if sqlite else repr(shown(address))


def _create(engine: sa.Engine) -> None:
    """Make the tables of an empty database, or look at those that are there; ConfigError.

    Several processes may do so at once.
    """
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING)))
            ensure_schema(connection)
        existing, written = set(sa.inspect(connection).get_table_names()), None
        if _SCHEMA.name in existing:
            written = connection.execute(sa.select(_SCHEMA.c.version)).scalar()
        if written is None and existing & set(metadata.tables):
            written = 0  # from before the version was kept
        if written not in (None, FRONTIER_VERSION):
            where = _shown(engine.url.render_as_string())
            raise ConfigError(
                f"crawl.frontier: {where} was written by another version of Yeoron: its tables "
                f"are of version {written}, this version reads version {FRONTIER_VERSION}. Use "
                "that version, or another database, into which everything is read again."
            )
        metadata.create_all(connection)
        if connection.execute(sa.select(POOL_TABLE.c.id)).fetchone() is None:
            connection.execute(sa.insert(POOL_TABLE).values(id=1))
        if connection.execute(sa.select(_SCHEMA.c.id)).fetchone() is None:
            connection.execute(sa.insert(_SCHEMA).values(id=1, version=FRONTIER_VERSION))


def _tune_sqlite(engine: sa.Engine) -> None:
    """Write-ahead log, and write locks taken at once so that two processes never deadlock."""

    @sa.event.listens_for(engine, "connect")
    def connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA busy_timeout=10000")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        if not connection.get_execution_options().get(READING):
            connection.exec_driver_sql("BEGIN IMMEDIATE")
