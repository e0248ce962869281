"""A home moves from SQLite to PostgreSQL: everything, or what did not move is where it was."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from embedding.cli import app
from embedding.crawl.frontier import Frontier
from embedding.crawl.lease import LeaseConfig
from embedding.crawl.tables import Fetched
from embedding.evaluation.runs import connect
from embedding.kernel.errors import ConfigError, InputError
from embedding.platform import moving
from embedding.platform.databases import check_databases, require_moved
from embedding.platform.moving import move
from embedding.platform.operate import airflow_variables, bring_up, prepare_airflow
from embedding.settings import Settings
from embedding.sources.config import SourceConfig
from pgserver import PostgresServer, row_counts

DATABASES = ("airflow", "mlflow", "frontier")
MOVED_SUFFIX = ".moved"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def filled_home(tmp_path_factory: pytest.TempPathFactory, airflow_database: Path) -> Path:
    """A home whose SQLite files were made by Airflow, MLflow and the frontier themselves."""
    settings = Settings(paths={"home": tmp_path_factory.mktemp("home")})
    settings.paths.airflow.mkdir()
    shutil.copyfile(airflow_database, settings.sqlite_file("airflow"))
    with contextlib.closing(sqlite3.connect(settings.sqlite_file("airflow"))) as airflow:
        airflow.executemany(
            "INSERT INTO variable (key, val, is_encrypted) VALUES (?, ?, 0)",
            [(f"k{n}", f"값 {n}\n\\N") for n in range(2500)],
        )
        airflow.execute(
            "INSERT INTO job (job_type, state, start_date) VALUES ('a', 'success', ?)",
            ("2026-03-29 01:30:00.123456",),
        )
        airflow.commit()
    settings.paths.mlflow.mkdir()
    client = connect(settings.database_address("mlflow"))
    experiment = client.create_experiment("나의 실험")
    run = client.create_run(experiment, tags={"a": "b"}).info.run_id
    client.log_metric(run, "loss", 0.1 + 0.2, step=2**40)
    client.log_metric(run, "none", float("nan"))
    client.log_param(run, "이름", "값")
    client.create_registered_model("m")
    client.create_model_version("m", "mlflow-artifacts:/x", run)
    client.set_registered_model_alias("m", "newest", "1")
    settings.paths.frontier.mkdir()
    frontier = Frontier(settings.database_address("frontier"))
    frontier.leases(LeaseConfig()).publish([source()])
    frontier.discover("board", [(f"https://board.example/{n}", float(n)) for n in range(50)], 1.0)
    frontier.claim("board", 10, 60.0, 900.0)
    frontier.record([Fetched("https://board.example/1", "board")], [], 61.0)
    frontier.close()
    return settings.paths.home


def source() -> SourceConfig:
    cookies = {"session": "a-cookie"}
    return SourceConfig(name="board", kind="feed", url="https://board.example/f", cookies=cookies)


@pytest.fixture
def settings(filled_home: Path, tmp_path: Path, postgres: PostgresServer) -> Settings:
    """Of a copy of that home, with an empty PostgreSQL database."""
    shutil.copytree(filled_home, tmp_path / "home")
    database = {"url": postgres.new_database()}
    return Settings(paths={"home": tmp_path / "home"}, database=database)


def quietly(_: str) -> None:
    pass


def files(settings: Settings) -> set[str]:
    return {path.name for path in settings.paths.home.rglob("*.db*")}


def rows(settings: Settings) -> dict[str, Mapping[str, int]]:
    there = {name: row_counts(settings.database_address(name)) for name in DATABASES}
    return {name: {table: n for table, n in one.items() if n} for name, one in there.items()}


def test_everything_is_there_and_says_what_it_said(settings: Settings) -> None:
    expected = {
        name: {t: n for t, n in row_counts(f"sqlite:///{settings.sqlite_file(name)}").items() if n}
        for name in DATABASES
    }
    done = move(settings, quietly)
    assert list(done) == list(DATABASES)
    assert rows(settings) == expected
    assert files(settings) == {
        f"{name}.db{MOVED_SUFFIX}" for name in ("airflow", "mlflow", "yeoron")
    }
    require_moved(settings)
    assert move(settings, quietly) == {}, "a second time there is nothing to do"

    client = connect(settings.database_address("mlflow"))
    experiment = client.get_experiment_by_name("나의 실험")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.data.metrics["loss"] == 0.1 + 0.2
    assert run.data.params == {"이름": "값"}
    assert run.data.tags["a"] == "b"
    assert client.get_model_version_by_alias("m", "newest").run_id == run.info.run_id
    assert int(client.create_experiment("next")) > int(experiment.experiment_id)

    frontier = Frontier(settings.database_address("frontier"))
    assert frontier.leases(LeaseConfig()).sources() == [source()]
    assert frontier.backlog(["board"])["board"] == 50
    assert frontier.acknowledge(["https://board.example/1"], 70.0) == 1
    assert len(frontier.claim("board", 100, 62.0, 900.0)) == 40
    frontier.close()

    engine = sa.create_engine(settings.database_address("airflow"), poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("SET TIME ZONE 'UTC'")
        value = "SELECT val FROM variable WHERE key = 'k7'"
        assert connection.exec_driver_sql(value).scalar() == "값 7\n\\N"
        start = "SELECT start_date::text FROM job"
        assert connection.exec_driver_sql(start).scalar() == "2026-03-29 01:30:00.123456+00"
    # Airflow's own tool finds nothing to do.
    prepare_airflow(settings, airflow_variables(settings))


@pytest.fixture
def without_airflow(settings: Settings) -> Settings:
    """Airflow takes seconds to make its tables."""
    settings.sqlite_file("airflow").unlink()
    return settings


def test_what_was_killed_or_fails_on_the_way_goes_on_and_copies_nothing_again(
    without_airflow: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", killed)
        with pytest.raises(Killed):
            move(without_airflow, quietly)
    assert files(without_airflow) == {"mlflow.db", "yeoron.db"}
    there = rows(without_airflow)["mlflow"]

    asked = []

    def fails(file: Path, address: str) -> dict[str, int]:
        asked.append(file.name)
        raise InputError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(moving, "copy_rows", fails)
        with pytest.raises(InputError):
            move(without_airflow, quietly)
    assert asked == ["yeoron.db"], "what is there is renamed, and not copied again"
    assert files(without_airflow) == {f"mlflow.db{MOVED_SUFFIX}", "yeoron.db"}
    with pytest.raises(ConfigError, match=r"yeoron\.db: .* `yeoron database move` moves them"):
        bring_up(without_airflow)

    monkeypatch.setenv("YEORON_PATHS__HOME", str(without_airflow.paths.home))
    address = without_airflow.database.url
    assert address is not None
    monkeypatch.setenv("YEORON_DATABASE__URL", address.get_secret_value())
    moved = CliRunner().invoke(app, ["database", "move"])
    assert moved.exit_code == 0, moved.output
    assert [name for name in DATABASES if f" {name} " in moved.output] == ["frontier"]
    assert files(without_airflow) == {f"{name}.db{MOVED_SUFFIX}" for name in ("mlflow", "yeoron")}
    assert rows(without_airflow)["mlflow"] == there


def test_a_database_in_use_is_not_overwritten(settings: Settings) -> None:
    check_databases(settings)
    frontier = Frontier(settings.database_address("frontier"))
    frontier.discover("other", [("k", 1.0)], 1.0)
    frontier.close()
    before = files(settings)
    with pytest.raises(ConfigError, match=r"url: the tables of frontier there are in use"):
        move(settings, quietly)
    assert files(settings) == before
    assert rows(settings)["airflow"] == {}


def test_without_postgres_there_is_nowhere_to_move(settings: Settings, tmp_path: Path) -> None:
    on_sqlite = Settings(paths={"home": settings.paths.home})
    with pytest.raises(ConfigError, match=r"set database\.url"):
        move(on_sqlite, quietly)
    require_moved(on_sqlite)


def test_up_tries_the_databases_before_it_starts_anything(tmp_path: Path) -> None:
    settings = Settings(
        paths={"home": tmp_path / "home"}, database={"url": "postgresql://me@127.0.0.1:1/y"}
    )
    with pytest.raises(ConfigError, match=r"database\.url: the PostgreSQL database 127.0.0.1:1/y"):
        bring_up(settings)
    assert not (tmp_path / "home").exists()
