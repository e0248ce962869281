"""Connecting to PostgreSQL: how long to wait for it, and whether it can be used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from embedding.kernel.errors import ConfigError

OLDEST = 13
"""Oldest version of the server that Airflow and MLflow support."""
_LOCK_SECONDS = 10
"""As long as SQLite waits for its lock."""
_LINE = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "client_encoding": "utf8",
}
"""Parameters of libpq: a server that fell silent is found out within half a minute, and one whose
encoding is another is understood."""


def postgres_engine(address: URL, **options: Any) -> sa.Engine:
    """An engine whose calls end when the server is silent or another holds a lock for long.

    What the address says itself wins.
    """
    line = {name: value for name, value in _LINE.items() if name not in address.query}
    engine = sa.create_engine(address, connect_args=line, **options)

    @sa.event.listens_for(engine, "connect")
    def connect(connection: Any, _record: Any) -> None:
        if "lock_timeout" in str(address.query.get("options")):
            return
        before, connection.autocommit = connection.autocommit, True
        connection.execute(f"SET lock_timeout = '{_LOCK_SECONDS}s'")
        connection.autocommit = before

    return engine


def ensure_schema(connection: sa.Connection) -> None:
    """Make the schema that the address names, unless it is there; raises SQLAlchemyError."""
    if connection.execute(sa.select(sa.func.current_schema())).scalar() is not None:
        return
    path = str(connection.execute(sa.text("SHOW search_path")).scalar_one())
    name = path.partition(",")[0].strip().strip('"')
    quoted = connection.dialect.identifier_preparer.quote(name)
    connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {quoted}"))


def check_database(address: str, setting: str, *, dry: bool = False) -> None:
    """Look at a PostgreSQL database and make its schema, before anything is started on it.

    setting  what a sentence calls it
    dry      leave it as it is
    Raises ConfigError with one sentence when it cannot be reached, has another encoding, is too
    old, or may not be written.
    """
    url = make_url(address)
    _check_passfile(url, setting)
    where = f"{setting}: the PostgreSQL database {shown(url)}"
    with _reported(where):
        engine = postgres_engine(url, poolclass=sa.NullPool)
        with engine.connect() as connection:
            _check_server(connection, where)
            ensure_schema(connection)
            may = sa.text("SELECT has_schema_privilege(current_schema(), 'CREATE')")
            if not connection.execute(may).scalar():
                raise ConfigError(
                    f"{where} cannot be used: {url.username!r} may not make tables in its schema; "
                    "an owner of the schema is accepted."
                )
            if not dry:
                connection.commit()


def _check_server(connection: sa.Connection, where: str) -> None:
    """Version, encoding, and whether it takes writes; raises ConfigError."""

    def setting(name: str) -> str:
        return str(connection.execute(sa.text(f"SHOW {name}")).scalar_one())

    version = int(setting("server_version_num")) // 10_000
    if version < OLDEST:
        raise ConfigError(
            f"{where} is of version {version}; PostgreSQL {OLDEST} or newer is accepted."
        )
    encoding = setting("server_encoding")
    if encoding != "UTF8":
        raise ConfigError(
            f"{where} has the encoding {encoding}, which cannot hold every text; one made with "
            "`createdb --encoding=UTF8 --template=template0` is accepted."
        )
    if setting("transaction_read_only") == "on":
        raise ConfigError(f"{where} is read-only; the primary server is accepted.")


def _check_passfile(url: URL, setting: str) -> None:
    """libpq passes over a file of passwords that others may read; here that is said."""
    name = url.query.get("passfile")
    if not isinstance(name, str):
        return
    file = Path(name)
    if not file.is_file():
        raise ConfigError(f"{setting}: {file}: no such file; a file of passwords is expected.")
    if file.stat().st_mode & 0o077:
        raise ConfigError(
            f"{setting}: {file}: others may read the passwords in it; mode 600 is accepted."
        )


@contextmanager
def _reported(where: str) -> Iterator[None]:
    """The server's own errors as one sentence."""
    try:
        yield
    except (sa.exc.SQLAlchemyError, ImportError) as error:
        raise ConfigError(
            f"{where} cannot be used ({reason(error)}); a database that runs, and whose user may "
            "make tables in it, is accepted."
        ) from error


def reason(error: Exception) -> str:
    """What the server said, in one line; it names no password."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else type(error).__name__


def shown(url: URL) -> str:
    """host/database, without user and parameters."""
    port = f":{url.port}" if url.port else ""
    host = url.host or url.query.get("host") or "localhost"
    return f"{host}{port}/{url.database}"
