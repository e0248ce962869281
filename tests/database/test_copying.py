"""Rows of a SQLite file in a PostgreSQL database: the same ones, or none."""

from __future__ import annotations

import datetime as dt
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from embedding.database.copying import copy_rows, merge_log
from embedding.kernel.errors import InputError
from pgserver import PostgresServer, row_counts

metadata = sa.MetaData()
VERSION = sa.Table("alembic_version", metadata, sa.Column("version_num", sa.String(32)))
KINDS = sa.Table(
    "kinds",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("parent", sa.ForeignKey("kinds.id")),
    sa.Column("select", sa.Text),  # a word of SQL's own
    sa.Column("flag", sa.Boolean),
    sa.Column("number", sa.Float),
    sa.Column("large", sa.BigInteger),
    sa.Column("at", sa.DateTime(timezone=True)),
    sa.Column("day", sa.Date),
    sa.Column("facts", sa.JSON),
    sa.Column("raw", sa.LargeBinary),
    sa.Column("name", sa.Uuid),
)
ROWS: list[dict[str, Any]] = [
    {
        "id": 7,
        "parent": 9,
        "select": "한글, \\N \t\n\\. 🙂",
        "flag": True,
        "number": 0.1 + 0.2,
        "large": 2**62,
        "at": dt.datetime(2026, 3, 29, 1, 30, 0, 123456),
        "day": dt.date(1999, 12, 31),
        "facts": {"a": [1, 2.5, None, "é"], "b": 5},
        "raw": bytes(range(256)),
        "name": uuid.UUID(int=5),
    },
    dict.fromkeys(KINDS.columns.keys()) | {"id": 8, "select": "", "facts": [], "raw": b""},
    dict.fromkeys(KINDS.columns.keys()) | {"id": 9, "number": float("inf"), "flag": False},
]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    engine = sa.create_engine(f"sqlite:///{tmp_path}/a.db")
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(VERSION).values(version_num="v1"))
        connection.execute(sa.insert(KINDS), ROWS)
    engine.dispose()
    return tmp_path / "a.db"


@pytest.fixture
def target(postgres: PostgresServer) -> str:
    address = postgres.new_database()
    ran(address, "SET TIME ZONE 'Asia/Seoul'")
    engine = sa.create_engine(address, poolclass=sa.NullPool)
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(VERSION).values(version_num="v1"))
        connection.execute(sa.insert(KINDS).values(id=1, select="what its tool put there"))
    return address


def ran(where: Path | str, *statements: str) -> None:
    if isinstance(where, Path):
        with closing(sqlite3.connect(where, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)
        return
    engine = sa.create_engine(where, poolclass=sa.NullPool)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def read(address: str) -> list[dict[str, Any]]:
    engine = sa.create_engine(address, poolclass=sa.NullPool)
    with engine.connect() as connection:
        rows = connection.execute(sa.select(KINDS).order_by(KINDS.c.id)).mappings()
        return [dict(row) for row in rows]


def test_every_value_is_what_it_was(file: Path, target: str) -> None:
    assert copy_rows(file, target) == {"alembic_version": 1, "kinds": 3}
    found = read(target)
    found[0]["at"] = found[0]["at"].astimezone(dt.UTC).replace(tzinfo=None)
    assert found == ROWS
    assert (
        row_counts(target) == row_counts(f"sqlite:///{file}") == {"alembic_version": 1, "kinds": 3}
    )


def test_numbers_and_keys_go_on_as_before(file: Path, target: str) -> None:
    copy_rows(file, target)
    engine = sa.create_engine(target, poolclass=sa.NullPool)
    with engine.begin() as connection:
        assert connection.execute(sa.insert(KINDS).values(parent=9)).inserted_primary_key == (10,)
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(sa.insert(KINDS).values(parent=77))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("UPDATE alembic_version SET version_num = 'v0'", "of another version"),
        ("ALTER TABLE kinds ADD COLUMN more TEXT", "no column 'more'"),
        ("UPDATE kinds SET parent = 77", "violates foreign key"),
        ("UPDATE kinds SET day = 'soon' WHERE id = 8", "invalid input syntax for type date"),
        ("UPDATE kinds SET \"select\" = 'a' || char(0) WHERE id = 8", "0x00"),
    ],
)
def test_what_would_be_lost_is_said_and_nothing_is_moved(
    file: Path, target: str, wrong: str, sentence: str
) -> None:
    ran(file, wrong)
    with pytest.raises(InputError) as error:
        copy_rows(file, target)
    assert sentence in str(error.value)
    assert str(error.value).endswith("othing was moved.")
    assert "\n" not in str(error.value)
    assert [row["id"] for row in read(target)] == [1]


def test_rows_of_a_table_that_is_not_there_are_said(file: Path, target: str) -> None:
    ran(file, "CREATE TABLE more (n INTEGER)")
    assert copy_rows(file, target) == {"alembic_version": 1, "kinds": 3}
    ran(file, "INSERT INTO more VALUES (1)")
    with pytest.raises(InputError, match="no table 'more'"):
        copy_rows(file, target)


def test_what_a_killed_process_left_in_the_log_counts(file: Path, tmp_path: Path) -> None:
    ran(file, "PRAGMA journal_mode = WAL")
    with closing(sqlite3.connect(file, isolation_level=None)) as held:
        held.execute("DELETE FROM kinds WHERE id < 9")
        copies = [tmp_path / f"copy.db{end}" for end in ("", "-wal")]
        for copy, end in zip(copies, ("", "-wal"), strict=True):
            copy.write_bytes(Path(f"{file}{end}").read_bytes())
    assert copies[1].stat().st_size > 0
    merge_log(copies[0])
    assert not copies[1].exists()
    assert row_counts(f"sqlite:///{copies[0]}")["kinds"] == 1


def test_a_file_that_is_in_use_or_no_database_is_said(file: Path) -> None:
    ran(file, "PRAGMA journal_mode = WAL")
    with closing(sqlite3.connect(file, isolation_level=None)) as held:
        held.execute("BEGIN")
        held.execute("SELECT * FROM kinds").fetchone()
        ran(file, "UPDATE kinds SET flag = 1")
        with pytest.raises(InputError, match="another process has it open"):
            merge_log(file, seconds=0.1)
    file.write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match="a SQLite database is expected"):
        merge_log(file)
