"""Copies of databases: SQLite by its backup API, PostgreSQL by pg_dump and pg_restore."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from embedding.backup.manifest import DUMPS
from embedding.database.postgres import check_database
from embedding.kernel.errors import ConfigError, InputError, PlatformError
from embedding.settings import DatabaseName, Settings

_TIMEOUT_S = 3600
_BUSY_S = 30.0


def database_addresses(settings: Settings) -> dict[str, str]:
    """SQLAlchemy address of each database of the home, by what has its tables there."""
    names: tuple[DatabaseName, ...] = ("frontier", "mlflow", "airflow")
    return {name: settings.database_address(name) for name in names}


def database_kind(address: str) -> str:
    """sqlite or postgresql; ConfigError for any other."""
    kind = make_url(address).get_backend_name()
    if kind not in ("sqlite", "postgresql"):
        raise ConfigError(
            f"backup: a database of {kind} cannot be copied; SQLite or PostgreSQL can."
        )
    return kind


def sqlite_file(address: str) -> Path:
    """The file of a SQLite database."""
    return Path(str(make_url(address).database))


def dumped_name(part: str, address: str) -> str:
    """Name of a database's copy in a backup."""
    if database_kind(address) == "sqlite":
        return f"{part}/{sqlite_file(address).name}"
    return f"{DUMPS}/{part}.dump"


def dump(address: str, target: Path) -> bool:
    """Write a database as it is at one moment while others write to it; False: there is none.

    PlatformError where it cannot be read.
    """
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    target.unlink(missing_ok=True)
    if database_kind(address) == "sqlite":
        return _copy_sqlite(sqlite_file(address), target)
    url = make_url(address)
    schema = _schema(url)
    only = () if schema is None else ("--schema", schema)
    _run(["pg_dump", "--format=custom", "--no-owner", *only, "--file", str(target)], url)
    return True


def load(source: Path, address: str) -> None:
    """Fill an empty PostgreSQL database from a copy, wholly or not at all; PlatformError."""
    url = make_url(address)
    schema = _schema(url)
    options = ["--no-owner", "--single-transaction", "--exit-on-error"]
    if schema is not None:
        _make_schema(url, schema)
        # With it the schema itself is left out, which is there now.
        options += ["--schema", schema]
    _run(["pg_restore", *options, "--dbname", str(url.database), str(source)], url)


def check_loadable(part: str, kind: str, address: str) -> None:
    """Refuse a database that a copy of this kind cannot be put into; it makes its schema."""
    here = database_kind(address)
    if here != kind:
        raise ConfigError(
            f"restore: the backup holds the {part} of a {kind} database and the settings name one "
            f"of {here}; restore it with {kind}, then move it."
        )
    if here == "postgresql":
        check_database(address, f"restore: the {part}")
    if here == "postgresql" and (tables := _tables(make_url(address))):
        raise InputError(
            f"restore: the {part}'s PostgreSQL database holds {tables} tables; an empty one is "
            "accepted."
        )


def _copy_sqlite(source: Path, target: Path) -> bool:
    if not source.is_file():
        return False
    try:
        with (
            closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=_BUSY_S)) as db,
            closing(sqlite3.connect(target)) as copy,
        ):
            target.chmod(0o600)
            db.backup(copy)
            # One file alone, whatever the journal of the other was.
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise PlatformError(f"{source}: it cannot be copied: {error}.") from error
    return True


def _tables(url: URL) -> int:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    try:
        return len(sa.inspect(engine).get_table_names(_schema(url)))
    except sa.exc.SQLAlchemyError as error:
        raise ConfigError(
            f"restore: the database {url.host}/{url.database} cannot be used "
            f"({type(error).__name__}); one that runs is accepted."
        ) from error


def _make_schema(url: URL, name: str) -> None:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    try:
        with engine.begin() as connection:
            connection.execute(sa.schema.CreateSchema(name, if_not_exists=True))
    except sa.exc.SQLAlchemyError as error:
        raise PlatformError(
            f"restore: the schema {name} of {url.database}: it cannot be made."
        ) from error


def _schema(url: URL) -> str | None:
    """The schema that an address names by its search path."""
    given = url.query.get("options") or ""
    options = given if isinstance(given, str) else " ".join(given)
    _, marker, path = options.partition("search_path=")
    return path.split()[0].split(",")[0] if marker else None


def _environment(url: URL) -> Mapping[str, str]:
    """Where and as whom: not as arguments, which everybody on the machine sees."""
    variables = {
        "PGHOST": url.host,
        "PGPORT": None if url.port is None else str(url.port),
        "PGUSER": url.username,
        "PGPASSWORD": None if url.password is None else str(url.password),
        "PGDATABASE": url.database,
    }
    names = {"host": "PGHOST", "passfile": "PGPASSFILE"}
    for name, value in url.query.items():
        if name != "options" and isinstance(value, str):
            variables[names.get(name, f"PG{name.upper()}")] = value
    return {name: value for name, value in variables.items() if value}


def _run(command: list[str], url: URL) -> None:
    try:
        done = subprocess.run(  # noqa: S603 (PostgreSQL's own tools, no shell)
            command,
            env={**os.environ, **_environment(url)},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlatformError(
            f"{command[0]}: it did not run ({type(error).__name__}); PostgreSQL's own tools of the "
            "server's version are needed (apt-get install postgresql-client)."
        ) from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it says nothing"]
        raise PlatformError(f"{command[0]}: {lines[0].rstrip('.')}.")
