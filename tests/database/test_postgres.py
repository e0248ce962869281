"""A PostgreSQL database is looked at before anything rests on it."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from embedding.database.config import DatabaseConfig
from embedding.database.postgres import check_database, postgres_engine
from embedding.kernel.errors import ConfigError
from pgserver import PostgresServer


def in_schema(address: str, name: str) -> str:
    return DatabaseConfig().completed(address, name)


def refused(address: str) -> str:
    with pytest.raises(ConfigError) as error:
        check_database(address, "database.url")
    said = str(error.value)
    assert said.startswith("database.url: ")
    assert "\n" not in said
    return said


def test_a_schema_is_made_once_and_used(postgres: PostgresServer) -> None:
    address = in_schema(postgres.new_database(), "air-flow")
    for _ in range(2):
        check_database(address, "database.url")
    engine = sa.create_engine(address, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE here (n int)")
        schema = "SELECT table_schema FROM information_schema.tables WHERE table_name = 'here'"
        assert connection.exec_driver_sql(schema).scalar() == "air-flow"


def test_another_encoding_is_refused(postgres: PostgresServer) -> None:
    address = postgres.new_database("ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    said = refused(address)
    assert "encoding SQL_ASCII" in said
    assert "createdb --encoding=UTF8" in said


def test_a_user_without_rights_is_refused(postgres: PostgresServer) -> None:
    address = postgres.new_database()
    name = sa.engine.make_url(address).database
    postgres.run("DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN")
    reader = postgres.address(name, "reader")
    assert "'reader' may not make tables in its schema" in refused(reader)
    assert "permission denied for database" in refused(in_schema(reader, "airflow"))
    check_database(address, "database.url")
    postgres.run(f'REVOKE CONNECT ON DATABASE "{name}" FROM PUBLIC')
    assert "permission denied for database" in refused(reader)


def test_a_server_that_only_follows_is_refused(postgres: PostgresServer) -> None:
    address = postgres.new_database()
    name = sa.engine.make_url(address).database
    postgres.run(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    assert "is read-only" in refused(address)


def test_a_database_or_server_that_is_not_there_is_refused(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    assert 'database "nowhere" does not exist' in refused(postgres.address("nowhere"))
    away = f"postgresql+psycopg://me@/y?host={tmp_path}"
    assert "cannot be used" in refused(away)
    assert "Connection refused" in refused("postgresql+psycopg://me@127.0.0.1:1/y")
    assert "colour" in refused(f"{away}&colour=red")


def test_a_file_of_passwords_must_be_private(postgres: PostgresServer, tmp_path: Path) -> None:
    file = tmp_path / "pass"
    address = f"{postgres.new_database()}&passfile={file}"
    assert "no such file" in refused(address)
    file.write_text("*:*:*:*:x\n")
    file.chmod(0o640)
    assert "mode 600 is accepted" in refused(address)
    file.chmod(0o600)
    check_database(address, "database.url")


def test_nobody_waits_long_for_a_lock(postgres: PostgresServer) -> None:
    address = postgres.new_database()
    engine = postgres_engine(sa.engine.make_url(address), poolclass=sa.NullPool)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW lock_timeout").scalar() == "10s"
    quick = sa.engine.make_url(f"{address}&options=-clock_timeout%3D50ms")
    engine = postgres_engine(quick, poolclass=sa.NullPool)
    with engine.begin() as first, engine.begin() as second:
        first.exec_driver_sql("CREATE TABLE t (n int)")
        with pytest.raises(sa.exc.OperationalError, match="lock timeout"):
            second.exec_driver_sql("CREATE TABLE t (n int)")
