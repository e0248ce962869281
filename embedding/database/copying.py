"""Copying a SQLite file into a PostgreSQL database whose tables its own tool has made.

Every value is read as SQLite holds it and sent as text, which the server reads by the type of the
column: so JSON, times, numbers and bytes are what they were. Everything is one transaction, in
which the rows of each table are counted; foreign keys are taken off and put on again, which checks
them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from embedding.database.postgres import postgres_engine, reason
from embedding.kernel.errors import InputError

_BATCH = 1_000
VERSIONS = ("alembic_version", "frontier_schema")
"""Tables that say of which version the others are; both databases must say the same."""

_KEYS = """
SELECT c.conrelid::regclass::text, quote_ident(c.conname), pg_get_constraintdef(c.oid)
FROM pg_constraint c WHERE c.contype = 'f' AND c.connamespace = current_schema()::regnamespace
"""
_SEQUENCES = """
SELECT table_name, column_name,
       pg_get_serial_sequence(quote_ident(table_schema) || '.' || quote_ident(table_name),
                              column_name)
FROM information_schema.columns WHERE table_schema = current_schema()
"""


def sqlite_rows(file: Path) -> dict[str, int]:
    """Number of rows of every table of a SQLite file."""
    with _reading(file) as source:
        return {name: _count(source, name) for name in _tables(source)}


def postgres_rows(address: str) -> dict[str, int]:
    """Number of rows of every table in the schema of a PostgreSQL database."""
    engine = postgres_engine(make_url(address), poolclass=sa.NullPool)
    with engine.connect() as connection:
        names = sa.inspect(connection).get_table_names()
        return {name: _rows(connection, name) for name in names}


def copy_rows(file: Path, address: str) -> dict[str, int]:
    """Copy every table of a SQLite file; number of rows by table, the same on both sides.

    What the tables of `address` hold is replaced. Raises InputError, and changes nothing, when the
    two are of different versions, a table or column has no place there, or a value is refused.
    """
    engine = postgres_engine(make_url(address), poolclass=sa.NullPool)
    where = f"{file.name} to PostgreSQL"
    try:
        with _reading(file) as source, engine.begin() as target:
            target.execute(sa.text("SET LOCAL TIME ZONE 'UTC'"))
            columns = _columns(source, target, where)
            _same_version(source, target, where)
            keys = target.execute(sa.text(_KEYS)).fetchall()
            for table, name, _ in keys:
                target.execute(sa.text(f"ALTER TABLE {table} DROP CONSTRAINT {name}"))
            copied = {
                table: _copy(source, target, table, names, where)
                for table, names in columns.items()
            }
            for table, name, definition in keys:
                target.execute(sa.text(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}"))
            _set_sequences(target)
    except (sa.exc.SQLAlchemyError, sqlite3.Error) as error:
        raise InputError(f"{where}: {reason(error)}; nothing was moved.") from error
    return copied


def merge_log(file: Path, *, seconds: float = 30) -> None:
    """Write what a killed process left in the log beside the file into it; InputError.

    seconds  how long to wait for others that have it open
    """
    try:
        with closing(sqlite3.connect(file, isolation_level=None, timeout=seconds)) as connection:
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.Error as error:
        raise InputError(f"{file}: {error}; a SQLite database is expected.") from error
    if busy:
        raise InputError(f"{file}: another process has it open; end that first.")


@contextmanager
def _reading(file: Path) -> Iterator[sqlite3.Connection]:
    """The file as it is at one moment; it is not written."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        yield connection


def _tables(source: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    return [name for (name,) in source.execute(query) if not name.startswith("sqlite_")]


def _count(source: sqlite3.Connection, table: str) -> int:
    return int(source.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0])  # noqa: S608


def _rows(target: sa.Connection, table: str) -> int:
    return int(target.execute(sa.select(sa.func.count()).select_from(sa.table(table))).scalar_one())


def _columns(
    source: sqlite3.Connection, target: sa.Connection, where: str
) -> Mapping[str, list[str]]:
    """Columns to copy, by table; InputError for rows that have no place in the target."""
    inspector = sa.inspect(target)
    existing = set(inspector.get_table_names())
    columns: dict[str, list[str]] = {}
    for table in _tables(source):
        if table not in existing:
            if _count(source, table):
                raise InputError(f"{where}: there is no table {table!r}; nothing was moved.")
            continue
        wanted = {str(column["name"]) for column in inspector.get_columns(table)}
        # Hidden ones are computed, on the other side as well.
        given = [str(row[1]) for row in source.execute(f'PRAGMA table_info("{table}")')]
        missing = sorted(set(given) - wanted)
        if missing:
            raise InputError(
                f"{where}: table {table!r} has no column {missing[0]!r}; nothing was moved."
            )
        columns[table] = given
    return columns


def _same_version(source: sqlite3.Connection, target: sa.Connection, where: str) -> None:
    existing = set(_tables(source))
    for table in VERSIONS:
        if table not in existing:
            continue
        before = sorted(map(tuple, source.execute(f"SELECT * FROM {table}")))  # noqa: S608
        after = sorted(map(tuple, target.execute(sa.text(f"SELECT * FROM {table}"))))  # noqa: S608
        if before != after:
            raise InputError(
                f"{where}: the file is of another version ({before} instead of {after}); start it "
                "once with this version of Yeoron on SQLite, then move it. Nothing was moved."
            )


def _copy(
    source: sqlite3.Connection, target: sa.Connection, table: str, columns: list[str], where: str
) -> int:
    """Replace the rows of one table; how many there are, on both sides."""
    quote = target.dialect.identifier_preparer.quote
    names = ", ".join(quote(name) for name in columns)
    target.execute(sa.delete(sa.table(table)))
    listed = ", ".join(f'"{name}"' for name in columns)
    rows = source.execute(f'SELECT {listed} FROM "{table}"')  # noqa: S608
    driver: Any = target.connection.driver_connection
    try:
        with (
            driver.cursor() as cursor,
            cursor.copy(f"COPY {quote(table)} ({names}) FROM STDIN") as out,
        ):
            while batch := rows.fetchmany(_BATCH):
                for row in batch:
                    out.write_row(row)
    except psycopg.Error as error:
        raise InputError(
            f"{where}: table {table!r}: {reason(error)}; nothing was moved."
        ) from error
    before, after = _count(source, table), _rows(target, table)
    if before != after:
        raise InputError(
            f"{where}: table {table!r} has {after:,} rows of {before:,}; nothing was moved."
        )
    return after


def _set_sequences(target: sa.Connection) -> None:
    """Numbers that the database gives go on after those that were copied."""
    quote = target.dialect.identifier_preparer.quote
    for table, column, sequence in target.execute(sa.text(_SEQUENCES)).fetchall():
        if sequence is not None:
            highest = f"SELECT coalesce(max({quote(column)}), 0) FROM {quote(table)}"  # noqa: S608
            last = int(target.execute(sa.text(highest)).scalar_one())
            setval = sa.func.setval(sequence, max(last, 1), last > 0)
            target.execute(sa.select(setval))
