"""Databases on PostgreSQL in a backup: by its own tools, into an empty one, or not at all."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from backup.conftest import AT, home_settings
from embedding.backup import databases
from embedding.backup.collecting import back_up
from embedding.backup.restoring import restore
from embedding.crawl.frontier import Frontier
from embedding.kernel.errors import ConfigError, InputError, PlatformError
from embedding.settings import Settings
from pgserver import PostgresServer

KEY = "https://news.example/1"


def on_postgres(settings: Settings, address: str) -> Settings:
    crawl = settings.crawl.model_copy(update={"frontier": SecretStr(address)})
    return settings.model_copy(update={"crawl": crawl})


def schema_of(address: str, name: str) -> str:
    """The address of a schema of its own in that database."""
    engine = sa.create_engine(address)
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(name, if_not_exists=True))
    engine.dispose()
    return f"{address}&options=-csearch_path%3D{name}"


@pytest.fixture(params=["whole", "schema"])
def two(request: pytest.FixtureRequest, postgres: PostgresServer) -> tuple[str, str]:
    """A database that is filled, and an empty one."""
    first, second = (postgres.new_database() for _ in range(2))
    if request.param == "schema":
        first, second = schema_of(first, "frontier_yeoron"), schema_of(second, "frontier_yeoron")
    frontier = Frontier(first)
    frontier.offer("뉴스", [(KEY, AT)], AT)
    frontier.close()
    return first, second


def test_a_frontier_on_postgres_comes_back_in_another_database(two, tmp_path):
    settings = home_settings(tmp_path / "home")
    settings.paths.home.mkdir()
    manifest = back_up(on_postgres(settings, two[0]), str(tmp_path / "backup"))
    assert manifest.databases == {"frontier": "postgresql"}
    assert "databases/frontier.dump" in manifest.files
    paths = settings.paths.model_copy(update={"home": tmp_path / "fresh"})
    fresh = settings.model_copy(update={"paths": paths})
    with pytest.raises(ConfigError, match="of a postgresql database and the settings name"):
        restore(fresh, str(tmp_path / "backup"))
    with pytest.raises(InputError, match="holds 10 tables; an empty one"):
        restore(on_postgres(fresh, two[0]), str(tmp_path / "backup"))
    assert not fresh.paths.home.exists()
    restore(on_postgres(fresh, two[1]), str(tmp_path / "backup"))
    frontier = Frontier(two[1])
    assert frontier.discover("뉴스", [(KEY, AT)], AT) == 0
    frontier.close()
    assert not (fresh.paths.home / "databases").exists()


def test_a_load_that_fails_leaves_the_home_and_the_database_empty(two, tmp_path, monkeypatch):
    settings = home_settings(tmp_path / "home")
    settings.paths.home.mkdir()
    back_up(on_postgres(settings, two[0]), str(tmp_path / "backup"))
    paths = settings.paths.model_copy(update={"home": tmp_path / "fresh"})
    fresh = on_postgres(settings.model_copy(update={"paths": paths}), two[1])
    real = databases._run
    cut = ["--section=pre-data", "--section=nonsense"]
    monkeypatch.setattr(databases, "_run", lambda command, url: real([*command, *cut], url))
    with pytest.raises(PlatformError, match="pg_restore"):
        restore(fresh, str(tmp_path / "backup"))
    assert list(fresh.paths.home.iterdir()) == []
    monkeypatch.undo()
    restore(fresh, str(tmp_path / "backup"))


def test_no_tools_and_no_database_are_one_sentence(tmp_path, monkeypatch):
    settings = home_settings(tmp_path / "home")
    settings.paths.home.mkdir()
    away = on_postgres(settings, "postgresql+psycopg://me:hidden@127.0.0.1:1/x")
    with pytest.raises(PlatformError, match="pg_dump: ") as refused:
        back_up(away, str(tmp_path / "backup"))
    assert "hidden" not in str(refused.value)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PlatformError, match="postgresql-client"):
        back_up(away, str(tmp_path / "backup"))
    assert not (tmp_path / "backup").exists()


def test_a_database_that_cannot_hold_it_is_refused_before_anything_is_fetched(
    postgres: PostgresServer, tmp_path
):
    full = postgres.new_database()
    Frontier(full).close()
    settings = home_settings(tmp_path / "home")
    settings.paths.home.mkdir()
    back_up(on_postgres(settings, full), str(tmp_path / "backup"))
    paths = settings.paths.model_copy(update={"home": tmp_path / "fresh"})
    fresh = settings.model_copy(update={"paths": paths})
    other = postgres.new_database("ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(ConfigError, match=r"restore: the frontier: .* has the encoding SQL_ASCII"):
        restore(on_postgres(fresh, other), str(tmp_path / "backup"))
    empty = sa.engine.make_url(postgres.new_database()).database
    postgres.run("DROP ROLE IF EXISTS looker", "CREATE ROLE looker LOGIN")
    with pytest.raises(ConfigError, match="'looker' may not make tables in its schema"):
        restore(on_postgres(fresh, postgres.address(empty, "looker")), str(tmp_path / "backup"))
    assert not fresh.paths.home.exists()


def test_a_user_who_may_not_read_makes_no_backup(postgres: PostgresServer, tmp_path):
    address = postgres.new_database()
    Frontier(address).close()
    settings = home_settings(tmp_path / "home")
    settings.paths.home.mkdir()
    postgres.run("DROP ROLE IF EXISTS stranger", "CREATE ROLE stranger LOGIN")
    stranger = postgres.address(sa.engine.make_url(address).database, "stranger")
    with pytest.raises(PlatformError, match=r"pg_dump: .*permission denied") as refused:
        back_up(on_postgres(settings, stranger), str(tmp_path / "backup"))
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "backup").exists()
    assert not (settings.paths.home / ".backup").exists()
